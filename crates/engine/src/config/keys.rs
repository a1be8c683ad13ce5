//! Every setting, defined once: its name, what it means, how to read it and how to show it.
//!
//! The file, the environment, the API, `standfast config` and the reference in the docs all go
//! through this table, so a setting cannot exist in one of them and not in another.

use std::fmt::Display;
use std::str::FromStr;
use std::time::Duration;

use standfast_capture::Signal;
use standfast_drain::{Cores, IoPriority};
use standfast_format::{BLOCK_BYTES_MAX, HashKind, PAGE_BYTES_MAX, PAGE_BYTES_MIN, name};
use standfast_gpu::memory::Choice as DeviceCodec;
use standfast_pack::Pipeline;
use standfast_reduce::{CodecChoice, CodecSpec, FilterChoice};
use standfast_store::Io;

use super::size::ByteSize;
use super::time::TimeSpan;

/// Which pages are stored: what a page is compared with before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// Compared with nothing: every page, every time.
    Full,
    /// With the same page of the last checkpoint: what was written since.
    Incremental,
    /// With zero and with the other pages of the same rank and checkpoint.
    Local,
    /// Also with the pages of all other ranks in this checkpoint.
    Collective,
    /// Also with the pages of earlier checkpoints, of any rank.
    All,
}

impl Mode {
    /// Whether earlier checkpoints are referred to.
    pub fn looks_back(self) -> bool {
        matches!(self, Mode::Incremental | Mode::All)
    }

    /// Whether other ranks' pages are referred to.
    pub fn looks_around(self) -> bool {
        matches!(self, Mode::Collective | Mode::All)
    }

    /// Whether equal pages are looked for at all.
    pub fn finds_equal(self) -> bool {
        !matches!(self, Mode::Full | Mode::Incremental)
    }
}

/// How ranks find the pages that several of them hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Strategy {
    /// All of them: every hash has a rank that keeps account of it.
    Exact,
    /// The most frequent ones: bounded tables are merged pair by pair.
    TopK,
}

/// How many pages the strategy `topk` follows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Threshold {
    /// As many as pay, by what following them costs.
    Auto,
    /// So many.
    Pages(u32),
}

/// How changed pages are found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Track {
    /// By the kernel where it can and where it pays, by hashing elsewhere.
    Auto,
    /// By the kernel, wherever it can.
    Uffd,
    /// By protecting pages, for programs that hand no protected memory to system calls.
    Mprotect,
    /// By hashing every page.
    Hash,
}

/// Whether a checkpoint stops the program while its pages are taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Capture {
    /// It does.
    Stop,
    /// Only to protect or copy them; a page that is written meanwhile is copied first.
    Cow,
}

/// How captured pages reach the store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Write {
    /// Through this process's own pool, while the program goes on.
    Pool,
    /// Piece by piece, while the program waits.
    Direct,
    /// Small pieces together, large ones by themselves, while the program waits.
    Wag,
    /// Through the pool that all ranks of the node share, by the node's agent.
    WagDbi,
}

/// When a restart gives control back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Restart {
    /// When everything is in memory.
    Eager,
    /// At once; pages arrive when they are touched, the rest behind.
    Lazy,
}

/// How long a program works between checkpoints, where it leaves that to `Job::point`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Interval {
    /// The program decides by itself.
    Off,
    /// As long as costs least, by measured checkpoints and the expected failures.
    Auto,
    /// As long as this.
    Every(TimeSpan),
}

/// What a checkpoint does for which a bounded local store has no room.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WhenFull {
    /// It fails, before anything of the program is touched.
    Error,
    /// It waits for whoever holds what could go.
    Wait,
}

/// Whether shards of checkpoints are kept on other nodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ring {
    /// No.
    Off,
    /// Where nodes have stores of their own.
    Auto,
}

/// Who multiplies for the ring.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RingArithmetic {
    /// The processor.
    Cpu,
    /// A GPU, where there is one.
    Gpu,
}

/// The effective settings of a job.
#[derive(Clone, Debug, PartialEq)]
pub struct Config {
    /// Where jobs keep their stores.
    pub store: String,
    /// Name of the job: a directory below `store`.
    pub job: String,
    /// Name of this node, or `host` for the host's own.
    pub node: String,
    /// Unit of comparison and deduplication.
    pub page: ByteSize,
    /// How pages are recognised.
    pub hash: HashKind,
    /// Which pages are stored.
    pub mode: Mode,
    /// How ranks find the pages that several of them hold.
    pub strategy: Strategy,
    /// How many pages the strategy `topk` follows.
    pub threshold: Threshold,
    /// How changed pages are found.
    pub track: Track,
    /// Whether a checkpoint stops the program while its pages are taken.
    pub capture: Capture,
    /// Memory for pages that are copied because the program writes to them.
    pub cow_pool: ByteSize,
    /// When a restart gives control back.
    pub restart: Restart,
    /// Whether collecting, compressing and storing overlap.
    pub pipeline: Pipeline,
    /// How blocks are compressed.
    pub codec: CodecChoice,
    /// What is done to blocks before.
    pub filter: FilterChoice,
    /// Pages compressed together.
    pub block: ByteSize,
    /// Memory for captured pages on their way to the store.
    pub pool: ByteSize,
    /// How they reach it.
    pub write: Write,
    /// Pieces from this size on are written by themselves with `write = wag`.
    pub wag_threshold: ByteSize,
    /// Directory of the agent's socket; empty: the usual one.
    pub agent_dir: String,
    /// Program that is run to start an agent.
    pub agent_command: String,
    /// How long an agent without work stays.
    pub agent_idle: TimeSpan,
    /// Largest segment.
    pub segment: ByteSize,
    /// Threads that hash, and threads that compress; 0: one per core, at most 4.
    pub threads: usize,
    /// How the local directory is written and read.
    pub io: Io,
    /// Writes in flight.
    pub io_threads: usize,
    /// Checkpoints kept; 0: all.
    pub keep: u32,
    /// Checkpoints kept in global storage; 0: all.
    pub keep_global: u32,
    /// Every so many checkpoints one is kept for ever; 0: none.
    pub keep_every: u64,
    /// What the local store may take; 0: what there is.
    pub local_bytes: ByteSize,
    /// What happens when nothing in it can go.
    pub when_full: WhenFull,
    /// Where checkpoints are drained to, and read from when nothing nearer has them; empty: nowhere.
    pub global: String,
    /// How blocks are compressed on their way there.
    pub drain_codec: CodecChoice,
    /// Most bytes per second that a drain sends; 0: what goes.
    pub drain_rate: ByteSize,
    /// Which checkpoints go: every so many, older ones too; 0: the newest, whenever one has arrived.
    pub drain_every: u64,
    /// How nice a drain is to other processes.
    pub drain_nice: i32,
    /// When its reads and writes of disks come.
    pub drain_ionice: IoPriority,
    /// Cores that it runs on; none: any.
    pub drain_cpus: Cores,
    /// Whether shards of checkpoints are kept on other nodes.
    pub ring: Ring,
    /// Members of a group on the ring; 0: by the number of nodes.
    pub ring_group: usize,
    /// Shards of a group; 0: as many as members.
    pub ring_shards: usize,
    /// Who multiplies for the ring.
    pub ring_arithmetic: RingArithmetic,
    /// When `Job::point` takes a checkpoint.
    pub interval: Interval,
    /// Expected time between failures of the job, for the interval `auto`.
    pub mtti: TimeSpan,
    /// Memory on a device for pages that changed there.
    pub device_staging: ByteSize,
    /// What pages are encoded with on a device.
    pub device_codec: DeviceCodec,
    /// Signal that asks `Job::point` for a checkpoint.
    pub signal: Option<Signal>,
    /// File by which a supervisor asks for one; empty: none.
    pub ask: String,
}

/// One setting.
pub struct Key {
    /// Its name in file, environment (`STANDFAST_` and capitals) and API.
    pub name: &'static str,
    /// What it means, in a sentence.
    pub help: &'static str,
    /// Its default, as text.
    pub default: &'static str,
    pub(super) set: fn(&mut Config, &str) -> Result<(), String>,
    /// Its value in a configuration, as text.
    pub show: fn(&Config) -> String,
}

/// Least memory for the copies of a snapshot.
const COW_POOL_MIN: u64 = 1 << 20;
/// Least memory for staging on a device.
const DEVICE_STAGING_MIN: u64 = 4 << 20;

/// The words of a setting that is one of a few.
type Words<T> = &'static [(&'static str, T)];

const MODES: Words<Mode> = &[
    ("full", Mode::Full),
    ("incremental", Mode::Incremental),
    ("local", Mode::Local),
    ("collective", Mode::Collective),
    ("all", Mode::All),
];
const STRATEGIES: Words<Strategy> = &[("exact", Strategy::Exact), ("topk", Strategy::TopK)];
const TRACKS: Words<Track> = &[
    ("auto", Track::Auto),
    ("uffd", Track::Uffd),
    ("mprotect", Track::Mprotect),
    ("hash", Track::Hash),
];
const CAPTURES: Words<Capture> = &[("stop", Capture::Stop), ("cow", Capture::Cow)];
const DEVICE_CODECS: Words<DeviceCodec> = &[
    ("auto", DeviceCodec::Auto),
    ("float", DeviceCodec::Float),
    ("deflate", DeviceCodec::Deflate),
    ("none", DeviceCodec::None),
];
const RING_ARITHMETICS: Words<RingArithmetic> =
    &[("cpu", RingArithmetic::Cpu), ("gpu", RingArithmetic::Gpu)];
const RESTARTS: Words<Restart> = &[("eager", Restart::Eager), ("lazy", Restart::Lazy)];
const PIPELINES: Words<Pipeline> = &[
    ("pipelined", Pipeline::Pipelined),
    ("serial", Pipeline::Serial),
    ("none", Pipeline::None),
    ("gpu", Pipeline::Gpu),
];
const WRITES: Words<Write> = &[
    ("pool", Write::Pool),
    ("direct", Write::Direct),
    ("wag", Write::Wag),
    ("wag-dbi", Write::WagDbi),
];
const WHEN_FULLS: Words<WhenFull> = &[("error", WhenFull::Error), ("wait", WhenFull::Wait)];
const IOS: Words<Io> = &[("auto", Io::Auto), ("direct", Io::Direct), ("buffered", Io::Buffered)];

/// A number of members or shards.
fn member_count(text: &str, least: usize) -> Result<usize, String> {
    let number = text.parse().ok().filter(|number| (least..=128).contains(number));
    number.ok_or_else(|| format!("it is a number from {least} to 128"))
}

/// All settings.
pub const KEYS: &[Key] = &[
    Key {
        name: "store",
        help: "Directory (or URL) below which every job has its store; {node} stands for the node's name",
        default: "standfast-store",
        set: |config, text| {
            if text.is_empty() {
                return Err("it is empty".into());
            }
            config.store = text.into();
            Ok(())
        },
        show: |config| config.store.clone(),
    },
    Key {
        name: "node",
        help: "Name of this node; host: the host's own",
        default: "host",
        set: |config, text| {
            name::check_job(text).map_err(|error| error.to_string())?;
            config.node = text.into();
            Ok(())
        },
        show: |config| config.node.clone(),
    },
    Key {
        name: "job",
        help: "Name of the job; a restart finds the checkpoints of the same name",
        default: "job",
        set: |config, text| {
            name::check_job(text).map_err(|error| error.to_string())?;
            config.job = text.into();
            Ok(())
        },
        show: |config| config.job.clone(),
    },
    Key {
        name: "page",
        help: "Unit of comparison and deduplication: a power of two from 1KiB to 1MiB",
        default: "4KiB",
        set: |config, text| {
            let size: ByteSize = text.parse()?;
            let range = u64::from(PAGE_BYTES_MIN)..=u64::from(PAGE_BYTES_MAX);
            if !size.0.is_power_of_two() || !range.contains(&size.0) {
                return Err(format!("{text:?} is not a power of two from 1KiB to 1MiB"));
            }
            config.page = size;
            Ok(())
        },
        show: |config| config.page.to_string(),
    },
    Key {
        name: "hash",
        help: "How pages are recognised: xxh3 (fast), blake3 (cryptographic) or sha1",
        default: "xxh3",
        set: |config, text| {
            config.hash =
                HashKind::from_name(text).ok_or_else(|| one_of(text, "xxh3, blake3, sha1"))?;
            Ok(())
        },
        show: |config| config.hash.to_string(),
    },
    Key {
        name: "mode",
        help: "Which pages are stored: full (all), incremental (written since the last), local (not twice in a rank), collective (not twice in a checkpoint), all (not twice in the job)",
        default: "all",
        set: |config, text| word(&mut config.mode, MODES, text),
        show: |config| word_of(config.mode, MODES),
    },
    Key {
        name: "strategy",
        help: "How ranks find pages that several hold: exact (all of them) or topk (the most frequent)",
        default: "exact",
        set: |config, text| word(&mut config.strategy, STRATEGIES, text),
        show: |config| word_of(config.strategy, STRATEGIES),
    },
    Key {
        name: "threshold",
        help: "Pages that the strategy topk follows: a number, or auto (as many as pay)",
        default: "auto",
        set: |config, text| {
            config.threshold = match text {
                "auto" => Threshold::Auto,
                _ => {
                    let mut pages = 0;
                    number(&mut pages, text, 1, 1 << 24)
                        .map_err(|why| format!("{why}, or auto"))?;
                    Threshold::Pages(pages)
                }
            };
            Ok(())
        },
        show: |config| match config.threshold {
            Threshold::Auto => "auto".into(),
            Threshold::Pages(pages) => pages.to_string(),
        },
    },
    Key {
        name: "track",
        help: "How changed pages are found: auto, uffd (by the kernel), mprotect (by faults; no system call may write to protected memory), hash (looks at every page; for memory that devices write)",
        default: "auto",
        set: |config, text| word(&mut config.track, TRACKS, text),
        show: |config| word_of(config.track, TRACKS),
    },
    Key {
        name: "capture",
        help: "Whether the program waits while its pages are taken: stop, or cow (it goes on at once; a page it writes to meanwhile is copied first)",
        default: "stop",
        set: |config, text| word(&mut config.capture, CAPTURES, text),
        show: |config| word_of(config.capture, CAPTURES),
    },
    Key {
        name: "cow_pool",
        help: "Memory for the copies of capture = cow, from 1MiB; fastest where it holds what changes between checkpoints",
        default: "64MiB",
        set: |config, text| {
            let size: ByteSize = text.parse()?;
            if size.0 < COW_POOL_MIN {
                return Err(format!("{text:?} is less than 1MiB"));
            }
            config.cow_pool = size;
            Ok(())
        },
        show: |config| config.cow_pool.to_string(),
    },
    Key {
        name: "restart",
        help: "When a restart gives control back: eager (everything is there), lazy (at once; pages come when they are touched, the rest behind; a page that cannot be read then ends the program)",
        default: "eager",
        set: |config, text| word(&mut config.restart, RESTARTS, text),
        show: |config| word_of(config.restart, RESTARTS),
    },
    Key {
        name: "pipeline",
        help: "How collecting, compressing and storing take turns: pipelined (all at once), serial (one after the other), none (nothing is compressed), gpu (compressed on a GPU, where there is one)",
        default: "pipelined",
        set: |config, text| word(&mut config.pipeline, PIPELINES, text),
        show: |config| word_of(config.pipeline, PIPELINES),
    },
    Key {
        name: "codec",
        help: "How new pages are compressed: auto (per block, what is quickest now), none, lz4, zstd[:-7..22], deflate[:1-12]",
        default: "lz4",
        set: |config, text| assign(&mut config.codec, text),
        show: |config| config.codec.to_string(),
    },
    Key {
        name: "filter",
        help: "Rearrangement before compressing: auto (tried per block), none, shuffle4, shuffle8 (byte planes of numbers), delta4, delta8 (of their differences)",
        default: "auto",
        set: |config, text| assign(&mut config.filter, text),
        show: |config| config.filter.to_string(),
    },
    Key {
        name: "block",
        help: "Pages compressed together: at least one page, at most 16MiB",
        default: "128KiB",
        set: |config, text| assign(&mut config.block, text),
        show: |config| config.block.to_string(),
    },
    Key {
        name: "pool",
        help: "Memory for captured pages on their way to the store, of each rank; with write = wag-dbi a value that is set is for all ranks of a node together, and the default for each; at least four blocks",
        default: "64MiB",
        set: |config, text| assign(&mut config.pool, text),
        show: |config| config.pool.to_string(),
    },
    Key {
        name: "write",
        help: "How captured pages reach the store: pool (this process writes them while the program goes on), wag-dbi (the node's agent does, for all ranks of the node), or for comparison direct (each piece while the program waits) and wag (small pieces together, while the program waits)",
        default: "pool",
        set: |config, text| word(&mut config.write, WRITES, text),
        show: |config| word_of(config.write, WRITES),
    },
    Key {
        name: "wag_threshold",
        help: "With write = wag, pieces from this size on are written by themselves",
        default: "256KiB",
        set: |config, text| assign(&mut config.wag_threshold, text),
        show: |config| config.wag_threshold.to_string(),
    },
    Key {
        name: "agent_dir",
        help: "Directory of the agent's socket and log; empty: $XDG_RUNTIME_DIR/standfast, or /tmp/standfast-UID",
        default: "",
        set: |config, text| {
            config.agent_dir = text.into();
            Ok(())
        },
        show: |config| config.agent_dir.clone(),
    },
    Key {
        name: "agent_command",
        help: "Program that the first rank runs to start an agent where none runs",
        default: "standfast",
        set: |config, text| {
            if text.is_empty() {
                return Err("it is empty".into());
            }
            config.agent_command = text.into();
            Ok(())
        },
        show: |config| config.agent_command.clone(),
    },
    Key {
        name: "agent_idle",
        help: "How long an agent that the first rank has started stays without work",
        default: "60s",
        set: |config, text| {
            config.agent_idle = time(text)?;
            Ok(())
        },
        show: |config| config.agent_idle.to_string(),
    },
    Key {
        name: "segment",
        help: "Largest segment before compression; smaller ones let prune free space sooner",
        default: "1GiB",
        set: |config, text| assign(&mut config.segment, text),
        show: |config| config.segment.to_string(),
    },
    Key {
        name: "threads",
        help: "Threads that hash while the program waits, and that compress after; 0: one per core, at most 4",
        default: "0",
        set: |config, text| number(&mut config.threads, text, 0, 256),
        show: |config| config.threads.to_string(),
    },
    Key {
        name: "io",
        help: "How the directory is written and read: auto, direct (past the page cache), buffered",
        default: "auto",
        set: |config, text| word(&mut config.io, IOS, text),
        show: |config| word_of(config.io, IOS),
    },
    Key {
        name: "io_threads",
        help: "Reads and writes in flight",
        default: "8",
        set: |config, text| number(&mut config.io_threads, text, 1, 64),
        show: |config| config.io_threads.to_string(),
    },
    Key {
        name: "keep",
        help: "Checkpoints kept; older ones are pruned after each commit; 0 keeps all",
        default: "8",
        set: |config, text| number(&mut config.keep, text, 0, u32::MAX),
        show: |config| config.keep.to_string(),
    },
    Key {
        name: "keep_global",
        help: "Checkpoints kept in global storage; older ones are pruned there when one has arrived; 0 keeps all",
        default: "0",
        set: |config, text| number(&mut config.keep_global, text, 0, u32::MAX),
        show: |config| config.keep_global.to_string(),
    },
    Key {
        name: "keep_every",
        help: "Of so many checkpoints one stays for ever: in global storage, or in the store where there is none; 0: none does",
        default: "0",
        set: |config, text| number(&mut config.keep_every, text, 0, u64::MAX),
        show: |config| config.keep_every.to_string(),
    },
    Key {
        name: "local_bytes",
        help: "What the store of a node may take: before a checkpoint the oldest ones make room for all protected memory; 0: no bound",
        default: "0",
        set: |config, text| assign(&mut config.local_bytes, text),
        show: |config| config.local_bytes.to_string(),
    },
    Key {
        name: "when_full",
        help: "When nothing can make room: error (the checkpoint fails before memory is touched), wait (for a drain or a reader that holds what could go)",
        default: "error",
        set: |config, text| word(&mut config.when_full, WHEN_FULLS, text),
        show: |config| word_of(config.when_full, WHEN_FULLS),
    },
    Key {
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
    },
    Key {
        name: "drain_codec",
        help: "How blocks are compressed on their way to global storage: auto (per block, what arrives soonest), none, lz4, zstd:LEVEL, deflate:LEVEL",
        default: "zstd:1",
        set: |config, text| assign(&mut config.drain_codec, text),
        show: |config| config.drain_codec.to_string(),
    },
    Key {
        name: "drain_rate",
        help: "Most bytes per second that the drain of a node sends; 0: no limit",
        default: "0",
        set: |config, text| assign(&mut config.drain_rate, text.strip_suffix("/s").unwrap_or(text)),
        show: |config| config.drain_rate.to_string(),
    },
    Key {
        name: "drain_every",
        help: "Which checkpoints are drained: every so many, older ones too; 0: the newest, as often as bandwidth allows",
        default: "0",
        set: |config, text| number(&mut config.drain_every, text, 0, u64::MAX),
        show: |config| config.drain_every.to_string(),
    },
    Key {
        name: "drain_nice",
        help: "How nice drains are to other processes, 0 to 19",
        default: "10",
        set: |config, text| number(&mut config.drain_nice, text, 0, 19),
        show: |config| config.drain_nice.to_string(),
    },
    Key {
        name: "drain_ionice",
        help: "When reads and writes of drains come at the disk: 0 (first) to 7 (last), or idle (when nobody else needs it)",
        default: "7",
        set: |config, text| assign(&mut config.drain_ionice, text),
        show: |config| config.drain_ionice.to_string(),
    },
    Key {
        name: "drain_cpus",
        help: "Cores that drains run on, such as 0,2-3; empty: any",
        default: "",
        set: |config, text| assign(&mut config.drain_cpus, text),
        show: |config| config.drain_cpus.to_string(),
    },
    Key {
        name: "ring",
        help: "Keep shards of checkpoints on other nodes: off, or auto where nodes have stores of their own",
        default: "off",
        set: |config, text| {
            config.ring = match text {
                "off" => Ring::Off,
                "auto" => Ring::Auto,
                _ => return Err("it is off or auto".into()),
            };
            Ok(())
        },
        show: |config| match config.ring {
            Ring::Off => "off".into(),
            Ring::Auto => "auto".into(),
        },
    },
    Key {
        name: "ring_group",
        help: "Members of a group on the ring, or auto: by the number of nodes, 4 for most jobs",
        default: "auto",
        set: |config, text| {
            config.ring_group = if text == "auto" { 0 } else { member_count(text, 1)? };
            Ok(())
        },
        show: |config| match config.ring_group {
            0 => "auto".into(),
            members => members.to_string(),
        },
    },
    Key {
        name: "ring_shards",
        help: "Shards of a group, at most its members; 0: as many. Fewer are kept where disks are too full",
        default: "0",
        set: |config, text| {
            config.ring_shards = member_count(text, 0)?;
            Ok(())
        },
        show: |config| config.ring_shards.to_string(),
    },
    Key {
        name: "ring_arithmetic",
        help: "Who multiplies for the ring, to make shards and to bring back what is lost: cpu, gpu (where there is one; blocks of 4 MiB)",
        default: "cpu",
        set: |config, text| word(&mut config.ring_arithmetic, RING_ARITHMETICS, text),
        show: |config| word_of(config.ring_arithmetic, RING_ARITHMETICS),
    },
    Key {
        name: "interval",
        help: "When point() takes a checkpoint: off (never), auto (from measured cost and mtti), or after a time such as 90s or 10min",
        default: "off",
        set: |config, text| {
            config.interval = match text {
                "off" => Interval::Off,
                "auto" => Interval::Auto,
                _ => Interval::Every(time(text).map_err(|why| format!("{why}, off or auto"))?),
            };
            Ok(())
        },
        show: |config| match config.interval {
            Interval::Off => "off".into(),
            Interval::Auto => "auto".into(),
            Interval::Every(time) => time.to_string(),
        },
    },
    Key {
        name: "mtti",
        help: "Mean time between failures that is expected of the whole job; the interval auto starts from it",
        default: "24h",
        set: |config, text| {
            config.mtti = time(text)?;
            Ok(())
        },
        show: |config| config.mtti.to_string(),
    },
    Key {
        name: "device_staging",
        help: "Memory on a GPU for pages of device regions that changed, from 4MiB; what does not fit crosses while the program waits",
        default: "1GiB",
        set: |config, text| {
            let size: ByteSize = text.parse()?;
            if size.0 < DEVICE_STAGING_MIN {
                return Err(format!("{text:?} is less than 4MiB"));
            }
            config.device_staging = size;
            Ok(())
        },
        show: |config| config.device_staging.to_string(),
    },
    Key {
        name: "device_codec",
        help: "How pages of device regions are compressed on the GPU: auto (tried on a sample), float, deflate, none (the CPU does, with codec)",
        default: "auto",
        set: |config, text| word(&mut config.device_codec, DEVICE_CODECS, text),
        show: |config| word_of(config.device_codec, DEVICE_CODECS),
    },
    Key {
        name: "signal",
        help: "Signal to any rank that asks the next point() for a checkpoint: off, a name such as USR1, or the number of a real-time signal",
        default: "off",
        set: |config, text| {
            config.signal = match text {
                "off" => None,
                _ => Some(text.parse().map_err(|why| format!("{text:?} is {why}, or off"))?),
            };
            Ok(())
        },
        show: |config| config.signal.map_or_else(|| "off".into(), |signal| signal.to_string()),
    },
    Key {
        name: "ask",
        help: "File by which 'standfast run' asks the next point() of the program it has started for a checkpoint; set by it",
        default: "",
        set: |config, text| {
            config.ask = text.into();
            Ok(())
        },
        show: |config| config.ask.clone(),
    },
];

/// The setting of this name.
pub fn key(name: &str) -> Option<&'static Key> {
    KEYS.iter().find(|key| key.name == name)
}

impl Default for Config {
    fn default() -> Self {
        let mut config = Self {
            store: String::new(),
            job: String::new(),
            node: String::new(),
            page: ByteSize(0),
            hash: HashKind::Xxh3,
            mode: Mode::All,
            strategy: Strategy::Exact,
            threshold: Threshold::Auto,
            track: Track::Auto,
            capture: Capture::Stop,
            cow_pool: ByteSize(0),
            restart: Restart::Eager,
            pipeline: Pipeline::Pipelined,
            codec: CodecSpec::NONE.into(),
            filter: FilterChoice::Auto,
            block: ByteSize(0),
            pool: ByteSize(0),
            write: Write::Pool,
            wag_threshold: ByteSize(0),
            agent_dir: String::new(),
            agent_command: String::new(),
            agent_idle: TimeSpan(Duration::ZERO),
            segment: ByteSize(0),
            threads: 0,
            io: Io::Auto,
            io_threads: 1,
            keep: 0,
            keep_global: 0,
            keep_every: 0,
            local_bytes: ByteSize(0),
            when_full: WhenFull::Error,
            global: String::new(),
            drain_codec: CodecSpec::NONE.into(),
            drain_rate: ByteSize(0),
            drain_every: 0,
            drain_nice: 0,
            drain_ionice: IoPriority::default(),
            drain_cpus: Cores::default(),
            ring: Ring::Off,
            ring_group: 1,
            ring_shards: 0,
            ring_arithmetic: RingArithmetic::Cpu,
            interval: Interval::Off,
            mtti: TimeSpan(Duration::ZERO),
            device_staging: ByteSize(0),
            device_codec: DeviceCodec::Auto,
            signal: None,
            ask: String::new(),
        };
        for key in KEYS {
            (key.set)(&mut config, key.default).expect("defaults are valid");
        }
        config
    }
}

impl Config {
    /// Sets one value from text, as the file, the environment and the API do.
    pub fn set(&mut self, name: &str, text: &str) -> Result<(), String> {
        let key = key(name).ok_or_else(|| unknown(name))?;
        (key.set)(self, text).map_err(|why| format!("{name}: {why}"))
    }

    /// Checks what several settings must fulfil together.
    pub fn check(&self) -> Result<(), String> {
        let (page, block) = (self.page.0, self.block.0);
        if block > BLOCK_BYTES_MAX as u64 || block == 0 || !block.is_multiple_of(page) {
            return Err(format!(
                "block: {} is not a multiple of page ({}) up to 16MiB",
                self.block, self.page
            ));
        }
        if self.pool.0 < 4 * block {
            let least = ByteSize(4 * block);
            return Err(format!("pool: {} is less than four blocks ({least})", self.pool));
        }
        let slots = self.segment.0 / page;
        if self.segment.0 < block || slots > u64::from(u32::MAX) {
            return Err(format!("segment: {} is less than a block or too large", self.segment));
        }
        Ok(())
    }

    /// Threads to hash and compress with.
    pub fn threads(&self) -> usize {
        match self.threads {
            0 => std::thread::available_parallelism().map_or(1, |cores| cores.get().min(4)),
            threads => threads,
        }
    }
}

pub(super) fn unknown(name: &str) -> String {
    let known: Vec<&str> = KEYS.iter().map(|key| key.name).collect();
    format!("there is no setting {name:?}; there are {}", known.join(", "))
}

fn word<T: Copy>(place: &mut T, words: Words<T>, text: &str) -> Result<(), String> {
    let found = words.iter().find(|(word, _)| *word == text);
    let known: Vec<&str> = words.iter().map(|(word, _)| *word).collect();
    *place = found.ok_or_else(|| one_of(text, &known.join(", ")))?.1;
    Ok(())
}

fn word_of<T: PartialEq>(value: T, words: Words<T>) -> String {
    let found = words.iter().find(|(_, meaning)| *meaning == value);
    found.expect("every value has a word").0.into()
}

fn one_of(text: &str, allowed: &str) -> String {
    format!("{text:?} is none of {allowed}")
}

fn assign<T: FromStr<Err: Display>>(place: &mut T, text: &str) -> Result<(), String> {
    *place = text.parse().map_err(|error: T::Err| error.to_string())?;
    Ok(())
}

fn time(text: &str) -> Result<TimeSpan, String> {
    let time: TimeSpan = text.parse()?;
    if time.0.is_zero() { Err(format!("{text:?} is no time above 0")) } else { Ok(time) }
}

fn number<T: FromStr + PartialOrd + Display>(
    place: &mut T,
    text: &str,
    least: T,
    most: T,
) -> Result<(), String> {
    let value: Option<T> = text.parse().ok();
    match value {
        Some(value) if value >= least && value <= most => {
            *place = value;
            Ok(())
        }
        _ => Err(format!("{text:?} is not a number from {least} to {most}")),
    }
}
