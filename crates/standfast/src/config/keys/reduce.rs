//! How pages become small, and by how many threads.

use standfast_write::Pipeline;

use super::Key;
use super::text::{Words, assign, number, word, word_of};

const PIPELINES: Words<Pipeline> = &[
    ("pipelined", Pipeline::Pipelined),
    ("serial", Pipeline::Serial),
    ("none", Pipeline::None),
    ("gpu", Pipeline::Gpu),
];

pub(super) const PIPELINE: Key = Key {
    name: "pipeline",
    help: "How collecting, compressing and storing take turns: pipelined (all at once), serial (one after the other), none (nothing is compressed), gpu (compressed on a GPU, where there is one)",
    default: "pipelined",
    set: |config, text| word(&mut config.pipeline, PIPELINES, text),
    show: |config| word_of(config.pipeline, PIPELINES),
};

pub(super) const CODEC: Key = Key {
    name: "codec",
    help: "How new pages are compressed: auto (per block, what is quickest now), none, lz4, zstd[:-7..22], deflate[:1-12]",
    default: "lz4",
    set: |config, text| assign(&mut config.codec, text),
    show: |config| config.codec.to_string(),
};

pub(super) const FILTER: Key = Key {
    name: "filter",
    help: "Rearrangement before compressing: auto (tried per block), none, shuffle4, shuffle8 (byte planes of numbers), delta4, delta8 (of their differences)",
    default: "auto",
    set: |config, text| assign(&mut config.filter, text),
    show: |config| config.filter.to_string(),
};

pub(super) const BLOCK: Key = Key {
    name: "block",
    help: "Pages compressed together: at least one page, at most 16MiB",
    default: "128KiB",
    set: |config, text| assign(&mut config.block, text),
    show: |config| config.block.to_string(),
};

pub(super) const THREADS: Key = Key {
    name: "threads",
    help: "Threads that hash while the program waits, and that compress after; 0: one per core, at most 4",
    default: "0",
    set: |config, text| number(&mut config.threads, text, 0, 256),
    show: |config| config.threads.to_string(),
};
