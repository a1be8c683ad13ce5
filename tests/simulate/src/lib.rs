//! A deterministic simulator over Standfast's own protocol code.
//!
//! ```text
//! seed -> World: clock, stores, messages, crashes, failures -> the product's code -> Oracle
//! ```
//! One thread runs all ranks as fibers; the seed picks who is next at every call of a store or a
//! communicator, how long a message takes, which call fails and how, who is killed where. A run is
//! reproduced by its seed.
//!
//! The oracle: nothing that was acknowledged is lost as long as failures stay within what was
//! promised; nothing wrong comes back; no step back in time; nobody waits for ever; no sealed or
//! committed file is replaced; nothing is removed that a checkpoint needs.
//!
//! What this is not: a test of the operating system's part. Directory stores, sockets and trackers
//! have tests of their own, on real kernels.

mod chance;
pub mod fibers;
mod life;
pub mod messages;
mod oracle;
mod scenario;
pub mod store;
pub mod world;

pub use chance::{Chance, mix};
pub use life::{Life, Rates};
pub use scenario::{SCENARIOS, Scenario};

pub use world::Outcome;
use world::World;

/// A bug that a run has on purpose: the simulator must find it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Planted {
    /// Commit: images are acknowledged before they are synced.
    ImageUnsynced,
    /// Prune: it goes by an inventory that does not know the newest checkpoint.
    PruneBlind,
    /// Drain: global storage acknowledges segments before they are synced.
    UploadUnsynced,
    /// Ring: shards are acknowledged and not written.
    ShardLost,
    /// Agent: ranks are told that a checkpoint is durable when it is handed over.
    AgentEarly,
    /// Compaction: what a new checkpoint refers to no more is removed, though older ones need it.
    CompactEager,
    /// Commit: the first rank writes the manifest without hearing of the others' images.
    ManifestEarly,
}

/// Bugs, and the scenario that finds each.
pub const PLANTED: &[(&str, Planted)] = &[
    ("commit", Planted::ManifestEarly),
    ("commit", Planted::PruneBlind),
    ("job", Planted::ImageUnsynced),
    ("compact", Planted::CompactEager),
    ("drain", Planted::UploadUnsynced),
    ("ring", Planted::ShardLost),
    ("agent", Planted::AgentEarly),
];

impl Scenario {
    /// The scenario of this name.
    pub fn of(name: &str) -> Option<&'static Scenario> {
        SCENARIOS.iter().find(|scenario| scenario.name == name)
    }

    /// One run. Traces take time: they are for runs that are shown.
    pub fn run_seed(&self, seed: u64, planted: Option<Planted>, is_traced: bool) -> Outcome {
        let world = World::new(seed, planted, is_traced);
        (self.run)(&world);
        world.outcome()
    }
}
