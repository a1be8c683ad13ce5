//! One encoder's view of the codec `auto`: it asks what to do with a block and tells what it cost.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use rustix::time::{ClockId, clock_gettime};

use super::knowledge::{OPTIONS, Seen, class_of, ladder, reference};
use super::pairs::Pair;
use super::plan::Plan;
use super::{Adaptive, Place};
use crate::codec::{Codec, codec};
use crate::probe::Sampled;

/// What was learned is handed over after so many raw bytes.
const REPORT_BYTES: u64 = 256 << 10;
/// One block of so many bytes is timed: asking for the processor time takes a system call.
const TIMED_BYTES: usize = 256 << 10;

/// What an encoder has learned since it last told.
#[derive(Default)]
pub(super) struct Report {
    /// By class and option.
    pub(super) seen: Vec<((usize, usize), Seen)>,
    /// What two options made of the same block: class, the other than the reference, and by what.
    pub(super) pairs: Vec<(usize, usize, Pair)>,
    /// Processor time of comparing.
    pub(super) trial_s: f64,
    pub(super) noise_bytes: u64,
    pub(super) raw_bytes: u64,
    /// Time of the blocks that were timed, by the clock and by the processor.
    pub(super) wall_s: f64,
    pub(super) busy_s: f64,
    /// Processor time of blocks beside their codec, and their bytes.
    pub(super) beside_s: f64,
    pub(super) beside_bytes: u64,
}

/// When a block was begun.
struct Begun {
    wall: Instant,
    thread: Duration,
    raw_bytes: usize,
    /// Processor time of its codec.
    zip: Duration,
}

/// What to do with a block.
#[derive(Clone, Copy)]
pub(crate) struct Choice {
    class: usize,
    option: usize,
    /// What to compare on it.
    trial: Option<usize>,
}

/// Chooses for one encoder.
pub(crate) struct Choosing {
    adaptive: Arc<Adaptive>,
    plan: Arc<Plan>,
    /// Of the plan.
    version: u32,
    /// By option, made when first chosen.
    codecs: [Option<Box<dyn Codec>>; OPTIONS],
    report: Report,
    /// The last block, if it is timed. Handing it on belongs to it.
    begun: Option<Begun>,
    untimed_bytes: usize,
}

impl Choosing {
    pub(crate) fn new(adaptive: Arc<Adaptive>) -> Self {
        let (plan, version) = adaptive.current();
        Self {
            adaptive,
            plan,
            version,
            codecs: Default::default(),
            report: Report::default(),
            begun: None,
            untimed_bytes: 0,
        }
    }

    /// A block is begun.
    pub(crate) fn begin(&mut self, raw_bytes: usize) {
        self.end_last();
        if self.report.raw_bytes >= REPORT_BYTES {
            self.adaptive.learn(&mut self.report);
        }
        self.report.raw_bytes += raw_bytes as u64;
        self.untimed_bytes += raw_bytes;
        if self.untimed_bytes >= TIMED_BYTES {
            self.untimed_bytes = 0;
            let (wall, thread) = (Instant::now(), thread_time());
            self.begun = Some(Begun { wall, thread, raw_bytes, zip: Duration::ZERO });
        }
    }

    /// Where to encode a block, if there is a device for it.
    pub(crate) fn place(&self, elem: u8, raw_bytes: usize) -> Place {
        self.adaptive.place(elem, raw_bytes)
    }

    /// A block came back from the device with raw and stored length, or was not taken there.
    pub(crate) fn came_back(&self, elem: u8, place: Place, done: Option<(usize, usize)>) {
        self.adaptive.came_back(elem, place, done);
    }

    /// Whether a block is to be stored as it is without a look at it. Counted, so that plans follow.
    pub(crate) fn passes(&mut self, raw_bytes: usize) -> bool {
        let passes = self.adaptive.passes();
        if passes {
            self.end_last();
            self.report.raw_bytes += raw_bytes as u64;
        }
        passes
    }

    /// Whether blocks get slow codecs now: then it pays to look at them closely.
    pub(crate) fn is_slow(&self) -> bool {
        self.adaptive.slow.load(Ordering::Relaxed)
    }

    /// What to do with a block.
    pub(crate) fn choose(&mut self, sampled: &Sampled) -> Choice {
        if self.adaptive.version() != self.version {
            (self.plan, self.version) = self.adaptive.current();
        }
        let class = class_of(sampled);
        let option = self.adaptive.option(&self.plan, class);
        match self.adaptive.due.take(class) {
            // There is nothing to compare it with: it is what others are compared with.
            Some(trial) if trial == reference(class) => {
                Choice { class, option: option.max(trial), trial: None }
            }
            trial => Choice { class, option, trial },
        }
    }

    /// Compares codecs on a block that is due for it. `compress` returns the length.
    pub(crate) fn compare(
        &mut self,
        Choice { class, trial, .. }: Choice,
        mut compress: impl FnMut(&mut dyn Codec) -> usize,
    ) {
        let Some(trial) = trial else { return };
        let began = thread_time();
        let mut timed = |option: usize| {
            let is_fresh = self.codecs[option].is_none();
            let codec = self.codec(option)?;
            if is_fresh {
                // Its memory is touched now.
                compress(codec);
            }
            let began = thread_time();
            let len = compress(codec);
            Some(((thread_time() - began).as_secs_f64(), len))
        };
        if let (Some(own), Some(base)) = (timed(trial), timed(reference(class))) {
            self.report.pairs.push((class, trial, Pair::new(own, base)));
        }
        // The time since the block was begun is not its own.
        self.begun = None;
        self.report.trial_s += thread_time().saturating_sub(began).as_secs_f64();
    }

    /// Compresses a block as chosen, by `compress`; `None`: as it is.
    pub(crate) fn compress<T>(
        &mut self,
        Choice { class, option, .. }: Choice,
        sampled: &Sampled,
        raw_bytes: usize,
        compress: impl FnOnce(&mut dyn Codec) -> Option<T>,
        len: impl FnOnce(&T) -> usize,
    ) -> Option<T> {
        if option != 0 && self.codecs[option].is_none() {
            // The codec's memory is touched for the first time.
            self.begun = None;
        }
        let before = self.begun.as_ref().map(|_| thread_time());
        let done = self.codec(option).and_then(compress);
        let stored_bytes = done.as_ref().map_or(raw_bytes, len);
        let zip = before.map(|before| thread_time().saturating_sub(before));
        let seen = self.seen((class, option));
        seen.raw_bytes += raw_bytes as u64;
        seen.stored_bytes += stored_bytes as u64;
        seen.promised_bytes += raw_bytes as f64 * f64::from(sampled.share);
        if let Some(zip) = zip {
            seen.zip_s += zip.as_secs_f64();
            seen.timed_bytes += raw_bytes as u64;
        }
        self.encoded(zip.unwrap_or_default());
        done
    }

    /// A block was found to be noise.
    pub(crate) fn noise(&mut self, raw_bytes: usize) {
        self.report.noise_bytes += raw_bytes as u64;
        self.encoded(Duration::ZERO);
    }

    /// A block is encoded, and its codec took so long.
    fn encoded(&mut self, zip: Duration) {
        if let Some(begun) = &mut self.begun {
            begun.zip = zip;
            self.report.busy_s += thread_time().saturating_sub(begun.thread).as_secs_f64();
            self.report.wall_s += begun.wall.elapsed().as_secs_f64();
        }
    }

    /// The processor time of a block ends where that of the next begins; waiting takes none.
    fn end_last(&mut self) {
        let Some(Begun { thread, raw_bytes, zip, .. }) = self.begun.take() else { return };
        let beside = thread_time().saturating_sub(thread).saturating_sub(zip);
        self.report.beside_s += beside.as_secs_f64();
        self.report.beside_bytes += raw_bytes as u64;
    }

    /// The codec of an option; `None`: as it is.
    fn codec(&mut self, option: usize) -> Option<&mut dyn Codec> {
        if option == 0 {
            return None;
        }
        Some(self.codecs[option].get_or_insert_with(|| codec(ladder()[option])).as_mut())
    }

    fn seen(&mut self, key: (usize, usize)) -> &mut Seen {
        let seen = &mut self.report.seen;
        let at = seen.iter().position(|(known, _)| *known == key).unwrap_or_else(|| {
            seen.push((key, Seen::default()));
            seen.len() - 1
        });
        &mut seen[at].1
    }
}

/// Processor time of this thread.
fn thread_time() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec.max(0) as u64, time.tv_nsec.max(0) as u32)
}
