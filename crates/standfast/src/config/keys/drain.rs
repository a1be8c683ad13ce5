//! Global storage, and how a drain goes about it.

use super::Key;
use super::text::{assign, number};

pub(super) const GLOBAL: Key = Key {
    name: "global",
    help: "Global storage, a directory or s3://bucket/prefix: where checkpoints are drained to, and where a restart finds them when nothing nearer has them; empty: none",
    default: "",
    set: |config, text| {
        if text.contains("{node}") || text.starts_with("memory:") {
            return Err("all nodes must reach one place: no {node}, no memory".into());
        }
        config.global = text.into();
        Ok(())
    },
    show: |config| config.global.clone(),
};

pub(super) const DRAIN_CODEC: Key = Key {
    name: "drain_codec",
    help: "How blocks are compressed on their way to global storage: auto (per block, what arrives soonest), none, lz4, zstd:LEVEL, deflate:LEVEL",
    default: "zstd:1",
    set: |config, text| assign(&mut config.drain_codec, text),
    show: |config| config.drain_codec.to_string(),
};

pub(super) const DRAIN_RATE: Key = Key {
    name: "drain_rate",
    help: "Most bytes per second that the drain of a node sends; 0: no limit",
    default: "0",
    set: |config, text| assign(&mut config.drain_rate, text.strip_suffix("/s").unwrap_or(text)),
    show: |config| config.drain_rate.to_string(),
};

pub(super) const DRAIN_EVERY: Key = Key {
    name: "drain_every",
    help: "Which checkpoints are drained: every so many, older ones too; 0: the newest, as often as bandwidth allows",
    default: "0",
    set: |config, text| number(&mut config.drain_every, text, 0, u64::MAX),
    show: |config| config.drain_every.to_string(),
};

pub(super) const DRAIN_NICE: Key = Key {
    name: "drain_nice",
    help: "How nice drains are to other processes, 0 to 19; lower where no core is free and drains lag behind",
    default: "19",
    set: |config, text| number(&mut config.drain_nice, text, 0, 19),
    show: |config| config.drain_nice.to_string(),
};

pub(super) const DRAIN_IONICE: Key = Key {
    name: "drain_ionice",
    help: "When reads and writes of drains come at the disk: 0 (first) to 7 (last), or idle (when nobody else needs it)",
    default: "7",
    set: |config, text| assign(&mut config.drain_ionice, text),
    show: |config| config.drain_ionice.to_string(),
};

pub(super) const DRAIN_CPUS: Key = Key {
    name: "drain_cpus",
    help: "Cores that drains run on, such as 0,2-3; empty: any",
    default: "",
    set: |config, text| assign(&mut config.drain_cpus, text),
    show: |config| config.drain_cpus.to_string(),
};
