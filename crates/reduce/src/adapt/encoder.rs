//! One encoder's view of the codec `auto`: it asks what to do with a block and tells what it cost.

use std::sync::Arc;
use std::time::{Duration, Instant};

use rustix::time::{ClockId, clock_gettime};

use super::Adaptive;
use super::knowledge::{OPTIONS, Seen, class_of, ladder};
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

/// Chooses for one encoder.
pub(crate) struct Choosing {
    adaptive: Arc<Adaptive>,
    /// By option, made when first chosen.
    codecs: [Option<Box<dyn Codec>>; OPTIONS],
    report: Report,
    untimed_bytes: usize,
}

impl Choosing {
    pub(crate) fn new(adaptive: Arc<Adaptive>) -> Self {
        let codecs = Default::default();
        Self { adaptive, codecs, report: Report::default(), untimed_bytes: 0 }
    }

    /// A block is begun; `None` if it is not to be timed.
    pub(crate) fn begin(&mut self, raw_bytes: usize) -> Option<Begun> {
        self.untimed_bytes += raw_bytes;
        (self.untimed_bytes >= TIMED_BYTES).then(|| {
            self.untimed_bytes = 0;
            Begun { wall: Instant::now(), thread: thread_time() }
        })
    }

    /// What to do with a block.
    pub(crate) fn choose(&self, sampled: &Sampled) -> (usize, usize) {
        let class = class_of(sampled);
        (class, self.adaptive.option(class))
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
        self.end(raw_bytes);
    }

    /// A block was encoded.
    pub(crate) fn done(
        &mut self,
        key: (usize, usize),
        sampled: &Sampled,
        (raw_bytes, stored_bytes): (usize, usize),
        begun: Option<Begun>,
    ) {
        let time = begun.map(|begun| {
            let zip = thread_time().saturating_sub(begun.thread).as_secs_f64();
            (zip, begun.wall.elapsed().as_secs_f64())
        });
        let seen = self.seen(key);
        seen.raw_bytes += raw_bytes as u64;
        seen.stored_bytes += stored_bytes as u64;
        seen.promised_bytes += raw_bytes as f64 * f64::from(sampled.share);
        if let Some((zip_s, wall_s)) = time {
            seen.zip_s += zip_s;
            seen.timed_bytes += raw_bytes as u64;
            self.report.zip_s += zip_s;
            self.report.wall_s += wall_s;
        }
        self.end(raw_bytes);
    }

    fn seen(&mut self, key: (usize, usize)) -> &mut Seen {
        let seen = &mut self.report.seen;
        let at = seen.iter().position(|(known, _)| *known == key).unwrap_or_else(|| {
            seen.push((key, Seen::default()));
            seen.len() - 1
        });
        &mut seen[at].1
    }

    fn end(&mut self, raw_bytes: usize) {
        self.report.raw_bytes += raw_bytes as u64;
        if self.report.raw_bytes >= REPORT_BYTES {
            self.adaptive.learn(std::mem::take(&mut self.report));
        }
    }
}

/// Processor time of this thread.
fn thread_time() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec.max(0) as u64, time.tv_nsec.max(0) as u32)
}
