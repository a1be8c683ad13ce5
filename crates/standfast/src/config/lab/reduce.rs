//! How pages become small, and by how many threads.

use standfast_write::Pipeline;

use super::LabKey;
use crate::config::text::{Words, assign, number, word, word_of};

const PIPELINES: Words<Pipeline> = &[
    ("pipelined", Pipeline::Pipelined),
    ("serial", Pipeline::Serial),
    ("none", Pipeline::None),
    ("gpu", Pipeline::Gpu),
];

pub(super) const PIPELINE: LabKey = LabKey {
    name: "pipeline",
    values: "pipelined, serial, none, gpu",
    help: "How collecting, compressing and storing take turns: pipelined (all at once), serial (one after the other), none (nothing is compressed), gpu (compressed on a GPU, where there is one); by gpu",
    default: "pipelined",
    set: |config, text| word(&mut config.pipeline, PIPELINES, text),
    show: |config| word_of(config.pipeline, PIPELINES).into(),
};

pub(super) const FILTER: LabKey = LabKey {
    name: "filter",
    values: "auto, none, shuffle4, shuffle8, delta4, delta8",
    help: "Rearrangement before compressing: auto (tried per block), none, shuffle4, shuffle8 (byte planes of numbers), delta4, delta8 (of their differences)",
    default: "auto",
    set: |config, text| assign(&mut config.filter, text),
    show: |config| config.filter.to_string(),
};

pub(super) const BLOCK: LabKey = LabKey {
    name: "block",
    values: "SIZE",
    help: "Pages compressed together: at least one page, at most 16MiB",
    default: "128KiB",
    set: |config, text| assign(&mut config.block, text),
    show: |config| config.block.to_string(),
};

pub(super) const THREADS: LabKey = LabKey {
    name: "threads",
    values: "N",
    help: "Threads that hash while the program waits, and that compress after; 0: one per core, at most 4",
    default: "0",
    set: |config, text| {
        config.threads = number(text, 0, 256)?;
        Ok(())
    },
    show: |config| config.threads.to_string(),
};
