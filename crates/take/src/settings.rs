//! How checkpoints of a job are taken.

use standfast_format::HashKind;
use standfast_share::Threshold;
use standfast_write::{PackSettings, Writing};

/// How checkpoints of a job are taken. The same on all ranks, but for sizes of memory.
#[derive(Clone, Debug)]
pub struct TakeSettings {
    /// What a page is compared with before it is stored.
    pub compare: Comparison,
    /// How ranks find the pages that several of them hold.
    pub sharing: Sharing,
    /// How pages are recognised.
    pub hash: HashKind,
    /// How memory is captured.
    pub capture: Capture,
    /// Memory for copies of pages, at most.
    pub copies_bytes: usize,
    /// Whether pages are tracked also where hashing all of them costs less.
    pub always_track: bool,
    /// Whether every checkpoint is kept for ever: then no segment is worth storing again.
    pub keeps_all: bool,
    /// Bytes of pages in a segment.
    pub segment_bytes: u64,
    /// When this process writes.
    pub writing: Writing,
    /// How pages become blocks.
    pub pack: PackSettings,
}

/// How memory is captured. Where it cannot be done so it is done in a way that is further down.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Capture {
    /// As it costs the program least.
    Auto,
    /// The program goes on at once; a page it writes to before it was read is copied first.
    Cow,
    /// The program goes on when what changed is copied.
    Staged,
    /// The program goes on when every page was looked at.
    Stop,
}

impl Capture {
    /// Whether writers may be held up.
    pub(crate) fn may_hold_writers(self) -> bool {
        matches!(self, Capture::Auto | Capture::Cow)
    }
}

/// What a page is compared with before it is stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Comparison {
    /// With zero, and with the other pages of the checkpoint.
    pub equal: bool,
    /// With earlier checkpoints.
    pub back: bool,
    /// With the pages of other ranks.
    pub around: bool,
}

impl Comparison {
    /// Whether equal pages of earlier checkpoints are looked for, wherever they lie.
    pub(crate) fn needs_catalog(self) -> bool {
        self.equal && self.back
    }
}

/// How ranks find the pages that several of them hold.
#[derive(Clone, Debug)]
pub enum Sharing {
    /// By hashes that are dealt out over the ranks: all of them.
    Exact,
    /// The most frequent ones, by a reduction.
    TopK(Threshold),
}
