//! The settings of a job as taking a checkpoint wants them, and its failures as a job's.

use standfast_capture::{Mprotect, Tracker, Uffd};
use standfast_format::Rank;
use standfast_share::Threshold;
use standfast_take::{Capture, Comparison, Sharing, TakeSettings};
use standfast_write::{PackSettings, Writing};

use crate::config::{self, Choice, Config, Strategy, Track, Write};
use crate::error::{Cause, Error, Stop};

/// What storing a byte is taken to cost where nothing was measured yet: a disk of 1 GB/s.
const BYTE_S: f64 = 1e-9;
/// A reduction may take this share of the time of storing everything.
const REDUCTION_SHARE: f64 = 0.1;
/// Bounds of the adaptive threshold, in pages.
const THRESHOLD_PAGES: (u32, u32) = (1 << 10, 1 << 20);

/// How checkpoints are taken.
pub(crate) fn of(config: &Config) -> TakeSettings {
    TakeSettings {
        compare: Comparison {
            equal: config.pages.mode.finds_equal(),
            back: config.pages.mode.looks_back(),
            around: config.pages.mode.looks_around(),
        },
        sharing: match config.pages.strategy {
            Strategy::Exact => Sharing::Exact,
            Strategy::TopK => Sharing::TopK(threshold(config)),
        },
        hash: config.pages.hash,
        capture: capture(config),
        copies_bytes: config.memory.copies.0 as usize,
        always_track: config.pages.track != Track::Auto,
        keeps_all: config.place.keep.newest.is_none(),
        segment_bytes: config.pack.segment.0,
        writing: match config.pack.write {
            Write::Direct => Writing::Direct,
            Write::Wag => Writing::Wag { threshold_bytes: config.pack.wag_threshold.0 as usize },
            Write::Pool | Write::WagDbi => Writing::Behind,
        },
        pack: PackSettings {
            pool_bytes: config.memory.pool.0 as usize,
            block_bytes: config.pack.block.0 as usize,
            page_bytes: config.pages.bytes.0 as usize,
            pipeline: config.pack.pipeline,
            threads: config.threads(),
            codec: config.pack.codec,
            filter: config.pack.filter,
        },
    }
}

/// How memory is captured. What is written piece by piece makes the program wait by itself. With an
/// agent what a call has returned from outlives the ranks, unless somebody wants it otherwise.
fn capture(config: &Config) -> Capture {
    match (config.pages.capture, config.pack.write) {
        (_, Write::Direct | Write::Wag) | (Choice::Set(config::Capture::Stop), _) => Capture::Stop,
        (Choice::Set(config::Capture::Staged), _) => Capture::Staged,
        (Choice::Set(config::Capture::Cow), _) => Capture::Cow,
        (Choice::Auto, Write::WagDbi) => Capture::Stop,
        (Choice::Auto, Write::Pool) => Capture::Auto,
    }
}

fn threshold(config: &Config) -> Threshold {
    let (least, most) = THRESHOLD_PAGES;
    match config.pages.threshold {
        Choice::Set(pages) => Threshold::fixed(pages),
        Choice::Auto => {
            Threshold::adaptive(least, most, config.pages.bytes.0 as f64 * BYTE_S, REDUCTION_SHARE)
        }
    }
}

/// Who tells which pages were written.
///
/// What protects pages by itself is never chosen, only asked for: whether a program hands its
/// memory to system calls cannot be seen from here.
pub(crate) fn tracker(config: &Config) -> Option<Box<dyn Tracker>> {
    Some(match config.pages.track {
        _ if !config.pages.mode.looks_back() => return None,
        Track::Hash => return None,
        Track::Mprotect => Box::new(Mprotect::new()?),
        Track::Auto | Track::Uffd => Box::new(Uffd::new()?),
    })
}

impl From<standfast_take::Error> for Cause {
    fn from(error: standfast_take::Error) -> Self {
        use standfast_take::Error as Take;
        match error {
            Take::Image(source) => source.into(),
            Take::Unreadable(source) => source.into(),
            Take::Device(source) => source.into(),
            Take::Write(source) => source.into(),
            Take::Agent(source) => source.into(),
            Take::Lost(source) => source.into(),
            Take::Comm(source) => source.into(),
            Take::OtherRank(failure) => {
                let (rank, kind) = (Rank(failure.rank), failure.kind());
                Cause::OtherRank { rank, kind, why: failure.why }
            }
            Take::Broken { what } => Cause::Broken { what },
            Take::Random(why) => Cause::Random(why),
            // The list may grow.
            _ => Cause::Broken { what: "taking" },
        }
    }
}

/// The end of a phase, as a job's.
pub(crate) fn stop(stop: standfast_take::Stop) -> Stop {
    stop.map(Error::from)
}
