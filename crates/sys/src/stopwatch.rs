//! How long a thing takes, by a clock that a simulator can replace.
//!
//! What is measured is written down in manifests: a simulated run that measured real time would not
//! write the same bytes twice.

use std::time::Instant;

/// Measures from its start.
#[derive(Clone, Copy, Debug)]
pub struct Stopwatch {
    started: Instant,
    /// What it had measured before.
    before_ns: u64,
    #[cfg(feature = "simulation")]
    simulated_ns: Option<u64>,
}

impl Stopwatch {
    /// Starts now.
    pub fn start() -> Self {
        Self {
            started: Instant::now(),
            before_ns: 0,
            #[cfg(feature = "simulation")]
            simulated_ns: simulated_ns(),
        }
    }

    /// Nanoseconds since its start.
    pub fn ns(&self) -> u64 {
        let passed_ns = || u64::try_from(self.started.elapsed().as_nanos()).unwrap_or(u64::MAX);
        #[cfg(feature = "simulation")]
        let passed_ns = || match (self.simulated_ns, simulated_ns()) {
            (Some(then), Some(now)) => now.saturating_sub(then),
            _ => passed_ns(),
        };
        self.before_ns.saturating_add(passed_ns())
    }

    /// Carries on with what another one had measured when this one was started.
    pub fn after(self, before_ns: u64) -> Self {
        Self { before_ns, ..self }
    }

    /// Nanoseconds since its start; starts again.
    pub fn lap_ns(&mut self) -> u64 {
        std::mem::replace(self, Self::start()).ns()
    }
}

#[cfg(feature = "simulation")]
fn simulated_ns() -> Option<u64> {
    crate::identity::simulation::ask(|source| source.now_ns())
}
