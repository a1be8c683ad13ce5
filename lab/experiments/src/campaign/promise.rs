//! What a job was promised, and what is left of that after a fault. Pure.
//!
//! ```text
//! told: durable on the nodes, on the ring -> fault leaves a level standing -> the next life begins
//! at the least of it or later, and at no step that was never begun
//! ```
//! The ring brings back what one loss has cost. A second loss before a restart has made it whole
//! again may be one too many, so then nothing of the ring counts.

use super::fault::Leaves;
use super::life::Heard;

/// Steps that were promised, by level; 0: none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Promise {
    local: u64,
    ring: u64,
    /// Whether nothing was lost since the ring had all pieces.
    ring_is_whole: bool,
    /// The last step that was begun.
    begun: u64,
    /// Whether a fault may have left what is there beyond use.
    is_damaged: bool,
}

impl Default for Promise {
    fn default() -> Self {
        Self { local: 0, ring: 0, ring_is_whole: true, begun: 0, is_damaged: false }
    }
}

impl Promise {
    /// Takes in what a life has told.
    pub(super) fn hear(&mut self, heard: Heard) {
        self.begun = self.begun.max(heard.begun);
        self.local = self.local.max(heard.local);
        if heard.ring > 0 {
            (self.ring, self.ring_is_whole) = (self.ring.max(heard.ring), true);
        }
    }

    /// Takes in a fault; `global`: what global storage has.
    pub(super) fn meet(&mut self, leaves: Leaves, global: u64) {
        let ring = if self.ring_is_whole { self.ring } else { 0 };
        match leaves {
            Leaves::Local => self.local = self.local.max(global),
            Leaves::Ring => {
                self.local = ring.max(global);
                (self.ring, self.ring_is_whole) = (ring, false);
                self.is_damaged = true;
            }
            Leaves::Global => {
                (self.local, self.ring) = (global, 0);
                self.is_damaged = true;
            }
        }
    }

    /// The step that the next life begins after at the least.
    pub(super) fn least(&self) -> u64 {
        self.local
    }

    /// Whether a fault may have left something damaged that nobody has looked at since.
    pub(super) fn is_damaged(&self) -> bool {
        self.is_damaged
    }

    /// Whether a life that says that it cannot begin breaks no promise.
    pub(super) fn may_fail(&self) -> bool {
        self.is_damaged && self.local == 0
    }

    /// A life has begun after this step.
    pub(super) fn kept_by(&mut self, step: u64) -> Result<(), String> {
        let Self { local, begun, .. } = *self;
        if !(local..=begun).contains(&step) {
            return Err(format!("it begins after step {step}, not from {local} to {begun}"));
        }
        if !self.ring_is_whole {
            // Only what was restored was made whole again, and a shard that nobody has read may
            // still be damaged.
            self.ring = 0;
        }
        (self.local, self.ring_is_whole, self.is_damaged) = (step, true, false);
        Ok(())
    }
}

#[cfg(test)]
mod tests;
