//! What the engine reads: every choice made, each a typed value.

use standfast_store::KeySource;
use std::time::Duration;

use standfast_capture::Signal;
use standfast_drain::{Cores, IoPriority};
use standfast_format::{BLOCK_BYTES_MAX, HashKind};
use standfast_gpu::memory::Choice as DeviceCodec;
use standfast_reduce::{CodecChoice, CodecSpec, FilterChoice};
use standfast_store::Io;
use standfast_sys::trust::Trust;
use standfast_write::Pipeline;

use super::lab::{
    IOS, LAB_KEYS, Mode, RingArithmetic, Strategy, Threshold, Track, WhenFull, Write,
};
use super::settings::{Capture, Choice, Restart, RestartFrom, Settings};
use super::size::ByteSize;
use super::text::word_of;
use super::time::TimeSpan;

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

/// Whether shards of checkpoints are kept on other nodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ring {
    /// No.
    Off,
    /// Where nodes have stores of their own.
    Auto,
}

/// The effective settings of a job.
#[derive(Clone, Debug, PartialEq)]
pub struct Config {
    /// Where jobs keep their stores.
    pub store: String,
    /// Name of the job: a directory below `store`.
    pub job: String,
    /// Whose files are read, and who may read those that are written.
    pub trust: Trust,
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
    /// How memory is captured.
    pub capture: Choice<Capture>,
    /// Memory of this rank, for blocks and copies together.
    pub memory: ByteSize,
    /// Memory for copies of pages: what blocks leave of it.
    pub copies: ByteSize,
    /// When a restart gives control back.
    pub restart: Restart,
    /// Where the program starts.
    pub from: RestartFrom,
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
    /// Where the key comes from that encrypts what is there.
    pub global_key: Option<KeySource>,
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

impl Default for Config {
    fn default() -> Self {
        let mut config = Self {
            store: String::new(),
            job: String::new(),
            trust: Trust::default(),
            node: String::new(),
            page: ByteSize(0),
            hash: HashKind::Xxh3,
            mode: Mode::All,
            strategy: Strategy::Exact,
            threshold: Threshold::Auto,
            track: Track::Auto,
            capture: Choice::Auto,
            memory: ByteSize(0),
            copies: ByteSize(0),
            restart: Restart::Eager,
            from: RestartFrom::Auto,
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
            global_key: None,
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
        for key in LAB_KEYS {
            (key.set)(&mut config, key.default).expect("defaults are valid");
        }
        config.apply(&Settings::default());
        config
    }
}

impl Config {
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

    /// The word for how the directory is written and read.
    pub(crate) fn io_word(&self) -> &'static str {
        word_of(self.io, IOS)
    }
}
