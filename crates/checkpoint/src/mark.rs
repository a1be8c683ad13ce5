//! Marks: checkpoints that a lazy restart found damaged, told to whoever restarts next.
//!
//! Data: a page that cannot be brought -> [`put`] -> the program ends -> the next restart asks
//! [`find`] and reads that checkpoint as a whole before it goes on -> [`clear`] if it is whole again.
//!
//! That a mark exists is what counts; its text says why, for people.
//!
//! Invariants:
//! - A mark is durable before the program ends that found the damage.
//! - A mark takes nothing away: it makes readers careful, and prune keep more ([`crate::prune`]).
//!   So one that cannot be read counts, and one too many costs time only.
//! - It names the attempt: another checkpoint of that version is not marked.

use std::collections::BTreeSet;

use standfast_format::{AttemptId, Kind, Version, name};
use standfast_store::{ObjectMeta, Result, Store};

/// Longest text of a mark, in bytes.
pub const TEXT_BYTES_MAX: usize = 4096;

/// Marks an attempt's checkpoint as damaged, with the reason.
pub fn put(store: &dyn Store, version: Version, attempt: AttemptId, why: &str) -> Result<()> {
    let text = &why.as_bytes()[..why.len().min(TEXT_BYTES_MAX)];
    store.put(&name::mark(version, attempt), text)
}

/// Why a checkpoint is marked, if it is.
pub fn find(store: &dyn Store, version: Version, attempt: AttemptId) -> Option<String> {
    match store.get(&name::mark(version, attempt), TEXT_BYTES_MAX as u64) {
        Ok(text) => Some(String::from_utf8_lossy(&text).replace(char::is_control, "?")),
        Err(error) if error.kind() == Kind::Missing => None,
        Err(error) => Some(error.to_string()),
    }
}

/// Takes the mark from a checkpoint; tells whether it had one.
pub fn clear(store: &dyn Store, version: Version, attempt: AttemptId) -> Result<bool> {
    match store.remove(&name::mark(version, attempt)) {
        Err(error) if error.kind() == Kind::Missing => Ok(false),
        removed => removed.map(|()| true),
    }
}

/// The attempts whose marks are among these objects.
pub fn attempts(objects: &[ObjectMeta]) -> BTreeSet<AttemptId> {
    let marks = objects.iter().filter_map(|object| name::parse_mark(&object.name));
    marks.map(|(_, attempt)| attempt).collect()
}

#[cfg(test)]
mod tests;
