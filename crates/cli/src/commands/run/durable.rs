//! Whether a checkpoint that was asked for is durable, by what the job's store holds.

use std::time::{SystemTime, UNIX_EPOCH};

use standfast::Manifest;
use standfast::config::Config;

/// The newest checkpoint of a job, if one can be read.
fn newest(config: &Config, matches: impl Fn(&Manifest) -> bool) -> bool {
    let job = standfast_admin::open_job(config.clone());
    let inventory = job.and_then(|job| job.inventory());
    inventory.is_ok_and(|inventory| inventory.checkpoints.iter().any(matches))
}

/// Whether a version is there.
pub(super) fn has(config: &Config, version: u64) -> bool {
    newest(config, |manifest| manifest.version.0 == version)
}

/// Whether there is one that was taken after some instant, in nanoseconds since 1970.
pub(super) fn has_since(config: &Config, instant_ns: u64) -> bool {
    newest(config, |manifest| manifest.taken_ns >= instant_ns)
}

/// Now, as manifests have it.
pub(super) fn now_ns() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_nanos()).unwrap_or(u64::MAX)
}
