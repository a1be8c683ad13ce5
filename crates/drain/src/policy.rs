//! Which checkpoint to drain next. Pure.
//!
//! Data: local manifests and global manifests, newest first -> what is still to be carried, in the
//! order in which it should be.
//!
//! Why newest first: what counts after a failure is how much work is lost, and that is decided by
//! the newest checkpoint that survived. An older one is worth its bandwidth only to somebody who
//! wants the history.

use std::time::Duration;

use standfast_format::Manifest;

/// Which checkpoints go to global storage.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Policy {
    /// The newest one each time the previous one has arrived, as often as bandwidth allows; what
    /// is older than the newest global one is stale.
    #[default]
    Newest,
    /// Every so many, counted over all checkpoints of the job; 1: all.
    Every(u64),
}

/// What is to be carried, in order.
pub fn due<'a>(policy: Policy, local: &'a [Manifest], global: &[Manifest]) -> Vec<&'a Manifest> {
    let is_there = |manifest: &Manifest| {
        global
            .iter()
            .any(|other| other.version == manifest.version && other.attempt == manifest.attempt)
    };
    let newest_there = global.iter().map(|manifest| manifest.sequence).max();
    let mut due: Vec<&Manifest> = local.iter().filter(|manifest| !is_there(manifest)).collect();
    match policy {
        Policy::Newest => {
            due.retain(|manifest| newest_there.is_none_or(|there| manifest.sequence > there));
        }
        Policy::Every(count) => {
            due.retain(|manifest| manifest.sequence.is_multiple_of(count.max(1)));
        }
    }
    due.sort_by_key(|manifest| std::cmp::Reverse(manifest.sequence));
    due
}

/// Of candidates, newest first, with the bytes that each still lacks, the one to go on with when
/// time is short: the newest that will arrive in time at this rate; if none will, or nobody knows
/// the rate yet, the newest.
pub fn in_time(lacking: &[u64], bytes_per_s: Option<f64>, left: Duration) -> Option<usize> {
    let fits =
        |bytes: &u64| bytes_per_s.is_none_or(|rate| *bytes as f64 <= rate * left.as_secs_f64());
    lacking.iter().position(fits).or((!lacking.is_empty()).then_some(0))
}

#[cfg(test)]
mod tests;
