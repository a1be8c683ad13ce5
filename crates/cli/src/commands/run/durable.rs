//! Whether a checkpoint that was asked for is durable, by what the job's store holds.

use std::time::{SystemTime, UNIX_EPOCH};

use standfast::Manifest;
use standfast::config::Config;

/// Whether a job has such a checkpoint, as far as its store can be read.
pub(super) fn has(config: &Config, matches: impl Fn(&Manifest) -> bool) -> bool {
    let job = standfast_admin::open_job(config.clone());
    let inventory = job.and_then(|job| job.inventory());
    inventory.is_ok_and(|inventory| inventory.checkpoints.iter().any(matches))
}

/// Now, as manifests have it.
pub(super) fn now_ns() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_nanos()).unwrap_or(u64::MAX)
}
