//! How a drain compresses, and how it gives way to programs.

use super::LabKey;
use crate::config::text::{assign, number};

pub(super) const DRAIN_CODEC: LabKey = LabKey {
    name: "drain_codec",
    values: "as codec",
    help: "How blocks are compressed on their way to global storage: auto (per block, by data and speed), none, lz4, zstd:LEVEL, deflate:LEVEL; by codec",
    default: "zstd:1",
    set: |config, text| assign(&mut config.drain_codec, text),
    show: |config| config.drain_codec.to_string(),
};

pub(super) const DRAIN_NICE: LabKey = LabKey {
    name: "drain_nice",
    values: "0 to 19",
    help: "How nice drains are to other processes, 0 to 19; lower where no core is free and drains lag behind",
    default: "19",
    set: |config, text| {
        config.drain_nice = number(text, 0, 19)?;
        Ok(())
    },
    show: |config| config.drain_nice.to_string(),
};

pub(super) const DRAIN_IONICE: LabKey = LabKey {
    name: "drain_ionice",
    values: "0 to 7, idle",
    help: "When reads and writes of drains come at the disk: 0 (first) to 7 (last), or idle (when nobody else needs it)",
    default: "7",
    set: |config, text| assign(&mut config.drain_ionice, text),
    show: |config| config.drain_ionice.to_string(),
};

pub(super) const DRAIN_CPUS: LabKey = LabKey {
    name: "drain_cpus",
    values: "LIST",
    help: "Cores that drains run on, such as 0,2-3; empty: any",
    default: "",
    set: |config, text| assign(&mut config.drain_cpus, text),
    show: |config| config.drain_cpus.to_string(),
};
