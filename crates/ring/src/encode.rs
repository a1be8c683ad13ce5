//! Encoding: every rank gives its bytes, the next group's nodes end with the shards.
//!
//! Data: a member's bytes -> products -> the keepers on the next group add them -> shards.
//!
//! The dispersal is folded into the star: products go to where the shard will stay, so no shard
//! travels a second time. In step `d` the member at place `i` sends row `(i + d) mod k`: every
//! rank sends to another one and hears from another one.
//!
//! Invariants:
//! - Members may have any lengths; what is beyond a member's end counts as zeros and is not sent.
//! - Either all ranks start or all refuse: pieces of different checkpoints are never combined.

use standfast_comm::{Comm, Tag, collective};

use crate::code::Family;
use crate::error::{Error, Result};
use crate::shard::{BLOCK_BYTES_MAX, BLOCK_BYTES_MIN, Header, Shard, Stamp};
use crate::star::{self, Cpu, Means, Part, Report, Sink, Source, Step, Target, Task, steps};
use crate::topology::{GroupId, Piece, Topology};

const ANNOUNCE: Tag = Tag(0x0600);

/// In which order a group's products travel.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Order {
    /// To different receivers at every step.
    #[default]
    Star,
    /// All to one receiver, then all to the next; to compare with.
    Together,
}

/// How to encode.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// Bytes of a block; the same on all ranks.
    pub block_bytes: u32,
    /// The order of messages; the same on all ranks.
    pub order: Order,
}

impl Default for Options {
    /// A block that stays in a core's cache while it is multiplied, and makes latency small.
    fn default() -> Self {
        Self { block_bytes: 128 << 10, order: Order::Star }
    }
}

/// What encoding has left on this rank.
#[derive(Debug)]
pub struct Encoded {
    /// The shards that this rank keeps now.
    pub shards: Vec<Shard>,
    /// What it has cost.
    pub report: Report,
}

/// Encodes one checkpoint on the CPU. Collective; `bytes` of this rank's member are read from
/// `source`, the shards it keeps go to `sink`.
pub fn encode(
    comm: &dyn Comm,
    topology: &Topology,
    stamp: Stamp,
    bytes: u64,
    options: Options,
    source: &mut dyn Source,
    sink: &mut dyn Sink,
) -> Result<Encoded> {
    let mut means = Means { source, sink, arithmetic: &mut Cpu };
    encode_with(comm, topology, stamp, bytes, options, &mut means)
}

/// The same with means of the caller's choice; every rank may have others.
pub fn encode_with(
    comm: &dyn Comm,
    topology: &Topology,
    stamp: Stamp,
    bytes: u64,
    options: Options,
    means: &mut Means<'_>,
) -> Result<Encoded> {
    if comm.size() != topology.ranks() {
        let (size, ranks) = (comm.size(), topology.ranks());
        return Err(Error::invalid(format!("a topology of {ranks} ranks in a job of {size}")));
    }
    if !(BLOCK_BYTES_MIN..=BLOCK_BYTES_MAX).contains(&options.block_bytes) {
        return Err(Error::invalid(format!("blocks of {} bytes", options.block_bytes)));
    }
    let own = Announcement { stamp, family: topology.shape().family, bytes, options };
    let mut tasks = tasks(topology, comm.rank(), own)?;
    announce(comm, &mut tasks, own)?;
    let mut outcome = star::run(comm, &tasks, means)?;
    let failed = outcome.sources_failed.drain(..).chain(outcome.targets_failed.drain(..)).next();
    match failed {
        Some((_, error)) => Err(error),
        None => Ok(Encoded { shards: outcome.shards, report: outcome.report }),
    }
}

/// What a member says before its first product.
#[derive(Clone, Copy)]
struct Announcement {
    stamp: Stamp,
    family: Family,
    bytes: u64,
    options: Options,
}

impl Announcement {
    fn encode(&self) -> Vec<u8> {
        let Stamp { job, version, attempt } = self.stamp;
        let mut bytes = [&job.0[..], &version.0.to_le_bytes(), &attempt.0].concat();
        bytes.extend_from_slice(&self.options.block_bytes.to_le_bytes());
        bytes.extend_from_slice(&[self.options.order as u8, self.family as u8]);
        bytes.extend_from_slice(&self.bytes.to_le_bytes());
        bytes
    }

    /// The length another member announces; all else must be as it is here.
    fn check(&self, from: usize, told: &[u8]) -> Result<u64> {
        let (agreed, length) =
            told.split_last_chunk::<8>().ok_or(Error::Message { from, why: "it is cut off" })?;
        let own = self.encode();
        if *agreed != own[..own.len() - 8] {
            return Err(Error::Message { from, why: "it is about another checkpoint" });
        }
        let bytes = u64::from_le_bytes(*length);
        if bytes > i64::MAX as u64 {
            return Err(Error::Message { from, why: "it is longer than a file" });
        }
        Ok(bytes)
    }
}

/// The tasks this rank has a part in: its own group's, and those whose shards it keeps.
fn tasks(topology: &Topology, rank: usize, own: Announcement) -> Result<Vec<Task>> {
    let (own_group, place) = topology.group_of(rank);
    let mut groups = vec![own_group];
    groups.extend(topology.kept_by(rank).into_iter().map(|piece| piece.group));
    groups.sort_unstable();
    groups.dedup();
    let mut tasks = Vec::new();
    for group in groups {
        let mut task = task(topology, group, own.options)?;
        if group == own_group {
            task.sources[place].bytes = own.bytes;
        }
        tasks.push(task);
    }
    Ok(tasks)
}

/// A group's task; lengths are not known yet.
fn task(topology: &Topology, group: GroupId, options: Options) -> Result<Task> {
    let code = topology.code(group)?;
    let (k, m) = (code.k(), code.m());
    let part = |index: usize, rank, bytes| Part {
        piece: Piece { group, index: index as u32 },
        rank,
        bytes,
        at: 0,
        sums: None,
    };
    let members = topology.members(group).into_iter().enumerate();
    let sources = members.map(|(place, rank)| part(place, rank, 0)).collect();
    let target = |row: usize| {
        let keeper = Some(topology.keeper(group, row));
        Target { part: part(k + row, keeper, u64::MAX), header: None }
    };
    let largest = topology.sector_nodes(0).len();
    let slot = |row: usize, place: usize| {
        let turn = topology.turn(group, row);
        match options.order {
            Order::Star => turn * largest + (row + k - place) % k,
            Order::Together => (turn * m + row) * largest + place,
        }
    };
    let pairs = (0..m).flat_map(|row| (0..k).map(move |place| (row, place)));
    Ok(Task {
        k,
        block_bytes: options.block_bytes,
        sources,
        targets: (0..m).map(target).collect(),
        slots: pairs.map(|(row, place)| slot(row, place) as u32).collect(),
        matrix: code.parity().clone(),
    })
}

/// Tells every keeper this member's length, hears those of the members it keeps shards of, and
/// makes sure that nobody found anything wrong.
fn announce(comm: &dyn Comm, tasks: &mut [Task], own: Announcement) -> Result<()> {
    let message = own.encode();
    let mut wrong = None;
    for Step { send, receive } in steps(tasks, comm.rank()) {
        let to = send.and_then(|link| tasks[link.task].targets[link.target].part.rank);
        let from = receive.and_then(|link| tasks[link.task].sources[link.source].rank);
        let told = match (to, from) {
            (Some(to), Some(from)) => Some(comm.exchange(to, &message, from, ANNOUNCE)?),
            (Some(to), None) => {
                comm.send(to, ANNOUNCE, &message)?;
                None
            }
            (None, Some(from)) => Some(comm.receive(from, ANNOUNCE)?),
            (None, None) => None,
        };
        if let (Some(link), Some(from), Some(told)) = (receive, from, told) {
            match own.check(from, &told) {
                Ok(bytes) => tasks[link.task].sources[link.source].bytes = bytes,
                Err(error) => wrong = Some(error),
            }
        }
    }
    let own_is_wrong = own.bytes > i64::MAX as u64;
    let fine = collective::all_min(comm, u64::from(wrong.is_none() && !own_is_wrong))?;
    match wrong {
        Some(error) => Err(error),
        None if fine == 0 => Err(Error::invalid("a rank encodes another checkpoint")),
        None => {
            tasks.iter_mut().for_each(|task| complete(task, comm.rank(), own));
            Ok(())
        }
    }
}

/// Gives the shards that this rank keeps their lengths and headers.
fn complete(task: &mut Task, rank: usize, own: Announcement) {
    let member_bytes: Vec<u64> = task.sources.iter().map(|part| part.bytes).collect();
    let longest = member_bytes.iter().copied().max().unwrap_or(0);
    let (m, k) = (task.targets.len() as u32, task.k as u32);
    for target in &mut task.targets {
        if target.part.rank == Some(rank) {
            target.part.bytes = longest;
            target.header = Some(Header {
                stamp: own.stamp,
                group: target.part.piece.group,
                row: target.part.piece.index - k,
                m,
                family: own.family,
                block_bytes: task.block_bytes,
                member_bytes: member_bytes.clone(),
            });
        }
    }
}
