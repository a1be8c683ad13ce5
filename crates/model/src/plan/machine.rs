//! From inputs to levels: what a commit and a restore cost with a given codec and groups.
//!
//! Data: [`Inputs`] and a codec -> [`Machine`] -> best pattern -> [`Chosen`].
//!
//! A checkpoint blocks while its changed pages are copied into the pool, and, where they do not
//! fit, while the rest is written. The codec works on the way out of the pool; shards are encoded
//! and checkpoints drained from compressed data. Without an agent the host waits for encoding
//! and for the global store as well.
//!
//! Invariants:
//! - A restore moves the whole state, a commit only what changed.

use crate::codec::Codec;
use crate::drain::{Drained, Visibility};
use crate::error::{ModelError, Result};
use crate::levels::{Hierarchy, Level, Outcome, Pattern};
use crate::ring::{Bursts, Groups, StarCost};

use super::Inputs;

/// Block of the star encoding; larger ones gain nothing measurable.
const STAR_BLOCK_BYTES: f64 = 4e6;
/// Efficiencies closer than this are equal; fewer bytes win then.
const TIE: f64 = 1e-3;

/// A machine with a codec and groups decided.
#[derive(Debug, Clone)]
pub struct Machine {
    /// Its levels.
    pub hierarchy: Hierarchy,
    drain_s: Option<f64>,
    pub(crate) groups: Option<Groups>,
    pub(crate) ring_survival: f64,
    pub(crate) codec_name: String,
    pub(crate) pool_bytes: f64,
    changed_raw: f64,
    changed_packed: f64,
    whole_packed: f64,
}

/// A machine with its best pattern.
#[derive(Debug, Clone)]
pub struct Chosen {
    /// The machine.
    pub machine: Machine,
    /// Its best pattern.
    pub pattern: Pattern,
    /// What that achieves.
    pub outcome: Outcome,
}

impl Machine {
    /// The best codec and pattern.
    pub fn best(inputs: &Inputs) -> Result<Chosen> {
        let mut best: Option<Chosen> = None;
        for machine in Self::all(inputs)? {
            let pattern = machine.best_pattern();
            let outcome = machine.outcome(&pattern)?;
            let better = best.as_ref().is_none_or(|known| {
                let gain = outcome.efficiency - known.outcome.efficiency;
                let smaller = machine.whole_packed < known.machine.whole_packed;
                gain > TIE || (gain > -TIE && smaller)
            });
            if better {
                best = Some(Chosen { machine, pattern, outcome });
            }
        }
        best.ok_or_else(|| ModelError::Infeasible("there is no codec to choose".to_owned()))
    }

    /// The machine with a codec decided by name.
    pub(crate) fn with_codec(inputs: &Inputs, name: &str) -> Result<Self> {
        Self::all(inputs)?.into_iter().find(|machine| machine.codec_name == name).ok_or_else(|| {
            ModelError::Unknown {
                what: "codec",
                name: name.to_owned(),
                known: inputs
                    .codecs
                    .iter()
                    .map(|codec| codec.name.as_str())
                    .collect::<Vec<_>>()
                    .join(", "),
            }
        })
    }

    /// One machine per codec, no codec first.
    fn all(inputs: &Inputs) -> Result<Vec<Self>> {
        let groups = choose_groups(inputs)?;
        let none = ("none", Codec::new(0.0, 1e15, 1e15)?);
        let mut codecs = vec![(none.0.to_owned(), none.1)];
        for codec in &inputs.codecs {
            let measured = Codec::new(codec.factor, codec.compress_bps, codec.decompress_bps)?;
            codecs.push((codec.name.clone(), measured));
        }
        codecs.into_iter().map(|(name, codec)| Self::new(inputs, name, &codec, groups)).collect()
    }

    fn new(
        inputs: &Inputs,
        codec_name: String,
        codec: &Codec,
        ring: Option<(Groups, f64)>,
    ) -> Result<Self> {
        let nodes = inputs.job.nodes as f64;
        let whole = inputs.job.bytes_per_node;
        let changed = whole * inputs.job.changed_share;
        let pool = inputs.pool_bytes_max.min(changed);
        let local_write = codec.commit_s(changed - pool, inputs.rates.local_write_bps)?;
        let local = changed / inputs.rates.capture_bps + local_write;
        let global_write = codec.commit_s(changed, inputs.rates.global_write_bps / nodes)?;
        let read =
            inputs.failures.relaunch_s + codec.restore_s(whole, inputs.rates.local_read_bps)?;
        let fetch = inputs.failures.relaunch_s
            + codec.restore_s(whole, inputs.rates.global_read_bps / nodes)?;
        let star = StarCost::new(
            inputs.rates.network_latency_s,
            inputs.rates.network_bps,
            inputs.rates.encode_bps,
        )?;
        let host = |extra: f64| if inputs.background { local } else { local + extra };
        let process = inputs.failures.process_share;
        let mut levels = vec![Level::new(local, read, process)?];
        let mut ring_survival = 0.0;
        if let Some((groups, survival)) = ring {
            ring_survival = survival;
            let encode = star.time_s(codec.stored_bytes(changed), groups.m(), STAR_BLOCK_BYTES)?;
            // One lost node's data is rebuilt like one shard is made.
            let decode = star.time_s(codec.stored_bytes(whole), 1, STAR_BLOCK_BYTES)?;
            levels.push(Level::new(host(encode), read + decode, (1.0 - process) * survival)?);
        }
        let left = 1.0 - levels.iter().map(|level| level.share).sum::<f64>();
        levels.push(Level::new(host(global_write), fetch, left.clamp(0.0, 1.0))?);
        Ok(Self {
            hierarchy: Hierarchy::new(inputs.failures.mtti_s, levels)?,
            drain_s: inputs.background.then_some(global_write),
            groups: ring.map(|(groups, _)| groups),
            ring_survival,
            codec_name,
            pool_bytes: pool,
            changed_raw: changed,
            changed_packed: codec.stored_bytes(changed),
            whole_packed: codec.stored_bytes(whole),
        })
    }

    /// The model with a background drain, where there is one.
    pub(crate) fn drained(&self) -> Option<Drained> {
        let drain_s = self.drain_s?;
        Drained::new(self.hierarchy.clone(), drain_s, Visibility::Published).ok()
    }

    /// How long a background drain takes, where there is one.
    pub fn drain_s(&self) -> Option<f64> {
        self.drain_s
    }

    /// What a pattern achieves.
    pub fn outcome(&self, pattern: &Pattern) -> Result<Outcome> {
        match self.drained() {
            Some(drained) => drained.outcome(pattern),
            None => self.hierarchy.outcome(pattern),
        }
    }

    fn best_pattern(&self) -> Pattern {
        match self.drained() {
            Some(drained) => drained.best_pattern(),
            None => self.hierarchy.best_pattern(),
        }
    }

    pub(crate) fn level_names(&self) -> Vec<&'static str> {
        if self.groups.is_some() {
            vec!["local", "ring", "global"]
        } else {
            vec!["local", "global"]
        }
    }

    pub(crate) fn changed_bytes(&self) -> f64 {
        self.changed_raw
    }

    /// Bytes per node a level needs: the whole state, and what changed in every checkpoint that
    /// is still held: the newest and the one being written.
    pub(crate) fn stored_bytes(&self, level: &str, checkpoints_per_global: u64) -> f64 {
        let held = |count: u64| self.whole_packed + count as f64 * self.changed_packed;
        match level {
            // With a drain, everything since the drained checkpoint before the current one.
            "local" if self.drain_s.is_some() => held(2 * checkpoints_per_global),
            "local" => held(2),
            "ring" => {
                self.groups.map_or(0.0, |groups| held(1) * groups.m() as f64 / groups.k() as f64)
            }
            _ => held(1),
        }
    }
}

/// The fewest shards, then the largest group, that survive as wished; none for a single node.
fn choose_groups(inputs: &Inputs) -> Result<Option<(Groups, f64)>> {
    if inputs.job.nodes < 2 {
        return Ok(None);
    }
    let bursts = Bursts::geometric(inputs.failures.nodes_per_incident)?;
    let largest = inputs.ring.group_max.min(inputs.job.nodes / 2);
    let sizes = inputs.ring.group.map_or(1..=largest, |k| k..=k);
    let counts = inputs.ring.shards.map_or(1..=*sizes.end(), |m| m..=m);
    let mut closest = 0.0f64;
    for m in counts {
        for k in sizes.clone().rev().filter(|k| *k >= m) {
            let groups = Groups::new(inputs.job.nodes, k, m)?;
            let survival = bursts.survival(&groups);
            if survival >= inputs.failures.survival {
                return Ok(Some((groups, survival)));
            }
            closest = closest.max(survival);
        }
    }
    let shards = inputs.ring.shards.map_or(String::new(), |m| format!(" with {m} shards"));
    Err(ModelError::Infeasible(format!(
        "groups of at most {} nodes{shards} survive {closest:.6} of the incidents, survival \
             {} is wanted",
        sizes.end(),
        inputs.failures.survival
    )))
}
