//! From what users and experiments set to what the engine reads.
//!
//! Data: [`Settings`] + [`Lab`] + [`Machine`] -> [`Config`], or the sentence that says what makes no
//! sense.
//!
//! What `auto` is, until something better is known: restart is `eager`, agent is `off`, memory is a
//! quarter of what is free on the node, gpu is for device memory only. What `auto` is for capture is
//! decided for each checkpoint.

use super::lab::{Lab, RingArithmetic, Write};
use super::machine::Machine;
use super::resolved::{Config, Interval, Ring};
use super::settings::{
    AgentUse, Capture, Choice, GpuUse, NodeLosses, Pacing, Restart, Retention, Settings, Share,
};
use super::size::ByteSize;
use super::time::TimeSpan;

/// Least memory of a rank: for pages on their way, and for copies.
const RANK_MEMORY_MIN: u64 = 2 << 20;
/// What `auto` gives a rank at least, and the share of free memory that it gives to all.
const AUTO_MEMORY_MIN: u64 = 64 << 20;
const AUTO_MEMORY_SHARE: u64 = 4;
/// What blocks take of a rank's memory where pages are copied first, and at most; and at most where
/// nobody has said how much there is.
const BLOCKS_SHARE: u64 = 4;
const BLOCKS_MAX: u64 = 256 << 20;
const AUTO_BLOCKS_MAX: u64 = 1 << 30;
/// Members of the usual group of the ring: it has as many shards, at most.
const USUAL_GROUP: u32 = 4;
/// Expected time between failures of a job, where nobody knows better.
const MTTI_S: u64 = 24 * 3600;

/// The engine's configuration; a sentence where the settings make no sense together.
pub fn resolve(settings: &Settings, lab: &Lab, machine: Machine) -> Result<Config, String> {
    check(settings)?;
    let mut config = Config::default();
    config.apply(settings);
    config.trust = settings.place.share.trust()?;
    lab.apply(&mut config)?;
    config.share_memory(settings, lab, machine)?;
    config.check()?;
    Ok(config)
}

/// What several settings must fulfil together.
fn check(settings: &Settings) -> Result<(), String> {
    let (place, levels) = (&settings.place, &settings.levels);
    if levels.global.is_none() && levels.global_rate.is_some() {
        return Err("global_rate has no effect without global".into());
    }
    if levels.global.is_none() && levels.global_keep != Retention::ALL {
        return Err("global_keep has no effect without global".into());
    }
    let is_path = |location: &str| !location.contains("://") || location.contains("file://");
    let has_directory = is_path(&place.store) || levels.global.as_deref().is_some_and(is_path);
    if place.share != Share::default() && !has_directory {
        return Err("share applies to directories; use the bucket's policy".into());
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

impl Config {
    /// Whether the store is global storage itself. Commands may look into that; no job can be there.
    pub fn is_global(&self) -> bool {
        let plain =
            |text: &str| text.trim_start_matches("file://").trim_end_matches('/').to_owned();
        plain(&self.store) == plain(&self.global)
    }

    /// Makes the choices of the public settings, memory aside.
    pub(super) fn apply(&mut self, settings: &Settings) {
        let Settings { place, writing, timing, levels } = settings;
        self.store.clone_from(&place.store);
        self.job.clone_from(&place.job);
        self.keep = place.keep.newest.unwrap_or(0);
        self.local_bytes = place.keep.bytes.unwrap_or(ByteSize(0));
        self.capture = writing.capture;
        self.restart = timing.restart.unwrap_or(Restart::Eager);
        self.from = timing.from;
        self.signal = timing.signal;
        self.codec = writing.codec.in_store();
        self.drain_codec = writing.codec.of_drain();
        self.apply_interval(timing.interval);
        self.apply_gpu(writing.gpu);
        self.apply_agent(&writing.agent);
        self.apply_ring(levels.ring);
        self.global = levels.global.clone().unwrap_or_default();
        self.global_key.clone_from(&levels.global_key);
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
        let ranks = machine.ranks.max(1) as u64;
        let least = ByteSize(ranks * RANK_MEMORY_MIN);
        let own = match settings.writing.memory {
            Choice::Auto => {
                let own = machine.free_bytes / AUTO_MEMORY_SHARE / ranks;
                own.next_multiple_of(1 << 20).max(AUTO_MEMORY_MIN)
            }
            Choice::Set(memory) if memory < least => {
                let of = if ranks == 1 { "one rank".into() } else { format!("{ranks} ranks") };
                return Err(format!("memory = {memory} is too small for {of}: at least {least}"));
            }
            Choice::Set(memory) => memory.0 / ranks,
        };
        let blocks = match (self.capture, settings.writing.memory) {
            (Choice::Set(Capture::Stop), Choice::Auto) => own.min(AUTO_BLOCKS_MAX),
            (Choice::Set(Capture::Stop), Choice::Set(_)) => own,
            _ => (own / BLOCKS_SHARE).min(BLOCKS_MAX),
        };
        if !lab.has("pool") {
            self.pool = ByteSize(blocks);
        }
        self.memory = ByteSize(own);
        self.copies = ByteSize(own.saturating_sub(self.pool.0));
        Ok(())
    }
}

#[cfg(test)]
mod tests;
