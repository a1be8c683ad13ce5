//! From what users and experiments set to what the engine reads.
//!
//! Data: [`Settings`] + [`Lab`] + [`Machine`] -> [`Config`], or the sentence that says what makes no
//! sense.
//!
//! What `auto` is, until something better is known: restart is `eager`, agent is `off`, memory is a
//! quarter of what is free on the node, gpu is for device memory only. What `auto` is for capture is
//! decided for each checkpoint.

use super::lab::Lab;
use super::machine::Machine;
use super::resolved::{Config, MemoryConfig};
use super::settings::{AgentUse, Capture, Choice, Retention, Settings, Share};
use super::size::ByteSize;

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
/// The engine's configuration; a sentence where the settings make no sense together.
pub fn resolve(settings: &Settings, lab: &Lab, machine: Machine) -> Result<Config, String> {
    check(settings)?;
    let mut config = Config::of(settings);
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
        let blocks = match (self.pages.capture, settings.writing.memory) {
            (Choice::Set(Capture::Stop), Choice::Auto) => own.min(AUTO_BLOCKS_MAX),
            (Choice::Set(Capture::Stop), Choice::Set(_)) => own,
            _ => (own / BLOCKS_SHARE).min(BLOCKS_MAX),
        };
        let pool = if lab.has("pool") { self.memory.pool } else { ByteSize(blocks) };
        let copies = ByteSize(own.saturating_sub(pool.0));
        self.memory = MemoryConfig { rank: ByteSize(own), pool, copies };
        Ok(())
    }
}

#[cfg(test)]
mod tests;
