//! What the planner is told about job, machine and failures.
//!
//! Data: flags and measurements -> [`Inputs`] -> `machine`.
//!
//! Invariants:
//! - [`Inputs::check`] passes before anything is computed; every message names the field.

use serde::Serialize;

use crate::bounds::{at_least_one, non_negative, positive, share, share_below_one};
use crate::error::{ModelError, Result};

/// A codec as measured, for one node.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct CodecInput {
    /// Its name in the configuration.
    pub name: String,
    /// Share of bytes it removes.
    pub factor: f64,
    /// Raw bytes per second when compressing.
    pub compress_bps: f64,
    /// Raw bytes per second when decompressing.
    pub decompress_bps: f64,
}

/// Everything a plan depends on. Rates are bytes per second and per node unless said otherwise.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Inputs {
    /// The job.
    #[serde(flatten)]
    pub job: JobInputs,
    /// What fails, and what then.
    #[serde(flatten)]
    pub failures: FailureInputs,
    /// How fast the machine is.
    #[serde(flatten)]
    pub rates: Rates,
    /// Codecs to choose from; none is always an option.
    pub codecs: Vec<CodecInput>,
    /// Whether an agent encodes and drains in the background.
    pub background: bool,
    /// Most memory per node the pool may take.
    pub pool_bytes_max: f64,
    /// Space on local storage per node, where known.
    pub local_bytes: Option<f64>,
    /// Groups of nodes.
    #[serde(flatten)]
    pub ring: RingInputs,
}

/// A job.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct JobInputs {
    /// Nodes of the job.
    pub nodes: u64,
    /// Ranks on each of them.
    pub ranks_per_node: u64,
    /// Protected memory per node.
    pub bytes_per_node: f64,
    /// Share of it that a checkpoint has to store, after dedup.
    pub changed_share: f64,
}

/// What fails, and what then.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct FailureInputs {
    /// Mean time between failures of the whole job.
    pub mtti_s: f64,
    /// Share of failures that leave every node's data in place.
    pub process_share: f64,
    /// Mean number of nodes that an incident takes down.
    pub nodes_per_incident: f64,
    /// Wanted chance that the ring survives such an incident.
    pub survival: f64,
    /// Time to get the job running again, before any data is read.
    pub relaunch_s: f64,
}

/// How fast a machine is.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Rates {
    /// How fast pages are captured into the pool while the job stands still.
    pub capture_bps: f64,
    /// Local storage, writing.
    pub local_write_bps: f64,
    /// Local storage, reading.
    pub local_read_bps: f64,
    /// Network between two nodes.
    pub network_bps: f64,
    /// Latency of the network.
    pub network_latency_s: f64,
    /// Erasure coding.
    pub encode_bps: f64,
    /// Global store, writing, all nodes together.
    pub global_write_bps: f64,
    /// Global store, reading, all nodes together.
    pub global_read_bps: f64,
}

/// Groups of nodes that keep shards for each other.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct RingInputs {
    /// Largest group to consider.
    pub group_max: u64,
    /// Nodes per group, where they are not for the planner to choose.
    pub group: Option<u64>,
    /// Shards per group, where they are not for the planner to choose.
    pub shards: Option<u64>,
}

impl Inputs {
    /// A mid-sized cluster, for examples and as a start.
    pub fn example() -> Self {
        let codec = |name: &str, factor, compress_bps, decompress_bps| CodecInput {
            name: name.to_owned(),
            factor,
            compress_bps,
            decompress_bps,
        };
        Self {
            job: JobInputs {
                nodes: 128,
                ranks_per_node: 1,
                bytes_per_node: 64e9,
                changed_share: 0.6,
            },
            failures: FailureInputs {
                mtti_s: 8.0 * 3600.0,
                process_share: 0.4,
                nodes_per_incident: 1.2,
                survival: 0.99,
                relaunch_s: 60.0,
            },
            rates: Rates {
                capture_bps: 8e9,
                local_write_bps: 1.5e9,
                local_read_bps: 2.5e9,
                network_bps: 10e9,
                network_latency_s: 2e-6,
                encode_bps: 5e9,
                global_write_bps: 20e9,
                global_read_bps: 20e9,
            },
            codecs: vec![codec("lz4", 0.2, 4e9, 8e9), codec("zstd:1", 0.3, 2e9, 4e9)],
            background: true,
            pool_bytes_max: 4e9,
            local_bytes: None,
            ring: RingInputs { group_max: 16, group: None, shards: None },
        }
    }

    /// Refuses what no machine can be.
    pub fn check(&self) -> Result<()> {
        let Self { job, failures, rates, ring, .. } = self;
        at_least_one("nodes", job.nodes)?;
        at_least_one("ranks_per_node", job.ranks_per_node)?;
        at_least_one("group_max", ring.group_max)?;
        ring.check(job.nodes)?;
        positive("bytes_per_node", job.bytes_per_node)?;
        positive("changed_share", share("changed_share", job.changed_share)?)?;
        positive("mtti_s", failures.mtti_s)?;
        share("process_share", failures.process_share)?;
        share("survival", failures.survival)?;
        positive("nodes_per_incident", failures.nodes_per_incident)?;
        for (field, rate) in [
            ("capture_bps", rates.capture_bps),
            ("local_write_bps", rates.local_write_bps),
            ("local_read_bps", rates.local_read_bps),
            ("network_bps", rates.network_bps),
            ("encode_bps", rates.encode_bps),
            ("global_write_bps", rates.global_write_bps),
            ("global_read_bps", rates.global_read_bps),
            ("pool_bytes_max", self.pool_bytes_max),
        ] {
            positive(field, rate)?;
        }
        non_negative("network_latency_s", rates.network_latency_s)?;
        non_negative("relaunch_s", failures.relaunch_s)?;
        if let Some(room) = self.local_bytes {
            positive("local_bytes", room)?;
        }
        for codec in &self.codecs {
            share_below_one("codec factor", codec.factor)?;
            positive("compress_bps", codec.compress_bps)?;
            positive("decompress_bps", codec.decompress_bps)?;
        }
        Ok(())
    }
}

impl RingInputs {
    fn check(&self, nodes: u64) -> Result<()> {
        let group = at_least_one("group", self.group.unwrap_or(1))?;
        let shards = at_least_one("shards", self.shards.unwrap_or(1))?;
        let pair = |field, value: u64, other, limit: u64, rule| ModelError::Pair {
            field,
            value: value as f64,
            other,
            limit: limit as f64,
            rule,
        };
        if self.group.is_some() && shards > group {
            let rule = "a group cannot keep more shards than it has nodes";
            return Err(pair("shards", shards, "group", group, rule));
        }
        if group.max(shards) > nodes {
            let (field, value) = if group > shards { ("group", group) } else { ("shards", shards) };
            let rule = "a group cannot be larger than the job";
            return Err(pair(field, value, "nodes", nodes, rule));
        }
        Ok(())
    }
}
