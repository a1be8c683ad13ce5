//! How changed pages are found, and memory for copies of them.

use super::LabKey;
use crate::config::size::ByteSize;
use crate::config::text::{Words, word, word_of};

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

/// Least memory for the copies of a snapshot.
const COW_POOL_MIN: u64 = 1 << 20;

const TRACKS: Words<Track> = &[
    ("auto", Track::Auto),
    ("uffd", Track::Uffd),
    ("mprotect", Track::Mprotect),
    ("hash", Track::Hash),
];

pub(super) const TRACK: LabKey = LabKey {
    name: "track",
    values: "auto, uffd, mprotect, hash",
    help: "How changed pages are found: auto, uffd (by the kernel), mprotect (by faults; no system call may write to protected memory), hash (looks at every page; for memory that devices write)",
    default: "auto",
    set: |config, text| word(&mut config.track, TRACKS, text),
    show: |config| word_of(config.track, TRACKS).into(),
};

pub(super) const COW_POOL: LabKey = LabKey {
    name: "cow_pool",
    values: "SIZE",
    help: "Memory of each rank for the copies of capture = cow, from 1MiB; by memory",
    default: "64MiB",
    set: |config, text| {
        let size: ByteSize = text.parse()?;
        if size.0 < COW_POOL_MIN {
            return Err(format!("{text:?} is less than 1MiB"));
        }
        config.cow_pool = size;
        Ok(())
    },
    show: |config| config.cow_pool.to_string(),
};
