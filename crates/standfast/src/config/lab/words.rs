//! What experiments choose among.

use standfast_gpu::memory::Choice as DeviceCodec;
use standfast_store::Io;
use standfast_write::Pipeline;

use crate::config::text::Words;

/// Which pages are stored: what a page is compared with before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// Compared with nothing: every page, every time.
    Full,
    /// With the same page of the last checkpoint: what was written since.
    Incremental,
    /// With zero and with the other pages of the same rank and checkpoint.
    Local,
    /// Also with the pages of all other ranks in this checkpoint.
    Collective,
    /// Also with the pages of earlier checkpoints, of any rank.
    All,
}

impl Mode {
    /// Whether earlier checkpoints are referred to.
    pub fn looks_back(self) -> bool {
        matches!(self, Mode::Incremental | Mode::All)
    }

    /// Whether other ranks' pages are referred to.
    pub fn looks_around(self) -> bool {
        matches!(self, Mode::Collective | Mode::All)
    }

    /// Whether equal pages are looked for at all.
    pub fn finds_equal(self) -> bool {
        !matches!(self, Mode::Full | Mode::Incremental)
    }
}

pub(super) const MODES: Words<Mode> = &[
    ("full", Mode::Full),
    ("incremental", Mode::Incremental),
    ("local", Mode::Local),
    ("collective", Mode::Collective),
    ("all", Mode::All),
];

/// How ranks find the pages that several of them hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Strategy {
    /// All of them: every hash has a rank that keeps account of it.
    Exact,
    /// The most frequent ones: bounded tables are merged pair by pair.
    TopK,
}

pub(super) const STRATEGIES: Words<Strategy> =
    &[("exact", Strategy::Exact), ("topk", Strategy::TopK)];

/// How changed pages are found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Track {
    /// By the kernel where it can and where it pays, by hashing elsewhere.
    Auto,
    /// By the kernel, wherever it can.
    Uffd,
    /// By protecting pages, for programs that hand no protected memory to system calls.
    Mprotect,
    /// By hashing every page.
    Hash,
}

pub(super) const TRACKS: Words<Track> = &[
    ("auto", Track::Auto),
    ("uffd", Track::Uffd),
    ("mprotect", Track::Mprotect),
    ("hash", Track::Hash),
];

/// How captured pages reach the store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Write {
    /// Through this process's own pool, while the program goes on.
    Pool,
    /// Piece by piece, while the program waits.
    Direct,
    /// Small pieces together, large ones by themselves, while the program waits.
    Wag,
    /// Through the pool that all ranks of the node share, by the node's agent.
    WagDbi,
}

pub(super) const WRITES: Words<Write> = &[
    ("pool", Write::Pool),
    ("direct", Write::Direct),
    ("wag", Write::Wag),
    ("wag-dbi", Write::WagDbi),
];

/// What a checkpoint does for which a bounded local store has no room.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WhenFull {
    /// It fails, before anything of the program is touched.
    Error,
    /// It waits for whoever holds what could go.
    Wait,
}

pub(super) const WHEN_FULLS: Words<WhenFull> =
    &[("error", WhenFull::Error), ("wait", WhenFull::Wait)];

/// Who multiplies for the ring.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RingArithmetic {
    /// The processor.
    Cpu,
    /// A GPU, where there is one.
    Gpu,
}

pub(super) const RING_ARITHMETICS: Words<RingArithmetic> =
    &[("cpu", RingArithmetic::Cpu), ("gpu", RingArithmetic::Gpu)];

pub(super) const PIPELINES: Words<Pipeline> = &[
    ("pipelined", Pipeline::Pipelined),
    ("serial", Pipeline::Serial),
    ("none", Pipeline::None),
    ("gpu", Pipeline::Gpu),
];

pub(in crate::config) const IOS: Words<Io> =
    &[("auto", Io::Auto), ("direct", Io::Direct), ("buffered", Io::Buffered)];

pub(super) const DEVICE_CODECS: Words<DeviceCodec> = &[
    ("auto", DeviceCodec::Auto),
    ("float", DeviceCodec::Float),
    ("deflate", DeviceCodec::Deflate),
    ("none", DeviceCodec::None),
];
