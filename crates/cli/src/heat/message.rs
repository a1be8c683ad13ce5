//! What the solver tells the demonstration: one JSON line per event on its stdout.

use serde::{Deserialize, Serialize};
use standfast::Stats;

/// An event in the solver's life.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "lowercase")]
pub(crate) enum Message {
    /// The state is ready.
    Started {
        /// The first step to compute.
        step: u64,
        /// The checkpoint it came from.
        version: Option<u64>,
        /// Newer checkpoints that could not be used.
        passed_over: usize,
    },
    /// So many steps are done.
    Step {
        /// How many.
        step: u64,
    },
    /// A checkpoint is durable.
    Checkpoint {
        /// Which one.
        version: u64,
        /// Steps done when it was taken.
        step: u64,
        /// Its figures.
        stats: Stats,
    },
    /// The answer is written.
    Finished {
        /// Steps computed by this process.
        steps: u64,
        /// How long they took, checkpoints included.
        seconds: f64,
    },
}

#[cfg(test)]
mod tests;
