//! Checkpoints of many ranks into one shared store: plain, compressed in turn, compressed in a
//! pipeline; where each saturates and where compression starts to pay.
//!
//! Data: [`Stages`] of one rank and the shared rate -> times as functions of the rank count.
//!
//! The published formulas leave a gap at the saturation point (the time drops when one more
//! rank joins). [`Form::Printed`] keeps them as they stand; [`Form::Continuous`] lets a rank
//! below saturation write at its own rate, which closes the gap and is what the simulator sees.
//!
//! Invariants:
//! - Rank counts are real numbers here, so that crossing points can be solved for.

use standfast_model::bounds::{non_negative, positive};
use standfast_model::{ModelError, Result};

/// Which reading of the formulas to use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// As printed, with its jump at saturation.
    Printed,
    /// Without the jump.
    Continuous,
}

/// What one rank does for a checkpoint, and the store all ranks share.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Stages {
    bytes: f64,
    collect_s: f64,
    zip_s: f64,
    stored_share: f64,
    rank_bps: f64,
    shared_bps: f64,
}

impl Stages {
    /// `stored_share` is compressed over raw size; `rank_bps` what one rank can write alone.
    pub fn new(
        bytes: f64,
        collect_s: f64,
        zip_s: f64,
        stored_share: f64,
        rank_bps: f64,
        shared_bps: f64,
    ) -> Result<Self> {
        positive("stored_share", stored_share)?;
        if stored_share > 1.0 {
            return Err(ModelError::Field {
                field: "stored_share".to_owned(),
                rule: "at most 1",
                value: stored_share,
            });
        }
        Ok(Self {
            bytes: positive("bytes", bytes)?,
            collect_s: non_negative("collect_s", collect_s)?,
            zip_s: non_negative("zip_s", zip_s)?,
            stored_share,
            rank_bps: positive("rank_bps", rank_bps)?,
            shared_bps: positive("shared_bps", shared_bps)?,
        })
    }

    /// Ranks that fill the shared store when writing raw bytes.
    pub fn saturation(&self) -> f64 {
        self.shared_bps / self.rank_bps
    }

    /// The same for compressed bytes, for ranks that produce raw bytes at `rank_bps`.
    pub fn saturation_compressed(&self) -> f64 {
        self.saturation() / self.stored_share
    }

    /// The same when compression runs in a pipeline and paces the writing.
    pub fn saturation_pipelined(&self) -> f64 {
        self.pace_s() / self.turn_s(self.stored_share)
    }

    /// Time without compression.
    pub fn plain_s(&self, ranks: f64, form: Form) -> f64 {
        self.collect_s + self.store_s(ranks, 1.0, form)
    }

    /// Time when each rank collects, then compresses, then writes.
    pub fn serial_s(&self, ranks: f64, form: Form) -> f64 {
        self.collect_s + self.zip_s + self.store_s(ranks, self.stored_share, form)
    }

    /// Time when the three stages overlap.
    pub fn pipelined_s(&self, ranks: f64) -> f64 {
        let beyond = (ranks - self.saturation_pipelined()).max(0.0);
        self.pace_s() + beyond * self.turn_s(self.stored_share)
    }

    /// Ranks from which compressing in turn beats not compressing: 0 when it always does, none
    /// when it saves no bytes.
    pub fn beneficial_serial(&self) -> Option<f64> {
        if self.stored_share >= 1.0 {
            return None;
        }
        let saved = 1.0 - self.stored_share;
        if self.zip_s <= saved * self.bytes / self.rank_bps {
            return Some(0.0);
        }
        Some(self.zip_s / self.turn_s(saved))
    }

    /// Ranks from which the pipeline beats not compressing; 0 when it always does.
    pub fn beneficial_pipelined(&self) -> f64 {
        let alone = self.collect_s + self.bytes / self.rank_bps;
        if self.pace_s() <= alone {
            return 0.0;
        }
        (self.pace_s() - self.collect_s) / self.turn_s(1.0)
    }

    /// The slower of collecting and compressing.
    fn pace_s(&self) -> f64 {
        self.collect_s.max(self.zip_s)
    }

    /// The shared store's time for one rank's bytes.
    fn turn_s(&self, stored_share: f64) -> f64 {
        stored_share * self.bytes / self.shared_bps
    }

    fn store_s(&self, ranks: f64, stored_share: f64, form: Form) -> f64 {
        let saturation = self.saturation() / stored_share;
        let turn = self.turn_s(stored_share);
        match form {
            Form::Printed if ranks <= saturation => turn,
            Form::Printed => (ranks - saturation) * turn,
            Form::Continuous => {
                let alone = stored_share * self.bytes / self.rank_bps;
                alone.max(ranks * turn)
            }
        }
    }
}

#[cfg(test)]
mod tests;
