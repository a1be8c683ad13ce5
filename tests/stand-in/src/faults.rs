//! Faults to come, and where.

use std::sync::{Arc, Mutex, PoisonError};

use standfast_gpu::{Error, Result};

/// What a device is asked to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// Waiting for the program's work.
    Wait,
    /// A plain copy, either way.
    Copy,
    /// Memory to follow a region.
    Tracker,
    /// Hashing.
    Scan,
    /// Memory for staging.
    Arena,
    /// Staging.
    Stage,
    /// Memory for encoding.
    Lane,
    /// Encoding.
    Encode,
}

/// Faults to come, shared with whoever plans them.
#[derive(Clone, Default)]
pub struct Faults(Arc<Mutex<Vec<(Step, Error, usize)>>>);

impl Faults {
    /// Makes the next `times` of this step fail.
    pub fn plan(&self, step: Step, error: Error, times: usize) {
        self.lock().push((step, error, times));
    }

    /// No more faults.
    pub fn clear(&self) {
        self.lock().clear();
    }

    /// Fails if a fault is planned for this step.
    pub fn check(&self, step: Step) -> Result<()> {
        let mut planned = self.lock();
        let Some(at) = planned.iter().position(|(of, _, times)| *of == step && *times > 0) else {
            return Ok(());
        };
        planned[at].2 -= 1;
        Err(planned[at].1.clone())
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Vec<(Step, Error, usize)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
