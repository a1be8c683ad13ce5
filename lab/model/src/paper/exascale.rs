//! The projected exascale machine of the NDP paper and its four configurations.
//!
//! Data: machine sizes (inputs) -> [`Exascale::host`],
//! [`Exascale::drained`] -> [`Outcome`].
//!
//! Open in the paper, so explicit in [`Assumptions`]: how lost work is accounted, whether
//! failures strike during far restores, how fast the host compresses, and when a drained
//! checkpoint counts.
//!
//! Invariants:
//! - Bytes and rates are per node.

use serde::Serialize;

use super::pace::Pace;
use super::study::{GB, MB};
use standfast_model::Result;
use standfast_model::codec::Codec;
use standfast_model::drain::{Drained, Visibility};
use standfast_model::levels::{Hierarchy, Level, Outcome, Pattern};
use standfast_model::search::peak_count;
use standfast_model::single::Single;

/// How the work lost to far failures is counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub enum Accounting {
    /// Redone at the job's overall pace.
    OverallPace,
    /// Exact renewal equations.
    Renewal,
}

/// What the paper leaves open.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Assumptions {
    /// How lost work is counted.
    pub accounting: Accounting,
    /// Whether failures strike during far restores.
    pub disturbed_restores: bool,
    /// How fast a node's host compresses, bytes/s.
    pub host_compress_bps: f64,
    /// Whether a drain counts from its start; only the renewal accounting can count its latency.
    pub drains_count_at_once: bool,
}

impl Assumptions {
    /// The set that fits the paper's numbers best; see the `ndp-headline` reproduction.
    pub fn fitting() -> Self {
        Self {
            accounting: Accounting::OverallPace,
            disturbed_restores: false,
            host_compress_bps: 640.0 * MB,
            drains_count_at_once: true,
        }
    }

    /// The same in words.
    pub fn describe(&self) -> Vec<String> {
        let far = if self.disturbed_restores {
            "failures strike during restores from the global level too"
        } else {
            "no failure strikes during a restore from the global level"
        };
        let lost = match self.accounting {
            Accounting::OverallPace => "lost work is redone at the job's overall pace",
            Accounting::Renewal => "lost work is counted exactly, by renewal equations",
        };
        let drain = if self.drains_count_at_once {
            "a drained checkpoint counts from the start of its drain"
        } else {
            "a drained checkpoint counts when its drain has finished"
        };
        vec![
            lost.to_owned(),
            far.to_owned(),
            format!(
                "the host compresses at {:.0} MB/s per node, overlapped with writing",
                self.host_compress_bps / MB
            ),
            drain.to_owned(),
            "a drain spans whole intervals; it pauses while the host writes".to_owned(),
        ]
    }
}

/// The machine and one job on it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Exascale {
    pub(super) mtti_s: f64,
    pub(super) bytes: f64,
    pub(super) local_bps: f64,
    pub(super) global_bps: f64,
    pub(super) agent_compress_bps: f64,
    pub(super) decompress_bps: f64,
    pub(super) assumptions: Assumptions,
    /// Fixed interval, or Daly's for the local level.
    pub(super) interval_s: Option<f64>,
}

impl Exascale {
    /// Sizes of the paper's parameter table.
    pub(super) fn new(assumptions: Assumptions) -> Self {
        Self {
            mtti_s: 1800.0,
            bytes: 0.8 * 140.0 * GB,
            local_bps: 15.0 * GB,
            global_bps: 10e12 / 100_000.0,
            agent_compress_bps: 4.0 * 110.1 * MB,
            decompress_bps: 16.0 * GB,
            assumptions,
            interval_s: Some(150.0),
        }
    }

    pub(super) fn local_s(&self) -> f64 {
        self.bytes / self.local_bps
    }

    pub(super) fn interval_s(&self) -> f64 {
        self.interval_s.unwrap_or_else(|| {
            Single::new(self.mtti_s, self.local_s(), self.local_s())
                .expect("sizes of the machine are positive")
                .daly_interval_s()
        })
    }

    /// Far commit and restore of a checkpoint; a factor of zero means no compression at all.
    fn far_s(&self, factor: f64, compress_bps: f64) -> Result<(f64, f64)> {
        if factor == 0.0 {
            let plain = self.bytes / self.global_bps;
            return Ok((plain, plain));
        }
        let codec = Codec::new(factor, compress_bps, self.decompress_bps)?;
        Ok((
            codec.commit_s(self.bytes, self.global_bps)?,
            codec.restore_s(self.bytes, self.global_bps)?,
        ))
    }

    fn pace(&self, near: f64, far_restore_s: f64) -> Pace {
        Pace {
            mtti_s: self.mtti_s,
            interval_s: self.interval_s(),
            near,
            near_commit_s: self.local_s(),
            far_restore_s,
            disturbed: self.assumptions.disturbed_restores,
        }
    }

    fn hierarchy(&self, near: f64, far_commit_s: f64, far_restore_s: f64) -> Result<Hierarchy> {
        let levels = vec![
            Level::new(self.local_s(), self.local_s(), near)?,
            Level::new(far_commit_s, far_restore_s, 1.0 - near)?,
        ];
        let hierarchy = Hierarchy::new(self.mtti_s, levels)?;
        Ok(if self.assumptions.disturbed_restores {
            hierarchy
        } else {
            hierarchy.with_undisturbed_restores()
        })
    }

    /// Efficiency when every checkpoint goes to the far level, at Daly's interval for it.
    pub(super) fn global_only(&self, factor: f64) -> Result<f64> {
        let (commit, restore) = self.far_s(factor, self.assumptions.host_compress_bps)?;
        let single = Single::new(self.mtti_s, commit, restore)?;
        single.efficiency(single.daly_interval_s())
    }

    /// The host writes both levels with the given ratio.
    pub(super) fn host_at(&self, near: f64, factor: f64, ratio: u64) -> Result<Outcome> {
        let (commit, restore) = self.far_s(factor, self.assumptions.host_compress_bps)?;
        match self.assumptions.accounting {
            Accounting::OverallPace => Ok(self.pace(near, restore).host(ratio, commit)),
            Accounting::Renewal => self
                .hierarchy(near, commit, restore)?
                .outcome(&Pattern { interval_s: self.interval_s(), every: vec![ratio] }),
        }
    }

    /// The best ratio of local to global checkpoints for the host.
    pub(super) fn best_ratio(&self, near: f64, factor: f64) -> u64 {
        peak_count(2048, |ratio| {
            self.host_at(near, factor, ratio).map_or(0.0, |outcome| outcome.efficiency)
        })
    }

    /// The host writes both levels, at the best ratio.
    pub(super) fn host(&self, near: f64, factor: f64) -> Result<Outcome> {
        self.host_at(near, factor, self.best_ratio(near, factor))
    }

    /// Intervals that one drain spans.
    pub(super) fn drain_ratio(&self, factor: f64) -> Result<u64> {
        let (drain, _) = self.far_s(factor, self.agent_compress_bps)?;
        Ok((drain / self.interval_s() * (1.0 - 1e-12)).ceil().max(1.0) as u64)
    }

    /// The agent drains as often as it can.
    pub(super) fn drained(&self, near: f64, factor: f64) -> Result<Outcome> {
        let (drain, restore) = self.far_s(factor, self.agent_compress_bps)?;
        match self.assumptions.accounting {
            Accounting::OverallPace => {
                Ok(self.pace(near, restore).drained(self.drain_ratio(factor)?))
            }
            Accounting::Renewal => {
                let view = if self.assumptions.drains_count_at_once {
                    Visibility::Immediate
                } else {
                    Visibility::Published
                };
                let hierarchy = self.hierarchy(near, 0.0, restore)?;
                Drained::new(hierarchy, drain, view)?
                    .outcome(&Pattern { interval_s: self.interval_s(), every: vec![] })
            }
        }
    }
}
