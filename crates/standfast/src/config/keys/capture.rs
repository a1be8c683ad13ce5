//! How changed pages are found and taken.

use super::Key;
use super::text::{Words, word, word_of};
use crate::config::size::ByteSize;

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

/// Whether a checkpoint stops the program while its pages are taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Capture {
    /// It does.
    Stop,
    /// Only to protect or copy them; a page that is written meanwhile is copied first.
    Cow,
}

/// Least memory for the copies of a snapshot.
const COW_POOL_MIN: u64 = 1 << 20;

const TRACKS: Words<Track> = &[
    ("auto", Track::Auto),
    ("uffd", Track::Uffd),
    ("mprotect", Track::Mprotect),
    ("hash", Track::Hash),
];
const CAPTURES: Words<Capture> = &[("stop", Capture::Stop), ("cow", Capture::Cow)];

pub(super) const TRACK: Key = Key {
    name: "track",
    help: "How changed pages are found: auto, uffd (by the kernel), mprotect (by faults; no system call may write to protected memory), hash (looks at every page; for memory that devices write)",
    default: "auto",
    set: |config, text| word(&mut config.track, TRACKS, text),
    show: |config| word_of(config.track, TRACKS),
};

pub(super) const CAPTURE: Key = Key {
    name: "capture",
    help: "Whether the program waits while its pages are taken: stop, or cow (it goes on at once; a page it writes to meanwhile is copied first)",
    default: "stop",
    set: |config, text| word(&mut config.capture, CAPTURES, text),
    show: |config| word_of(config.capture, CAPTURES),
};

pub(super) const COW_POOL: Key = Key {
    name: "cow_pool",
    help: "Memory for the copies of capture = cow, from 1MiB; fastest where it holds what changes between checkpoints",
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
