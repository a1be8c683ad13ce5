//! Size, change, capture rate and drain rate from what a job has already done.
//!
//! Data: [`Checkpoint`]s of one node, oldest first -> [`measured`] -> [`Inputs`]; [`Drain`]s of
//! one store -> [`drain_rate`].
//!
//! The first checkpoint stores everything; what changes from one to the next shows in the others.
//!
//! Invariants:
//! - Checkpoints that say nothing (no bytes, no time) change nothing.

use super::Inputs;

/// What one checkpoint of one node told.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Checkpoint {
    /// Protected memory.
    pub protected_bytes: f64,
    /// Of these, what had to be stored.
    pub changed_bytes: f64,
    /// How long the program stood still.
    pub blocked_s: f64,
}

/// What one drain told.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Drain {
    /// What arrived in global storage.
    pub sent_bytes: f64,
    /// How long it took.
    pub elapsed_s: f64,
}

/// Bytes per second that drains brought to global storage; none where they sent nothing.
pub(super) fn drain_rate(drains: &[Drain]) -> Option<f64> {
    let total = |part: fn(&Drain) -> f64| drains.iter().map(part).sum::<f64>();
    let rate = total(|drain| drain.sent_bytes) / total(|drain| drain.elapsed_s);
    (rate.is_finite() && rate > 0.0).then_some(rate)
}

/// Overwrites the inputs that checkpoints tell; returns their fields.
pub fn measured(checkpoints: &[Checkpoint], inputs: &mut Inputs) -> Vec<&'static str> {
    let mut used = Vec::new();
    let newest = checkpoints.last().map_or(0.0, |checkpoint| checkpoint.protected_bytes);
    if newest > 0.0 {
        inputs.job.bytes_per_node = newest;
        used.push("bytes_per_node");
    }
    let later = checkpoints.get(1..).unwrap_or_default();
    let changed = sum(later, |it| it.changed_bytes) / sum(later, |it| it.protected_bytes);
    if changed.is_finite() && changed > 0.0 {
        inputs.job.changed_share = changed.min(1.0);
        used.push("changed_share");
    }
    // Where hardly anything changes, the time goes into looking, not into copying: the full
    // checkpoint would promise too much.
    let typical = if later.is_empty() { checkpoints } else { later };
    let rate = sum(typical, |it| it.changed_bytes) / sum(typical, |it| it.blocked_s);
    if rate.is_finite() && rate > 0.0 {
        inputs.rates.capture_bps = rate;
        used.push("capture_bps");
    }
    used
}

fn sum(checkpoints: &[Checkpoint], part: fn(&Checkpoint) -> f64) -> f64 {
    checkpoints.iter().map(part).sum()
}

#[cfg(test)]
mod tests;
