//! What the engine reads: every choice made, each a typed value, by topic.

use std::time::Duration;

use standfast_drain::Priority;
use standfast_format::{BLOCK_BYTES_MAX, HashKind};
use standfast_gpu::memory::Choice as DeviceCodec;
use standfast_reduce::{CodecChoice, FilterChoice};
use standfast_store::Io;
use standfast_sys::trust::Trust;
use standfast_write::Pipeline;

use super::lab::{IOS, Mode, RingArithmetic, Strategy, Track, WhenFull, Write};
use super::settings::{
    AgentUse, Capture, Choice, GpuUse, LevelSettings, NodeLosses, PlaceSettings, Retention,
    Settings, TimingSettings,
};
use super::size::ByteSize;
use super::text::word_of;
use super::time::TimeSpan;

/// Members of the usual group of the ring: it has as many shards, at most.
const USUAL_GROUP: usize = 4;

/// The effective settings of a job.
#[derive(Clone, Debug, PartialEq)]
pub struct Config {
    /// Where checkpoints are, and which stay.
    pub place: PlaceSettings,
    /// When they are taken and how a restart loads them.
    pub timing: TimingSettings,
    /// What they survive.
    pub levels: LevelSettings,
    /// Whose files are read, and who may read those that are written.
    pub trust: Trust,
    /// This rank's part of the node's memory.
    pub memory: MemoryConfig,
    /// The node, and how this process works on it.
    pub node: NodeConfig,
    /// How pages are captured and compared.
    pub pages: PageConfig,
    /// How they become segments.
    pub pack: PackConfig,
    /// Where the node's agent is and how it is started.
    pub agent: AgentConfig,
    /// How checkpoints get to global storage.
    pub drain: DrainConfig,
    /// Groups of the ring.
    pub ring: RingConfig,
    /// Pages of device memory.
    pub device: DeviceConfig,
}

/// Memory of a rank.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemoryConfig {
    /// For blocks and copies together.
    pub rank: ByteSize,
    /// For captured pages on their way to the store.
    pub pool: ByteSize,
    /// For copies of pages: what the pool leaves of it.
    pub copies: ByteSize,
}

/// A node, and how a process works on it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeConfig {
    /// Its name, or `host` for the host's own.
    pub name: String,
    /// Threads that hash, and threads that compress; 0: one per core, at most 4.
    pub threads: usize,
    /// How the local directory is written and read.
    pub io: Io,
    /// Writes in flight.
    pub io_threads: usize,
    /// What happens when nothing in a bounded store can go.
    pub when_full: WhenFull,
    /// File by which a supervisor asks for a checkpoint; empty: none.
    pub run_request: String,
}

/// How pages are captured and compared.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PageConfig {
    /// How memory is captured.
    pub capture: Choice<Capture>,
    /// How changed pages are found.
    pub track: Track,
    /// Unit of comparison and deduplication.
    pub bytes: ByteSize,
    /// How pages are recognised.
    pub hash: HashKind,
    /// Which pages are stored.
    pub mode: Mode,
    /// How ranks find the pages that several of them hold.
    pub strategy: Strategy,
    /// How many pages the strategy `topk` follows; `auto`: as many as pay, by what following costs.
    pub threshold: Choice<u32>,
}

/// How pages become segments.
#[derive(Clone, Debug, PartialEq)]
pub struct PackConfig {
    /// Whether collecting, compressing and storing overlap.
    pub pipeline: Pipeline,
    /// How blocks are compressed.
    pub codec: CodecChoice,
    /// What is done to blocks before.
    pub filter: FilterChoice,
    /// Pages compressed together.
    pub block: ByteSize,
    /// Largest segment.
    pub segment: ByteSize,
    /// How captured pages reach the store.
    pub write: Write,
    /// Pieces from this size on are written by themselves with `write = wag`.
    pub wag_threshold: ByteSize,
}

/// Where the node's agent is and how it is started.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AgentConfig {
    /// Directory of its socket; empty: the usual one.
    pub dir: String,
    /// Program that is run to start it.
    pub command: String,
    /// How long it stays without work.
    pub idle: TimeSpan,
}

/// How checkpoints get to global storage.
#[derive(Clone, Debug, PartialEq)]
pub struct DrainConfig {
    /// How blocks are compressed on their way there.
    pub codec: CodecChoice,
    /// What a drain yields to others.
    pub priority: Priority,
}

/// Groups of the ring.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RingConfig {
    /// Members of a group; `auto`: by the number of nodes.
    pub group: Choice<usize>,
    /// Shards of a group; 0: as many as members.
    pub shards: usize,
    /// Who multiplies.
    pub arithmetic: RingArithmetic,
}

/// Pages of device memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DeviceConfig {
    /// Memory on a device for pages that changed there.
    pub staging: ByteSize,
    /// What pages are encoded with on a device.
    pub codec: DeviceCodec,
}

impl Default for Config {
    fn default() -> Self {
        Self::of(&Settings::default())
    }
}

impl Config {
    /// What the public settings choose; `resolve` adds the machine's part and that of experiments.
    pub(super) fn of(settings: &Settings) -> Self {
        let Settings { place, writing, timing, levels } = settings.clone();
        let on_gpu = writing.gpu == GpuUse::On;
        let (write, agent_dir) = match writing.agent {
            AgentUse::Auto | AgentUse::Off => (Write::Pool, String::new()),
            AgentUse::On => (Write::WagDbi, String::new()),
            AgentUse::In(dir) => (Write::WagDbi, dir.display().to_string()),
        };
        // A group of `k` members with `m` shards survives `m` losses, and needs `k + m` nodes.
        let losses = levels.ring.unwrap_or(NodeLosses::NONE).get() as usize;
        let group = if losses > USUAL_GROUP { Choice::Set(losses) } else { Choice::Auto };
        Self {
            place,
            timing,
            levels,
            trust: Trust::default(),
            memory: MemoryConfig {
                rank: ByteSize(0),
                pool: ByteSize(64 << 20),
                copies: ByteSize(0),
            },
            node: NodeConfig {
                name: "host".into(),
                threads: 0,
                io: Io::Auto,
                io_threads: 8,
                when_full: WhenFull::Error,
                run_request: String::new(),
            },
            pages: PageConfig {
                capture: writing.capture,
                track: Track::Auto,
                bytes: ByteSize(4 << 10),
                hash: HashKind::Xxh3,
                mode: Mode::All,
                strategy: Strategy::Exact,
                threshold: Choice::Auto,
            },
            pack: PackConfig {
                pipeline: if on_gpu { Pipeline::Gpu } else { Pipeline::Pipelined },
                codec: writing.codec.in_store(),
                filter: FilterChoice::Auto,
                block: ByteSize(128 << 10),
                segment: ByteSize(1 << 30),
                write,
                wag_threshold: ByteSize(256 << 10),
            },
            agent: AgentConfig {
                dir: agent_dir,
                command: "standfast".into(),
                idle: TimeSpan(Duration::from_secs(60)),
            },
            drain: DrainConfig { codec: writing.codec.of_drain(), priority: Priority::default() },
            ring: RingConfig {
                group,
                shards: losses,
                arithmetic: if on_gpu { RingArithmetic::Gpu } else { RingArithmetic::Cpu },
            },
            device: DeviceConfig {
                staging: ByteSize(1 << 30),
                codec: match writing.gpu {
                    GpuUse::Off => DeviceCodec::None,
                    GpuUse::Auto | GpuUse::On => DeviceCodec::Auto,
                },
            },
        }
    }

    /// Checks what several settings must fulfil together.
    pub fn check(&self) -> Result<(), String> {
        let (page, pack, pool) = (self.pages.bytes, &self.pack, self.memory.pool);
        let block = pack.block.0;
        if block > BLOCK_BYTES_MAX as u64 || block == 0 || !block.is_multiple_of(page.0) {
            return Err(format!(
                "block: {} is not a multiple of page ({page}) up to 16MiB",
                pack.block
            ));
        }
        if pool.0 < 4 * block {
            let least = ByteSize(4 * block);
            return Err(format!("pool: {pool} is less than four blocks ({least})"));
        }
        let slots = pack.segment.0 / page.0;
        if pack.segment.0 < block || slots > u64::from(u32::MAX) {
            return Err(format!("segment: {} is less than a block or too large", pack.segment));
        }
        Ok(())
    }

    /// The same for jobs in another place.
    pub fn at(&self, store: impl Into<String>) -> Self {
        let mut other = self.clone();
        other.place.store = store.into();
        other
    }

    /// The same for another job.
    pub fn of_job(&self, job: impl Into<String>) -> Self {
        let mut other = self.clone();
        other.place.job = job.into();
        other
    }

    /// Whether the store is global storage itself. Commands may look into that; no job can be there.
    pub fn is_global(&self) -> bool {
        let plain =
            |text: &str| text.trim_start_matches("file://").trim_end_matches('/').to_owned();
        self.levels
            .global
            .as_deref()
            .is_some_and(|global| plain(global) == plain(&self.place.store))
    }

    /// Of so many checkpoints one stays for ever; 0: none. It stays in global storage, or in the store
    /// where there is none.
    pub fn keep_every(&self) -> u64 {
        self.levels.global_keep.every.or(self.place.keep.every).unwrap_or(0)
    }

    /// Threads to hash and compress with.
    pub fn threads(&self) -> usize {
        match self.node.threads {
            0 => std::thread::available_parallelism().map_or(1, |cores| cores.get().min(4)),
            threads => threads,
        }
    }

    /// The word for how the directory is written and read.
    pub(crate) fn io_word(&self) -> &'static str {
        word_of(self.node.io, IOS)
    }
}

impl LevelSettings {
    /// Whether shards of checkpoints are kept on other nodes, where those have stores of their own.
    pub fn has_ring(&self) -> bool {
        self.ring != Choice::Set(NodeLosses::NONE)
    }

    /// Which checkpoints are drained: every so many, and all of those stay; 0: the newest, whenever one
    /// has arrived.
    pub fn drain_every(&self) -> u64 {
        let Retention { newest, every, .. } = self.global_keep;
        every.filter(|_| newest.is_none()).unwrap_or(0)
    }
}
