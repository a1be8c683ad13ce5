//! How captured pages reach the store.

use standfast_store::Io;

use super::Key;
use super::text::{Words, assign, number, word, word_of};

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

const WRITES: Words<Write> = &[
    ("pool", Write::Pool),
    ("direct", Write::Direct),
    ("wag", Write::Wag),
    ("wag-dbi", Write::WagDbi),
];
const IOS: Words<Io> = &[("auto", Io::Auto), ("direct", Io::Direct), ("buffered", Io::Buffered)];

pub(super) const POOL: Key = Key {
    name: "pool",
    help: "Memory for captured pages on their way to the store, of each rank; with write = wag-dbi a value that is set is for all ranks of a node together, and the default for each; at least four blocks",
    default: "64MiB",
    set: |config, text| assign(&mut config.pool, text),
    show: |config| config.pool.to_string(),
};

pub(super) const WRITE: Key = Key {
    name: "write",
    help: "How captured pages reach the store: pool (this process writes them while the program goes on), wag-dbi (the node's agent does, for all ranks of the node), or for comparison direct (each piece while the program waits) and wag (small pieces together, while the program waits)",
    default: "pool",
    set: |config, text| word(&mut config.write, WRITES, text),
    show: |config| word_of(config.write, WRITES),
};

pub(super) const WAG_THRESHOLD: Key = Key {
    name: "wag_threshold",
    help: "With write = wag, pieces from this size on are written by themselves",
    default: "256KiB",
    set: |config, text| assign(&mut config.wag_threshold, text),
    show: |config| config.wag_threshold.to_string(),
};

pub(super) const SEGMENT: Key = Key {
    name: "segment",
    help: "Largest segment before compression; smaller ones let prune free space sooner",
    default: "1GiB",
    set: |config, text| assign(&mut config.segment, text),
    show: |config| config.segment.to_string(),
};

pub(super) const IO: Key = Key {
    name: "io",
    help: "How the directory is written and read: auto, direct (past the page cache), buffered",
    default: "auto",
    set: |config, text| word(&mut config.io, IOS, text),
    show: |config| word_of(config.io, IOS),
};

pub(super) const IO_THREADS: Key = Key {
    name: "io_threads",
    help: "Reads and writes in flight",
    default: "8",
    set: |config, text| number(&mut config.io_threads, text, 1, 64),
    show: |config| config.io_threads.to_string(),
};
