//! How changed pages are found.

use super::LabKey;
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
