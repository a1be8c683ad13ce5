//! The table of public settings.

use std::fmt::Display;
use std::str::FromStr;

use standfast_format::name;

use super::{Retention, SettingKey};
use crate::config::text::assign;

/// All settings, in the order in which they are shown.
pub const KEYS: &[SettingKey] = &[
    SettingKey {
        name: "store",
        values: "DIR, URL; {node}",
        default: "standfast-store",
        help: "Where checkpoints are stored; {node} gives each node its own directory.",
        set: |settings, text| {
            if text.is_empty() {
                return Err("it is empty".into());
            }
            settings.place.store = text.into();
            Ok(())
        },
        show: |settings| settings.place.store.clone(),
    },
    SettingKey {
        name: "job",
        values: "NAME",
        default: "job",
        help: "A restart finds checkpoints by this name.",
        set: |settings, text| {
            name::check_job(text).map_err(|error| error.to_string())?;
            settings.place.job = text.into();
            Ok(())
        },
        show: |settings| settings.place.job.clone(),
    },
    SettingKey {
        name: "share",
        values: "private, group, GROUP; from USER",
        default: "private",
        help: "Who else may read the store; with \", from USER\" files of that user are read too.",
        set: |settings, text| assign(&mut settings.place.share, text),
        show: |settings| settings.place.share.to_string(),
    },
    SettingKey {
        name: "keep",
        values: "all, or N, SIZE, every K",
        default: "8",
        help: "How many checkpoints, or how much space, to keep; every Kth stays permanently.",
        set: |settings, text| {
            let keep: Retention = text.parse()?;
            if keep.every.is_some() && keep.newest.is_none() && keep.bytes.is_none() {
                return Err(format!(
                    "{text:?} removes nothing; say how many others stay, such as \"8, {text}\""
                ));
            }
            settings.place.keep = keep;
            Ok(())
        },
        show: |settings| settings.place.keep.to_string(),
    },
    SettingKey {
        name: "capture",
        values: "auto, cow, staged, stop",
        default: "auto",
        help: "How memory is captured: cow continues at once, staged after copying changed pages, stop after examining every page; auto takes what costs the program least.",
        set: |settings, text| assign(&mut settings.writing.capture, text),
        show: |settings| settings.writing.capture.to_string(),
    },
    SettingKey {
        name: "memory",
        values: "auto, SIZE",
        default: "auto",
        help: "Memory Standfast may use on each node, for all ranks together; auto is a quarter of what is free, at least 64MiB for each rank.",
        set: |settings, text| assign(&mut settings.writing.memory, text),
        show: |settings| settings.writing.memory.to_string(),
    },
    SettingKey {
        name: "codec",
        values: "auto, fast, small, none, NAME[:LEVEL]",
        default: "fast",
        help: "Compression: fast (lz4), small (zstd:9), auto (per block, by data and store), or lz4, zstd[:-7..22], deflate[:1-12].",
        set: |settings, text| assign(&mut settings.writing.codec, text),
        show: |settings| settings.writing.codec.to_string(),
    },
    SettingKey {
        name: "gpu",
        values: "auto, on, off",
        default: "auto",
        help: "Whether GPUs compress: auto does so for their own memory, on for host memory and the ring too.",
        set: |settings, text| assign(&mut settings.writing.gpu, text),
        show: |settings| settings.writing.gpu.to_string(),
    },
    SettingKey {
        name: "agent",
        values: "auto, on, off, DIR",
        default: "auto",
        help: "Whether one process per node writes for all ranks; DIR holds its socket; auto is off.",
        set: |settings, text| assign(&mut settings.writing.agent, text),
        show: |settings| settings.writing.agent.to_string(),
    },
    SettingKey {
        name: "interval",
        values: "off, auto[:MTTI], TIME",
        default: "off",
        help: "How often point() takes a checkpoint; auto weighs cost against failures.",
        set: |settings, text| assign(&mut settings.timing.interval, text),
        show: |settings| settings.timing.interval.to_string(),
    },
    SettingKey {
        name: "signal",
        values: "off, NAME, NUMBER",
        default: "off",
        help: "Signal that requests a checkpoint at the next point().",
        set: |settings, text| {
            let wrong = |why| format!("{text:?} is {why}");
            optional(&mut settings.timing.signal, text).map_err(wrong)
        },
        show: |settings| shown(&settings.timing.signal),
    },
    SettingKey {
        name: "restart",
        values: "auto, eager, lazy; never, force, VERSION",
        default: "auto",
        help: "Whether a restart loads everything first or pages on first use (auto is eager); from the beginning (never), a given checkpoint, or the newest in spite of everything (force).",
        set: |settings, text| settings.timing.set_restart(text),
        show: |settings| settings.timing.show_restart(),
    },
    SettingKey {
        name: "ring",
        values: "auto, off, N",
        default: "off",
        help: "How many simultaneous node losses checkpoints survive; auto is what 4 shards survive, half the nodes below 8.",
        set: |settings, text| assign(&mut settings.levels.ring, text),
        show: |settings| settings.levels.ring.to_string(),
    },
    SettingKey {
        name: "global",
        values: "off, DIR, s3://...",
        default: "off",
        help: "Storage that survives the machine; checkpoints are copied there.",
        set: |settings, text| {
            settings.levels.global = match text {
                "" => return Err("it is empty; off is none".into()),
                "off" => None,
                _ if text.contains("{node}") => {
                    return Err("it must be one location for all nodes: remove {node}".into());
                }
                _ if text.starts_with("memory:") => {
                    return Err("memory: does not survive the program".into());
                }
                _ => Some(text.into()),
            };
            Ok(())
        },
        show: |settings| shown(&settings.levels.global),
    },
    SettingKey {
        name: "global_keep",
        values: "all, or N, every K",
        default: "all",
        help: "Checkpoints to keep in global storage; every K alone copies only every Kth.",
        set: |settings, text| {
            let keep: Retention = text.parse()?;
            if keep.bytes.is_some() {
                return Err("a size limits keep only".into());
            }
            settings.levels.global_keep = keep;
            Ok(())
        },
        show: |settings| settings.levels.global_keep.to_string(),
    },
    SettingKey {
        name: "global_rate",
        values: "off, RATE",
        default: "off",
        help: "Upload limit per node, such as 200MB/s.",
        set: |settings, text| optional(&mut settings.levels.global_rate, text),
        show: |settings| shown(&settings.levels.global_rate),
    },
    SettingKey {
        name: "global_key",
        values: "off, FILE, !COMMAND",
        default: "off",
        help: "File holding the key that encrypts global storage, or a command that prints it.",
        set: |settings, text| optional(&mut settings.levels.global_key, text),
        show: |settings| shown(&settings.levels.global_key),
    },
];

/// The setting of this name.
pub fn key(name: &str) -> Option<&'static SettingKey> {
    KEYS.iter().find(|key| key.name == name)
}

/// Reads a value, or `off`.
fn optional<T: FromStr<Err: Display>>(place: &mut Option<T>, text: &str) -> Result<(), String> {
    *place = match text {
        "off" => None,
        _ => Some(text.parse().map_err(|error| format!("{error}, or off"))?),
    };
    Ok(())
}

fn shown<T: Display>(value: &Option<T>) -> String {
    value.as_ref().map_or_else(|| "off".into(), ToString::to_string)
}

#[cfg(test)]
mod tests;
