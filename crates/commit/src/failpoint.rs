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

/// Passes a named point.
#[inline]
pub fn pass(name: &'static str) {
    debug_assert!(FAILPOINTS.contains(&name), "{name} is listed");
    #[cfg(feature = "failpoints")]
    fail::fail_point!(name);
    #[cfg(not(feature = "failpoints"))]
    let _ = name;
}
