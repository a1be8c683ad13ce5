//! What an agent tells about itself.

use serde::{Deserialize, Serialize};

/// An agent and its sessions.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Status {
    /// Its process.
    pub pid: u32,
    /// The version of Standfast it was built from.
    pub version: String,
    /// How long it has been running.
    pub uptime_s: u64,
    /// How long ago it last told its ranks that it lives.
    pub beat_ms: u64,
    /// Whether it is about to end.
    pub stopping: bool,
    /// Writes of segment data so far.
    pub writes: u64,
    /// Their bytes.
    pub written_bytes: u64,
    /// Its jobs.
    pub sessions: Vec<SessionStatus>,
    /// Stores that it drains to global storage.
    pub drains: Vec<DrainStatus>,
}

/// One store's way to global storage.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DrainStatus {
    /// Where the store is.
    pub store: String,
    /// Where it is drained to.
    pub global: String,
    /// Whether a job uses the store.
    pub has_job: bool,
    /// The checkpoint that is on its way, if any.
    pub under_way: Option<u64>,
    /// What the target lacked of it when it was begun.
    pub under_way_bytes: u64,
    /// Bytes of the store that were dealt with, of all checkpoints.
    pub read_bytes: u64,
    /// Bytes that were sent.
    pub sent_bytes: u64,
    /// Time of waiting for programs.
    pub paused_ms: u64,
    /// Checkpoints that have arrived.
    pub arrived: u64,
    /// The one that has arrived last.
    pub newest: Option<u64>,
    /// What it waits for, where something failed that may pass.
    pub waits_for: Option<String>,
}

/// One job's session.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SessionStatus {
    /// Where its store is.
    pub store: String,
    /// Its ranks.
    pub ranks: u32,
    /// Ranks that are connected.
    pub connected: u32,
    /// Size of its pool.
    pub pool_bytes: u64,
    /// Units of the pool.
    pub units: u32,
    /// Those that are free.
    pub units_free: u32,
    /// Those that ranks are filling.
    pub units_leased: u32,
    /// Most units that were in use at once.
    pub units_peak: u32,
    /// Ranks that wait for units.
    pub ranks_waiting: u32,
    /// The checkpoint under way, if any.
    pub under_way: Option<u64>,
    /// Whether all ranks have handed it over.
    pub committing: bool,
    /// Checkpoints made durable.
    pub committed: u64,
    /// Attempts that failed.
    pub failed: u64,
    /// Blocks received.
    pub blocks: u64,
    /// Their bytes before compression.
    pub block_bytes: u64,
}
