//! What ranks and the agent say to each other.
//!
//! ```text
//! rank                                   agent
//! Hello                               -> Welcome
//! Begin (first rank, with the lock)   -> Joined (with the pool)     Join (others) -> Joined
//! Lease                               -> Granted, when there is something to grant
//! Blocks, Blocks, ...                    encoded and written as they come
//! HandOver                               after all ranks: segments, images, manifest; or, of a job
//!                                        on several nodes: segments, pledge
//!                                        Settled to every rank
//! Leave                               -> Left
//! ```
//! The numbers of the enumerations are the protocol; [`PROTOCOL`] changes with them.

use serde::{Deserialize, Serialize};
use standfast_checkpoint::{Holdings, Order, StreamPlace};
use standfast_drain::Priority;
use standfast_format::{AttemptId, HashKind, JobId, Kind, SegmentId, SegmentRef, Stats, Tally};

use standfast_sys::trust::Trust;

use crate::status::Status;

/// Version of the protocol; both ends must have the same.
pub(crate) const PROTOCOL: u32 = 6;

/// A job's session with the agent, known to its ranks only.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Token(pub [u8; 16]);

/// Made by the agent for each rank that joins; what the rank sends of its pages carries it, so that
/// nobody can send again what was said in another conversation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Nonce(pub(crate) [u8; 16]);

/// What a job wants of the agent.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Begin {
    /// The session.
    pub token: Token,
    /// Name of the node.
    pub node: String,
    /// The job's store.
    pub store: StoreUse,
    /// Ranks of the job on this node, ascending; the first of them begins.
    pub ranks: Vec<u32>,
    /// Ranks of the job on all nodes. Where there are others, the agent pledges its node's part, and
    /// the ranks commit.
    pub job_ranks: u32,
    /// How its pages become segments.
    pub packing: Packing,
    /// Checkpoints kept; 0: all.
    pub keep: u32,
    /// Of so many one is kept for ever, in global storage where there is a place; 0: none.
    pub keep_every: u64,
    /// Where the agent shall drain its checkpoints to, if anywhere.
    pub global: Option<GlobalUse>,
}

/// A job's store.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct StoreUse {
    /// Where it is: an absolute path.
    pub path: String,
    /// Its id.
    pub job: JobId,
    /// How it is written: `auto`, `direct` or `buffered`.
    pub io: String,
    /// Writes in flight.
    pub io_threads: u32,
    /// Whose files are read, and who may read those that are written.
    pub trust: Trust,
}

/// How pages become segments.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Packing {
    /// Hash of pages.
    pub hash: HashKind,
    /// Size of pages.
    pub page_bytes: u32,
    /// Size of blocks, and of the pool's units.
    pub block_bytes: u32,
    /// Size of the pool.
    pub pool_bytes: u64,
    /// Encoder threads.
    pub threads: u32,
    /// How blocks are compressed, as the setting `codec`.
    pub codec: String,
    /// Whether a GPU shall compress them, where there is one.
    pub gpu: bool,
    /// What is done before, as the setting `lab.filter`.
    pub filter: String,
}

/// A job's place in global storage.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct GlobalUse {
    /// Where it is.
    pub place: String,
    /// Checkpoints kept there; 0: all.
    pub keep: u32,
    /// How they get there.
    pub manner: Manner,
}

/// How checkpoints are drained, as the settings say it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Manner {
    /// How blocks are compressed.
    pub codec: String,
    /// Most bytes per second; 0: no limit.
    pub rate: u64,
    /// Every so many checkpoints; 0: the newest, as often as bandwidth allows.
    pub every: u64,
    /// How nice it is to other processes.
    pub nice: i32,
    /// When its reads and writes of disks come.
    pub ionice: String,
    /// Cores that it runs on; empty: any.
    pub cpus: String,
    /// Where the key comes from that encrypts global storage, as the setting `global_key`.
    #[serde(default)]
    pub key: Option<String>,
}

impl Default for Manner {
    /// As `standfast drain` does without further words.
    fn default() -> Self {
        let Priority { nice, io, cores } = Priority::default();
        let (ionice, cpus) = (io.to_string(), cores.to_string());
        Self { codec: "zstd:1".into(), rate: 0, every: 0, nice, ionice, cpus, key: None }
    }
}

impl Begin {
    /// Whether all ranks of the job are on this node.
    pub(crate) fn is_whole(&self) -> bool {
        self.ranks.len() == self.job_ranks as usize
    }
}

/// A filled unit.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Block {
    pub(crate) order: Order,
    pub(crate) stream: SegmentId,
    pub(crate) number: u32,
    pub(crate) unit: u32,
    pub(crate) pages: u32,
    pub(crate) elem: u8,
    pub(crate) hashes: Vec<u8>,
}

/// One rank's part of a checkpoint, complete but for where this checkpoint's streams end up.
#[derive(Debug, Serialize, Deserialize)]
pub struct HandOver {
    /// The checkpoint.
    pub order: Order,
    /// The bytes of its image; streams of this checkpoint stand in the segment table by id, with
    /// as many slots as there can be.
    pub image: Vec<u8>,
    /// Streams of this checkpoint that the image refers to, of any rank.
    pub streams: Vec<SegmentId>,
    /// Its figures so far.
    pub stats: Stats,
    /// Time since the checkpoint was begun.
    pub elapsed_ns: u64,
}

#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum Request {
    Hello {
        protocol: u32,
    },
    Status,
    /// End; `now`: also if ranks are connected.
    Stop {
        now: bool,
    },
    /// Answer when nothing of dead ranks is left to be done for this store.
    Flush {
        store: String,
    },
    Begin(Box<Begin>),
    Join {
        token: Token,
        rank: u32,
    },
    Lease {
        count: u32,
    },
    Return {
        units: Vec<u32>,
    },
    Blocks(Nonce, Vec<Block>),
    HandOver(Nonce, Box<HandOver>),
    Abort {
        attempt: AttemptId,
    },
    Leave,
}

/// A failure as the agent tells it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Failure {
    kind: i32,
    why: String,
}

impl Failure {
    pub(crate) fn new(kind: Kind, why: impl ToString) -> Self {
        Self { kind: kind.exit_code(), why: why.to_string() }
    }

    /// The error it stands for.
    pub fn into_error(self) -> crate::Error {
        let kind = Kind::from_exit_code(self.kind).unwrap_or(Kind::Bug);
        crate::Error::Refused { kind, why: self.why }
    }
}

/// What one rank's part has taken.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Figures {
    /// The rank.
    pub rank: u32,
    /// What its blocks took.
    pub compressed_bytes: u64,
    /// What they and its share of the rest of the files took.
    pub segment_bytes: u64,
    /// What its segments were made of.
    pub pieces: Tally,
    /// How they were written.
    pub writes: Tally,
}

/// A node's part of a checkpoint that is durable and still to be committed by the ranks.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Pledged {
    /// The node's segments.
    pub segments: Vec<SegmentRef>,
    /// The parts of its ranks.
    pub figures: Vec<Figures>,
}

/// What became of a checkpoint.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Settled {
    /// Which attempt.
    pub attempt: AttemptId,
    /// Whether it exists now, or the node's part of it.
    pub outcome: Result<(), Failure>,
    /// Where the streams of all ranks of this node are, if so.
    pub places: Vec<StreamPlace>,
    /// The node's part, where the ranks commit.
    pub pledged: Option<Pledged>,
    /// Segments that are gone, or may be.
    pub removed: Vec<SegmentId>,
    /// What else its reader should know.
    pub notes: Vec<String>,
    /// What the store holds now.
    pub holdings: Holdings,
}

#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum Reply {
    Welcome {
        protocol: u32,
    },
    Status(Box<Status>),
    Stopping,
    Flushed,
    Joined {
        units: u32,
        unit_bytes: u32,
        nonce: Nonce,
    },
    Granted {
        units: Vec<u32>,
    },
    Settled(Box<Settled>),
    Left,
    Refused(Failure),
    /// The agent lives.
    Beat,
}
