//! One encoder's view of the codec `auto`: it asks what to do with a block and tells what it cost.

use std::sync::Arc;
use std::time::{Duration, Instant};

use rustix::time::{ClockId, clock_gettime};

use super::knowledge::{OPTIONS, Seen, class_of, ladder};
use super::{Adaptive, Place};
use crate::codec::{Codec, codec};
use crate::probe::Sampled;

/// What was learned is handed over after so many raw bytes.
const REPORT_BYTES: u64 = 64 << 10;
/// Of shorter blocks only some are timed: asking for the processor time takes a system call.
const TIMED_BYTES: usize = 32 << 10;

/// What an encoder has learned since it last told.
#[derive(Default)]
pub(super) struct Report {
    /// By class and option.
    pub(super) seen: Vec<((usize, usize), Seen)>,
    pub(super) noise_bytes: u64,
    pub(super) raw_bytes: u64,
    /// Time of the blocks that were timed, by the clock and by the processor.
    pub(super) wall_s: f64,
    pub(super) zip_s: f64,
}

/// When a block was begun.
pub(crate) struct Begun {
    wall: Instant,
    thread: Duration,
}

/// A block whose time is not yet over: handing it on belongs to it.
struct Timed {
    key: (usize, usize),
    raw_bytes: usize,
    thread: Duration,
}

/// Chooses for one encoder.
pub(crate) struct Choosing {
    adaptive: Arc<Adaptive>,
    /// By option, made when first chosen.
    codecs: [Option<Box<dyn Codec>>; OPTIONS],
    report: Report,
    last: Option<Timed>,
    untimed_bytes: usize,
}

impl Choosing {
    pub(crate) fn new(adaptive: Arc<Adaptive>) -> Self {
        let codecs = Default::default();
        Self { adaptive, codecs, report: Report::default(), last: None, untimed_bytes: 0 }
    }

    /// A block is begun; `None` if it is not to be timed.
    pub(crate) fn begin(&mut self, raw_bytes: usize) -> Option<Begun> {
        self.end_last();
        if self.report.raw_bytes >= REPORT_BYTES {
            self.adaptive.learn(std::mem::take(&mut self.report));
        }
        self.untimed_bytes += raw_bytes;
        (self.untimed_bytes >= TIMED_BYTES).then(|| {
            self.untimed_bytes = 0;
            Begun { wall: Instant::now(), thread: thread_time() }
        })
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

    /// What to do with a block.
    pub(crate) fn choose(&self, sampled: &Sampled) -> (usize, usize) {
        let class = class_of(sampled);
        (class, self.adaptive.option(class))
    }

    /// Whether an option is used here for the first time. Its codec's memory is touched then: that
    /// block says little about the time of the next.
    pub(crate) fn is_fresh(&self, option: usize) -> bool {
        option != 0 && self.codecs[option].is_none()
    }

    /// The codec of an option; `None`: as it is.
    pub(crate) fn codec(&mut self, option: usize) -> Option<&mut dyn Codec> {
        if option == 0 {
            return None;
        }
        Some(self.codecs[option].get_or_insert_with(|| codec(ladder()[option])).as_mut())
    }

    /// A block was found to be noise.
    pub(crate) fn noise(&mut self, raw_bytes: usize) {
        self.report.noise_bytes += raw_bytes as u64;
        self.report.raw_bytes += raw_bytes as u64;
    }

    /// A block was encoded.
    pub(crate) fn done(
        &mut self,
        key: (usize, usize),
        sampled: &Sampled,
        (raw_bytes, stored_bytes): (usize, usize),
        begun: Option<Begun>,
    ) {
        if let Some(begun) = begun {
            self.report.zip_s += thread_time().saturating_sub(begun.thread).as_secs_f64();
            self.report.wall_s += begun.wall.elapsed().as_secs_f64();
            self.last = Some(Timed { key, raw_bytes, thread: begun.thread });
        }
        let seen = self.seen(key);
        seen.raw_bytes += raw_bytes as u64;
        seen.stored_bytes += stored_bytes as u64;
        seen.promised_bytes += raw_bytes as f64 * f64::from(sampled.share);
        self.report.raw_bytes += raw_bytes as u64;
    }

    /// The processor time of a block ends where that of the next begins; waiting takes none.
    fn end_last(&mut self) {
        let Some(Timed { key, raw_bytes, thread }) = self.last.take() else { return };
        let zip_s = thread_time().saturating_sub(thread).as_secs_f64();
        let seen = self.seen(key);
        seen.zip_s += zip_s;
        seen.timed_bytes += raw_bytes as u64;
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
