//! From what users and experiments set to what the engine reads.
//!
//! Data: [`Settings`] + [`Lab`] + [`Machine`] -> [`Config`], or the sentence that says what makes no
//! sense.
//!
//! What `auto` is, until something better is known: capture is `stop`, restart is `eager`, agent is
//! `off`, memory is 64 MiB for each rank (and as much for copies with cow), gpu is for device memory
//! only.

use super::lab::{Lab, RingArithmetic, Write};
use super::resolved::{Config, Interval, Ring};
use super::settings::{
    AgentUse, Capture, Choice, GpuUse, NodeLosses, Pacing, Restart, Retention, Settings,
};
use super::size::ByteSize;
use super::time::TimeSpan;

/// Least memory of a rank: for pages on their way, and for copies.
const RANK_MEMORY_MIN: u64 = 2 << 20;
/// Members of the usual group of the ring: it has as many shards, at most.
const USUAL_GROUP: u32 = 4;
/// Expected time between failures of a job, where nobody knows better.
const MTTI_S: u64 = 24 * 3600;

/// What the machine has to say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Machine {
    /// Ranks of the job on this node.
    pub ranks: usize,
}

/// The engine's configuration; a sentence where the settings make no sense together.
pub fn resolve(settings: &Settings, lab: &Lab, machine: Machine) -> Result<Config, String> {
    check(settings)?;
    let mut config = Config::default();
    config.apply(settings);
    config.share_memory(settings, lab, machine)?;
    lab.apply(&mut config)?;
    config.check()?;
    Ok(config)
}

/// What several settings must fulfil together.
fn check(settings: &Settings) -> Result<(), String> {
    let (place, levels) = (&settings.place, &settings.levels);
    match &levels.global {
        None if levels.global_rate.is_some() => {
            return Err("global_rate has no effect without global".into());
        }
        None if levels.global_keep != Retention::ALL => {
            return Err("global_keep has no effect without global".into());
        }
        Some(global) if same_location(global, &place.store) => {
            return Err("store and global are the same location".into());
        }
        _ => {}
    }
    let is_directory = !place.store.contains("://") || place.store.starts_with("file://");
    let uses_agent = matches!(settings.writing.agent, AgentUse::On | AgentUse::In(_));
    if uses_agent && (!is_directory || place.store.starts_with("memory:")) {
        let (agent, store) = (&settings.writing.agent, &place.store);
        return Err(format!(
            "agent = {agent} needs a directory store; {store} is written by the ranks"
        ));
    }
    Ok(())
}

fn same_location(a: &str, b: &str) -> bool {
    let plain = |text: &str| text.trim_start_matches("file://").trim_end_matches('/').to_owned();
    plain(a) == plain(b)
}

impl Config {
    /// Makes the choices of the public settings, memory aside.
    pub(super) fn apply(&mut self, settings: &Settings) {
        let Settings { place, writing, timing, levels } = settings;
        self.store.clone_from(&place.store);
        self.job.clone_from(&place.job);
        self.keep = place.keep.newest.unwrap_or(0);
        self.local_bytes = place.keep.bytes.unwrap_or(ByteSize(0));
        self.capture = writing.capture.unwrap_or(Capture::Stop);
        self.restart = timing.restart.unwrap_or(Restart::Eager);
        self.signal = timing.signal;
        self.codec = writing.codec.in_store();
        self.drain_codec = writing.codec.of_drain();
        self.apply_interval(timing.interval);
        self.apply_gpu(writing.gpu);
        self.apply_agent(&writing.agent);
        self.apply_ring(levels.ring);
        self.global = levels.global.clone().unwrap_or_default();
        self.drain_rate = levels.global_rate.map_or(ByteSize(0), |rate| rate.0);
        self.apply_retention(place.keep, levels.global_keep);
    }

    fn apply_interval(&mut self, pacing: Pacing) {
        self.mtti = TimeSpan(std::time::Duration::from_secs(MTTI_S));
        self.interval = match pacing {
            Pacing::Off => Interval::Off,
            Pacing::Every(time) => Interval::Every(time),
            Pacing::Auto(mtti) => {
                self.mtti = mtti.unwrap_or(self.mtti);
                Interval::Auto
            }
        };
    }

    fn apply_gpu(&mut self, gpu: GpuUse) {
        match gpu {
            GpuUse::Auto => {}
            GpuUse::On => {
                self.pipeline = standfast_write::Pipeline::Gpu;
                self.ring_arithmetic = RingArithmetic::Gpu;
            }
            GpuUse::Off => self.device_codec = standfast_gpu::memory::Choice::None,
        }
    }

    fn apply_agent(&mut self, agent: &AgentUse) {
        self.write = match agent {
            AgentUse::Auto | AgentUse::Off => Write::Pool,
            AgentUse::On => Write::WagDbi,
            AgentUse::In(dir) => {
                self.agent_dir = dir.display().to_string();
                Write::WagDbi
            }
        };
    }

    /// A group of `k` members with `m` shards survives `m` losses, and needs `k + m` nodes.
    fn apply_ring(&mut self, ring: Choice<NodeLosses>) {
        self.ring = if ring == Choice::Set(NodeLosses::NONE) { Ring::Off } else { Ring::Auto };
        let losses = ring.unwrap_or(NodeLosses::NONE).get();
        self.ring_shards = losses as usize;
        self.ring_group = if losses > USUAL_GROUP { losses as usize } else { 0 };
    }

    /// Every Kth stays in global storage, or in the store where there is none. Alone in
    /// `global_keep` it says which ones go there, and all of those stay.
    fn apply_retention(&mut self, keep: Retention, global: Retention) {
        self.keep_global = global.newest.unwrap_or(0);
        self.drain_every = global.every.filter(|_| global.newest.is_none()).unwrap_or(0);
        self.keep_every = global.every.or(keep.every).unwrap_or(0);
    }

    /// Gives this rank its part of the node's memory. What experiments set stays.
    pub(super) fn share_memory(
        &mut self,
        settings: &Settings,
        lab: &Lab,
        machine: Machine,
    ) -> Result<(), String> {
        let Choice::Set(memory) = settings.writing.memory else { return Ok(()) };
        let ranks = machine.ranks.max(1) as u64;
        let least = ByteSize(ranks * RANK_MEMORY_MIN);
        if memory < least {
            let of = if ranks == 1 { "one rank".into() } else { format!("{ranks} ranks") };
            return Err(format!("memory = {memory} is too small for {of}: at least {least}"));
        }
        let own = memory.0 / ranks;
        let copies = if self.capture == Capture::Cow { own / 2 } else { 0 };
        if !lab.has("cow_pool") && copies > 0 {
            self.cow_pool = ByteSize(copies);
        }
        if !lab.has("pool") {
            self.pool = ByteSize(own - copies);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn resolved(words: &[(&str, &str)], ranks: usize) -> Result<Config, String> {
        let mut settings = Settings::default();
        for (name, text) in words {
            settings.set(name, text)?;
        }
        resolve(&settings, &Lab::default(), Machine { ranks })
    }

    #[test]
    fn memory_is_for_all_ranks_of_a_node() {
        let config = resolved(&[("memory", "64MiB")], 8).unwrap();
        assert_eq!(config.pool, ByteSize(8 << 20));
        let config = resolved(&[("memory", "64MiB"), ("capture", "cow")], 8).unwrap();
        assert_eq!((config.pool, config.cow_pool), (ByteSize(4 << 20), ByteSize(4 << 20)));
        let why = resolved(&[("memory", "8MiB")], 8).unwrap_err();
        assert_eq!(why, "memory = 8MiB is too small for 8 ranks: at least 16MiB");
        assert!(resolved(&[("memory", "2MiB"), ("capture", "cow")], 1).is_ok());
    }

    #[test]
    fn what_makes_no_sense_is_refused_with_a_sentence() {
        for (words, sentence) in [
            (&[("global_rate", "200MB/s")][..], "global_rate has no effect without global"),
            (&[("global_keep", "4")], "global_keep has no effect without global"),
            (&[("store", "/a/"), ("global", "/a")], "store and global are the same location"),
            (
                &[("global", "/a/{node}")],
                "global: it must be one location for all nodes: remove {node}",
            ),
            (
                &[("store", "s3://b/x"), ("agent", "on")],
                "agent = on needs a directory store; s3://b/x is written by the ranks",
            ),
        ] {
            assert_eq!(resolved(words, 1).unwrap_err(), sentence);
        }
    }

    #[test]
    fn words_become_choices() {
        let config = resolved(
            &[
                ("keep", "3, 10GiB, every 5"),
                ("codec", "small"),
                ("gpu", "on"),
                ("agent", "/run/x"),
                ("interval", "auto:2h"),
                ("ring", "2"),
            ],
            1,
        )
        .unwrap();
        assert_eq!((config.keep, config.local_bytes.0, config.keep_every), (3, 10 << 30, 5));
        assert_eq!(config.codec, config.drain_codec);
        assert_eq!(config.pipeline, standfast_write::Pipeline::Gpu);
        assert_eq!((config.write, config.agent_dir.as_str()), (Write::WagDbi, "/run/x"));
        assert_eq!(config.mtti.to_string(), "2h");
        assert_eq!((config.ring, config.ring_shards, config.ring_group), (Ring::Auto, 2, 0));
        let config = resolved(&[("global", "/g"), ("global_keep", "every 7")], 1).unwrap();
        assert_eq!((config.keep_global, config.drain_every), (0, 7));
    }
}
