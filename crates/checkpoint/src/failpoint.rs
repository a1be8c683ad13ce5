//! Named points between the durable steps, at which tests stop or kill the process.
//!
//! Without the feature `failpoints` there is no code behind them.

/// The points of a checkpoint: compaction, then the order of its commit and the pruning after it.
pub const FAILPOINTS: &[&str] = &[
    "compact.retired",
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

/// The points of a rank that writes through an agent, in the order of its life with one.
pub const AGENT_FAILPOINTS: &[&str] =
    &["agent.begin", "agent.units", "agent.blocks", "agent.hand_over"];

/// Passes a named point.
#[inline]
pub fn pass(name: &'static str) {
    debug_assert!(
        [FAILPOINTS, RING_FAILPOINTS, AGENT_FAILPOINTS].concat().contains(&name),
        "{name} is listed"
    );
    #[cfg(feature = "failpoints")]
    fail::fail_point!(name);
    #[cfg(not(feature = "failpoints"))]
    let _ = name;
}
