//! A session whose events come as calls: for simulators, which decide what arrives when.
//!
//! The session is the daemon's own, and so are its commits. Ranks' ends of their connections are here;
//! what they are sent waits until somebody asks.

use std::collections::BTreeMap;
use std::fs::File;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::sync::Arc;

use standfast_checkpoint::Order;
use standfast_format::{AttemptId, HashKind, JobId, SegmentId};
use standfast_store::Store;
use standfast_sys::trust::Trust;

use super::connection::Outbox;
use super::log::Log;
use super::session::Session;
use crate::error::{Error, Result};
use crate::message::{Begin, Block, HandOver, Packing, Reply, Settled, StoreUse, Token};
use crate::wire::{Inbox, MESSAGE_BYTES_MAX};

/// Pages of a block.
const BLOCK_PAGES: u32 = 4;
/// More blocks than a simulated checkpoint has: the agent holds them until all have captured.
const UNITS: u64 = 256;

/// A rank's end of its connection.
struct End {
    inbox: Inbox,
    units: Vec<u32>,
    news: Vec<Settled>,
}

impl End {
    /// Takes what has been sent.
    fn listen(&mut self) {
        while let Ok(Some(reply)) = self.inbox.receive::<Reply>() {
            match reply {
                Reply::Granted { units } => self.units.extend(units),
                Reply::Settled(settled) => self.news.push(*settled),
                _ => {}
            }
        }
    }
}

/// The agent of a node, with one job.
pub struct Agent {
    session: Arc<Session>,
    ends: BTreeMap<u32, End>,
}

impl Agent {
    /// Begins a session: the ranks on this node, and how many there are on all.
    pub fn open(
        store: Arc<dyn Store>,
        (job, node): (JobId, &str),
        (ranks, job_ranks): (Vec<u32>, u32),
        (keep, page_bytes): (u32, u32),
    ) -> Result<Self> {
        let null = || File::options().write(true).open("/dev/null").map_err(Error::os("open"));
        let block_bytes = BLOCK_PAGES * page_bytes;
        let begin = Begin {
            token: Token([1; 16]),
            node: node.into(),
            store: StoreUse {
                path: String::new(),
                job,
                io: "auto".into(),
                io_threads: 1,
                trust: Trust::default(),
            },
            ranks,
            job_ranks,
            packing: Packing {
                hash: HashKind::Xxh3,
                page_bytes,
                block_bytes,
                pool_bytes: UNITS * u64::from(block_bytes),
                threads: 1,
                codec: "none".into(),
                gpu: false,
                filter: "none".into(),
            },
            keep,
            keep_every: 0,
            global: None,
        };
        let session = Session::open_on(begin, store, OwnedFd::from(null()?), &Log::new(null()?))?;
        Ok(Self { session, ends: BTreeMap::new() })
    }

    /// A rank comes.
    pub fn join(&mut self, rank: u32) -> Result<()> {
        let (here, there) = UnixStream::pair().map_err(Error::os("make a connection"))?;
        there.set_nonblocking(true).map_err(Error::os("make a connection"))?;
        let outbox = Arc::new(Outbox::new(&Arc::new(here), None)?);
        self.session.join(rank, &outbox)?;
        let (units, news) = (Vec::new(), Vec::new());
        self.ends.insert(
            rank,
            End { inbox: Inbox::new(Arc::new(there), MESSAGE_BYTES_MAX), units, news },
        );
        Ok(())
    }

    /// A rank sends a block of a stream.
    pub fn block(
        &mut self,
        rank: u32,
        order: Order,
        (stream, number): (SegmentId, u32),
        bytes: &[u8],
        hashes: Vec<u8>,
    ) -> Result<()> {
        let pool = self.session.pool();
        pool.ask(rank, 1)?;
        let end = self.ends.get_mut(&rank).ok_or(Error::Protocol("no such rank"))?;
        end.listen();
        let unit = end.units.pop().ok_or(Error::Protocol("no unit was granted"))?;
        pool.fill(unit, bytes);
        let pages = bytes.len() as u32 / self.session.begin.packing.page_bytes;
        let block = Block { order, stream, number, unit, pages, elem: 0, hashes };
        self.session.block(rank, block)
    }

    /// A rank's part is complete. Returns when the agent has done with it what it can.
    pub fn hand_over(&self, rank: u32, part: HandOver) -> Result<()> {
        self.session.hand_over(rank, part)
    }

    /// A rank gives an attempt up.
    pub fn abort(&self, attempt: AttemptId) {
        self.session.abort(attempt);
    }

    /// A rank ends, by its will or not.
    pub fn leave(&mut self, rank: u32, willingly: bool) {
        self.session.leave(rank, willingly);
        self.ends.remove(&rank);
    }

    /// What a rank was told of an attempt.
    pub fn news(&mut self, rank: u32, attempt: AttemptId) -> Option<Settled> {
        let end = self.ends.get_mut(&rank)?;
        end.listen();
        let at = end.news.iter().position(|settled| settled.attempt == attempt)?;
        Some(end.news.swap_remove(at))
    }
}
