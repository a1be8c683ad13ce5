//! Named points between the durable steps, at which tests stop or kill the process.
//!
//! Without the feature `failpoints` there is no code behind them.

/// The points of a checkpoint, in the order of a checkpoint's commit and the pruning after it.
pub const FAILPOINTS: &[&str] = &[
    "commit.before_segments",
    "commit.before_image",
    "commit.before_manifest",
    "commit.after_manifest",
    "prune.before_manifest",
    "prune.before_image",
    "prune.before_segment",
];

/// The points of a checkpoint on its way to the ring and of a restart from there; only jobs whose
/// nodes have stores of their own pass them.
pub const RING_FAILPOINTS: &[&str] =
    &["ring.before_shards", "ring.before_record", "ring.before_rebuild"];

/// Passes a named point.
#[inline]
pub fn pass(name: &'static str) {
    debug_assert!(
        FAILPOINTS.contains(&name) || RING_FAILPOINTS.contains(&name),
        "{name} is listed"
    );
    #[cfg(feature = "failpoints")]
    fail::fail_point!(name);
    #[cfg(not(feature = "failpoints"))]
    let _ = name;
}
