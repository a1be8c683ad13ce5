//! The table of settings for experiments and tests.

use standfast_format::{HashKind, PAGE_BYTES_MAX, PAGE_BYTES_MIN};

use super::LabKey;
use super::words::{
    DEVICE_CODECS, IOS, MODES, PIPELINES, RING_ARITHMETICS, STRATEGIES, TRACKS, WHEN_FULLS, WRITES,
};
use crate::config::key::row;
use crate::config::settings::Choice;
use crate::config::size::ByteSize;
use crate::config::text::{name, non_empty, number, one_of, time};

/// Least memory for staging on a device.
const DEVICE_STAGING_MIN: u64 = 4 << 20;

/// All of them, in the order in which they are shown.
pub const LAB_KEYS: &[LabKey] = &[
    row!("node" in node.name => name, "NAME, host",
        "Name of this node; host: the host's own"),
    row!("page" in pages.bytes => page_size, "SIZE",
        "Unit of comparison and deduplication: a power of two from 1KiB to 1MiB"),
    row!("hash" in pages.hash => hash, "xxh3, blake3, sha1",
        "How pages are recognised: xxh3 (fast), blake3 (cryptographic) or sha1"),
    row!("mode" in pages.mode of MODES, "full, incremental, local, collective, all",
        "Which pages are stored: full (all), incremental (written since the last), local (not twice in a rank), collective (not twice in a checkpoint), all (not twice in the job)"),
    row!("strategy" in pages.strategy of STRATEGIES, "exact, topk",
        "How ranks find pages that several hold: exact (all of them) or topk (the most frequent)"),
    row!("threshold" in pages.threshold => threshold, "auto, N",
        "Pages that the strategy topk follows: a number, or auto (as many as pay)"),
    row!("track" in pages.track of TRACKS, "auto, uffd, mprotect, hash",
        "How changed pages are found: auto, uffd (by the kernel), mprotect (by faults; no system call may write to protected memory), hash (looks at every page; for memory that devices write)"),
    row!("pipeline" in pack.pipeline of PIPELINES, "pipelined, serial, none, gpu",
        "How collecting, compressing and storing take turns: pipelined (all at once), serial (one after the other), none (nothing is compressed), gpu (compressed on a GPU, where there is one); by gpu"),
    row!("filter" in pack.filter, "auto, none, shuffle4, shuffle8, delta4, delta8",
        "Rearrangement before compressing: auto (tried per block), none, shuffle4, shuffle8 (byte planes of numbers), delta4, delta8 (of their differences)"),
    row!("block" in pack.block, "SIZE",
        "Pages compressed together: at least one page, at most 16MiB"),
    row!("pool" in memory.pool, "SIZE",
        "Memory of each rank for captured pages on their way to the store, at least four blocks; with write = wag-dbi of all ranks of a node; by memory"),
    row!("write" in pack.write of WRITES, "pool, wag-dbi, direct, wag",
        "How captured pages reach the store: pool (this process writes them while the program goes on), wag-dbi (the node's agent does, for all ranks of the node), or for comparison direct (each piece while the program waits) and wag (small pieces together, while the program waits); by agent"),
    row!("wag_threshold" in pack.wag_threshold, "SIZE",
        "With write = wag, pieces from this size on are written by themselves"),
    row!("agent_dir" in agent.dir, "DIR",
        "Directory of the agent's socket and log; empty: $XDG_RUNTIME_DIR/standfast, or /tmp/standfast-UID"),
    row!("agent_command" in agent.command => non_empty, "PROGRAM",
        "Program that the first rank runs to start an agent where none runs"),
    row!("agent_idle" in agent.idle => time, "TIME",
        "How long an agent that the first rank has started stays without work"),
    row!("segment" in pack.segment, "SIZE",
        "Largest segment before compression; smaller ones let prune free space sooner"),
    row!("threads" in node.threads => |text| number(text, 0, 256), "N",
        "Threads that hash while the program waits, and that compress after; 0: one per core, at most 4"),
    row!("io" in node.io of IOS, "auto, direct, buffered",
        "How the directory is written and read: auto, direct (past the page cache), buffered"),
    row!("io_threads" in node.io_threads => |text| number(text, 1, 64), "N",
        "Reads and writes in flight"),
    row!("when_full" in node.when_full of WHEN_FULLS, "error, wait",
        "When the size in keep is reached and nothing can be freed: error, wait (for a drain or a reader)"),
    row!("drain_codec" in drain.codec, "as codec",
        "How blocks are compressed on their way to global storage: auto (per block, by data and speed), none, lz4, zstd:LEVEL, deflate:LEVEL; by codec"),
    row!("drain_nice" in drain.priority.nice => |text| number(text, 0, 19), "0 to 19",
        "How nice drains are to other processes, 0 to 19; lower where no core is free and drains lag behind"),
    row!("drain_ionice" in drain.priority.io, "0 to 7, idle",
        "When reads and writes of drains come at the disk: 0 (first) to 7 (last), or idle (when nobody else needs it)"),
    row!("drain_cpus" in drain.priority.cores, "LIST",
        "Cores that drains run on, such as 0,2-3; empty: any"),
    row!("ring_group" in ring.group => group, "auto, N",
        "Members of a group on the ring, or auto: by the number of nodes, 4 for most jobs"),
    row!("ring_shards" in ring.shards => |text| member_count(text, 0), "N",
        "Shards of a group, at most its members; 0: as many. Fewer are kept where disks are too full"),
    row!("ring_arithmetic" in ring.arithmetic of RING_ARITHMETICS, "cpu, gpu",
        "Who multiplies for the ring, to make shards and to bring back what is lost: cpu, gpu (where there is one; blocks of 4 MiB)"),
    row!("device_staging" in device.staging => staging_size, "SIZE",
        "Memory on a GPU for pages of device regions that changed, from 4MiB; what does not fit crosses while the program waits"),
    row!("device_codec" in device.codec of DEVICE_CODECS, "auto, float, deflate, none",
        "How pages of device regions are compressed on the GPU: auto (tried on a sample), float, deflate, none (the CPU does, with codec)"),
    row!("run_request" in node.run_request, "FILE",
        "File by which 'standfast run' requests a checkpoint at the next point(); set by it"),
];

fn page_size(text: &str) -> Result<ByteSize, String> {
    let size: ByteSize = text.parse()?;
    let range = u64::from(PAGE_BYTES_MIN)..=u64::from(PAGE_BYTES_MAX);
    match size.0.is_power_of_two() && range.contains(&size.0) {
        true => Ok(size),
        false => Err(format!("{text:?} is not a power of two from 1KiB to 1MiB")),
    }
}

fn hash(text: &str) -> Result<HashKind, String> {
    HashKind::from_name(text).ok_or_else(|| one_of(text, "xxh3, blake3, sha1"))
}

fn threshold(text: &str) -> Result<Choice<u32>, String> {
    match text {
        "auto" => Ok(Choice::Auto),
        _ => number(text, 1, 1 << 24).map(Choice::Set).map_err(|why| format!("{why}, or auto")),
    }
}

fn staging_size(text: &str) -> Result<ByteSize, String> {
    let size: ByteSize = text.parse()?;
    match size.0 < DEVICE_STAGING_MIN {
        true => Err(format!("{text:?} is less than 4MiB")),
        false => Ok(size),
    }
}

fn group(text: &str) -> Result<Choice<usize>, String> {
    if text == "auto" { Ok(Choice::Auto) } else { member_count(text, 1).map(Choice::Set) }
}

/// A number of members or shards.
fn member_count(text: &str, least: usize) -> Result<usize, String> {
    number(text, least, 128).map_err(|_| format!("it is a number from {least} to 128"))
}
