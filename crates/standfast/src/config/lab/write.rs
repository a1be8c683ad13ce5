//! How captured pages reach the store.

use standfast_store::Io;

use super::LabKey;
use crate::config::text::{Words, assign, number, word, word_of};

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
pub(in crate::config) const IOS: Words<Io> =
    &[("auto", Io::Auto), ("direct", Io::Direct), ("buffered", Io::Buffered)];

pub(super) const POOL: LabKey = LabKey {
    name: "pool",
    values: "SIZE",
    help: "Memory of each rank for captured pages on their way to the store, at least four blocks; with write = wag-dbi of all ranks of a node; by memory",
    default: "64MiB",
    set: |config, text| assign(&mut config.pool, text),
    show: |config| config.pool.to_string(),
};

pub(super) const WRITE: LabKey = LabKey {
    name: "write",
    values: "pool, wag-dbi, direct, wag",
    help: "How captured pages reach the store: pool (this process writes them while the program goes on), wag-dbi (the node's agent does, for all ranks of the node), or for comparison direct (each piece while the program waits) and wag (small pieces together, while the program waits); by agent",
    default: "pool",
    set: |config, text| word(&mut config.write, WRITES, text),
    show: |config| word_of(config.write, WRITES).into(),
};

pub(super) const WAG_THRESHOLD: LabKey = LabKey {
    name: "wag_threshold",
    values: "SIZE",
    help: "With write = wag, pieces from this size on are written by themselves",
    default: "256KiB",
    set: |config, text| assign(&mut config.wag_threshold, text),
    show: |config| config.wag_threshold.to_string(),
};

pub(super) const SEGMENT: LabKey = LabKey {
    name: "segment",
    values: "SIZE",
    help: "Largest segment before compression; smaller ones let prune free space sooner",
    default: "1GiB",
    set: |config, text| assign(&mut config.segment, text),
    show: |config| config.segment.to_string(),
};

pub(super) const IO: LabKey = LabKey {
    name: "io",
    values: "auto, direct, buffered",
    help: "How the directory is written and read: auto, direct (past the page cache), buffered",
    default: "auto",
    set: |config, text| word(&mut config.io, IOS, text),
    show: |config| word_of(config.io, IOS).into(),
};

pub(super) const IO_THREADS: LabKey = LabKey {
    name: "io_threads",
    values: "N",
    help: "Reads and writes in flight",
    default: "8",
    set: |config, text| {
        config.io_threads = number(text, 1, 64)?;
        Ok(())
    },
    show: |config| config.io_threads.to_string(),
};
