//! The table of public settings.

use super::{Retention, SettingKey};
use crate::config::key::row;
use crate::config::text::{name, non_empty, optional, shown};

/// All settings, in the order in which they are shown.
pub const KEYS: &[SettingKey] = &[
    row!("store" in place.store => non_empty, "DIR, URL; {node}",
        "Where checkpoints are stored; {node} gives each node its own directory."),
    row!("job" in place.job => name, "NAME",
        "A restart finds checkpoints by this name."),
    row!("share" in place.share, "private, group, GROUP; from USER",
        "Who else may read the store; with \", from USER\" files of that user are read too."),
    row!("keep" in place.keep => keep, "all, or N, SIZE, every K",
        "How many checkpoints, or how much space, to keep; every Kth stays permanently."),
    row!("capture" in writing.capture, "auto, cow, staged, stop",
        "How memory is captured: cow continues at once, staged after copying changed pages, stop after examining every page; auto takes what costs the program least."),
    row!("memory" in writing.memory, "auto, SIZE",
        "Memory Standfast may use on each node, for all ranks together; auto is a quarter of what is free, at least 64MiB for each rank."),
    row!("codec" in writing.codec, "auto, fast, small, none, NAME[:LEVEL]",
        "Compression: fast (lz4), small (zstd:9), auto (per block, by data and store), or lz4, zstd[:-7..22], deflate[:1-12]."),
    row!("gpu" in writing.gpu, "auto, on, off",
        "Whether GPUs compress: auto does so for their own memory, on for host memory and the ring too."),
    row!("agent" in writing.agent, "auto, on, off, DIR",
        "Whether one process per node writes for all ranks; DIR holds its socket; auto is off."),
    row!("interval" in timing.interval, "off, auto[:MTTI], TIME",
        "How often point() takes a checkpoint; auto weighs cost against failures."),
    row!("signal" in timing.signal => |text| optional(text).map_err(|why| format!("{text:?} is {why}")),
        shown, "off, NAME, NUMBER",
        "Signal that requests a checkpoint at the next point()."),
    SettingKey {
        name: "restart",
        values: "auto, eager, lazy; never, force, VERSION",
        help: "Whether a restart loads everything first or pages on first use (auto is eager); from the beginning (never), a given checkpoint, or the newest in spite of everything (force).",
        set: |settings, text| settings.timing.set_restart(text),
        show: |settings| settings.timing.show_restart(),
    },
    row!("ring" in levels.ring, "auto, off, N",
        "How many simultaneous node losses checkpoints survive; auto is what 4 shards survive, half the nodes below 8."),
    row!("global" in levels.global => global, shown, "off, DIR, s3://...",
        "Storage that survives the machine; checkpoints are copied there."),
    row!("global_keep" in levels.global_keep => global_keep, "all, or N, every K",
        "Checkpoints to keep in global storage; every K alone copies only every Kth."),
    row!("global_rate" in levels.global_rate => optional, shown, "off, RATE",
        "Upload limit per node, such as 200MB/s."),
    row!("global_key" in levels.global_key => optional, shown, "off, FILE, !COMMAND",
        "File holding the key that encrypts global storage, or a command that prints it."),
];

/// The setting of this name.
pub fn key(name: &str) -> Option<&'static SettingKey> {
    KEYS.iter().find(|key| key.name == name)
}

fn keep(text: &str) -> Result<Retention, String> {
    let keep: Retention = text.parse()?;
    if keep.every.is_some() && keep.newest.is_none() && keep.bytes.is_none() {
        return Err(format!(
            "{text:?} removes nothing; say how many others stay, such as \"8, {text}\""
        ));
    }
    Ok(keep)
}

fn global(text: &str) -> Result<Option<String>, String> {
    match text {
        "" => Err("it is empty; off is none".into()),
        "off" => Ok(None),
        _ if text.contains("{node}") => {
            Err("it must be one location for all nodes: remove {node}".into())
        }
        _ if text.starts_with("memory:") => Err("memory: does not survive the program".into()),
        _ => Ok(Some(text.into())),
    }
}

fn global_keep(text: &str) -> Result<Retention, String> {
    let keep: Retention = text.parse()?;
    if keep.bytes.is_some() { Err("a size limits keep only".into()) } else { Ok(keep) }
}

#[cfg(test)]
mod tests;
