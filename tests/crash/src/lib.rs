//! Crash tests: a real program is killed, and what it was told is durable must come back.
//!
//! ```text
//! test -> worker (first life): protects, checkpoints, reports, dies at the point under test
//!      -> worker (second life): the checker opens the same store and looks at everything
//! ```
//!
//! The first life's death is asserted: it must be a SIGKILL, at that point. The checker proves
//! itself on planted bugs (`tests/planted.rs`).
//!
//! This package holds what the worker and the tests share; the tests are in `tests/`:
//! `failpoints` (a kill at every named point), `instants` (a kill at any time), `agent` (ranks and the
//! node's agent killed at any time), `ring` (nodes lost with their disks), `power` (the
//! file system goes down), `limits` (full, read-only, locked and newer stores), `planted`.
//!
//! Settings of a longer run, read from the environment:
//! - `STANDFAST_TEST_CRASH_ALL=1`: every passage of every point, not a selection.
//! - `STANDFAST_TEST_KILLS=n`: so many kills at random instants.
//! - `STANDFAST_TEST_AGENT_KILLS=n`: so many kills of ranks and of the node's agent.
//! - `STANDFAST_TEST_SEED=n`: where the random instants and contents come from.

pub mod agents;
pub mod checker;
pub mod die;
pub mod life;
pub mod mount;
pub mod node;
pub mod program;
pub mod report;
pub mod ring;

/// A number from the environment, for longer runs and for repeating one.
pub fn setting(name: &str, usual: u64) -> u64 {
    let text = std::env::var(name).ok();
    text.map_or(usual, |text| text.parse().unwrap_or_else(|_| panic!("{name} is not a number")))
}

/// The next number of a sequence that a seed decides.
pub fn random(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut z = *state;
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}
