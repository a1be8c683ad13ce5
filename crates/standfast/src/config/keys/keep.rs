//! Which checkpoints stay, and what the store may take.

use super::Key;
use super::text::{Words, assign, number, word, word_of};

/// What a checkpoint does for which a bounded local store has no room.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WhenFull {
    /// It fails, before anything of the program is touched.
    Error,
    /// It waits for whoever holds what could go.
    Wait,
}

const WHEN_FULLS: Words<WhenFull> = &[("error", WhenFull::Error), ("wait", WhenFull::Wait)];

pub(super) const KEEP: Key = Key {
    name: "keep",
    help: "Checkpoints kept; older ones are pruned after each commit; 0 keeps all",
    default: "8",
    set: |config, text| number(&mut config.keep, text, 0, u32::MAX),
    show: |config| config.keep.to_string(),
};

pub(super) const KEEP_GLOBAL: Key = Key {
    name: "keep_global",
    help: "Checkpoints kept in global storage; older ones are pruned there when one has arrived; 0 keeps all",
    default: "0",
    set: |config, text| number(&mut config.keep_global, text, 0, u32::MAX),
    show: |config| config.keep_global.to_string(),
};

pub(super) const KEEP_EVERY: Key = Key {
    name: "keep_every",
    help: "Of so many checkpoints one stays for ever: in global storage, or in the store where there is none; 0: none does",
    default: "0",
    set: |config, text| number(&mut config.keep_every, text, 0, u64::MAX),
    show: |config| config.keep_every.to_string(),
};

pub(super) const LOCAL_BYTES: Key = Key {
    name: "local_bytes",
    help: "What the store of a node may take: before a checkpoint the oldest ones make room for all protected memory; 0: no bound",
    default: "0",
    set: |config, text| assign(&mut config.local_bytes, text),
    show: |config| config.local_bytes.to_string(),
};

pub(super) const WHEN_FULL: Key = Key {
    name: "when_full",
    help: "When nothing can make room: error (the checkpoint fails before memory is touched), wait (for a drain or a reader that holds what could go)",
    default: "error",
    set: |config, text| word(&mut config.when_full, WHEN_FULLS, text),
    show: |config| word_of(config.when_full, WHEN_FULLS),
};
