//! What is simulated.

mod agent;
mod commit;
mod drain;
mod job;

use std::sync::Arc;

use crate::world::World;

/// A scenario: a name, and what one run of it does.
#[derive(Clone, Copy)]
pub struct Scenario {
    /// Its name.
    pub name: &'static str,
    /// What it is about.
    pub about: &'static str,
    pub(crate) run: fn(&Arc<World>),
}

/// All scenarios.
pub const SCENARIOS: &[Scenario] = &[
    Scenario {
        name: "commit",
        about: "commit, inventory and prune without pages, by ranks or by an agent for all",
        run: commit::run,
    },
    Scenario {
        name: "job",
        about: "jobs on one store or one per node: commit, prune, restart, crashes, failures",
        run: |world| job::run(world, false, 3),
    },
    Scenario {
        name: "compact",
        about: "many checkpoints, so that pages of mostly empty segments are stored again",
        run: |world| job::run(world, false, 14),
    },
    Scenario {
        name: "ring",
        about: "the same with shards, and lost nodes",
        run: |world| job::run(world, true, 3),
    },
    Scenario {
        name: "drain",
        about: "a job and a drain beside it; the machine is lost and fetches its checkpoints",
        run: drain::run,
    },
    Scenario {
        name: "agent",
        about: "sessions of agents that commit or pledge, and jobs that redeem pledges",
        run: agent::run,
    },
];
