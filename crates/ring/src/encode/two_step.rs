//! The paper's form: a group makes its shards on its own ranks, which then send them to their keepers.
//!
//! ```text
//! members -> star within the group -> shards at members -> a message for each block -> keepers
//! ```
//! Every shard travels once more than in the folded form, and is written and read once more. It is
//! kept to be compared with; what it leaves is the same.

use std::sync::Arc;

use standfast_comm::{Comm, Tag};

use super::{Announcement, Encoded, announce, ended, task};
use crate::error::{Error, Result};
use crate::matrix::Matrix;
use crate::shard::{Header, Shard, Table};
use crate::star::{self, Means, Part, Step, Target, Task, steps};
use crate::topology::{GroupId, Piece, Topology};

const HAND_OVER: Tag = Tag(0x0603);
/// Bytes that tell how long a header is.
const LENGTH_BYTES: usize = 4;

pub(super) fn encode(
    comm: &dyn Comm,
    topology: &Topology,
    own: Announcement,
    means: &mut Means<'_>,
) -> Result<Encoded> {
    let rank = comm.rank();
    let (group, place) = topology.group_of(rank);
    let mut within = task(topology, group, own.options, &makers(topology, group))?;
    within.sources[place].bytes = own.bytes;
    let mut tasks = vec![within];
    announce(comm, &mut tasks, own)?;
    let made = star::run(comm, &tasks, means)?;
    let first_report = made.report;
    let moves = moves(topology, rank);
    let (tasks, lost) = hand_over(comm, moves, &made.shards)?;
    let mut outcome = star::run(comm, &tasks, means)?;
    for task in &tasks {
        let (from, to) = (&task.sources[0], &task.targets[0].part);
        if from.rank == Some(rank) && to.rank != Some(rank) {
            means.sink.forget(from.piece);
        }
    }
    // Those that stay where they were made.
    let stays =
        |shard: &&Shard| topology.keeper(shard.header.group, shard.header.row as usize) == rank;
    outcome.shards.extend(made.shards.iter().filter(stays).cloned());
    outcome.sources_failed.extend(made.sources_failed);
    outcome.targets_failed.extend(made.targets_failed);
    outcome.targets_failed.extend(lost);
    outcome.report = outcome.report.plus(first_report);
    ended(outcome)
}

/// Who makes each shard of a group: the member at its place, or the next one where a node has none.
fn makers(topology: &Topology, group: GroupId) -> Vec<(usize, usize)> {
    let members = topology.members(group);
    let mut makers: Vec<(usize, usize)> = Vec::new();
    for row in 0..topology.shape().m {
        let rank = (0..members.len()).find_map(|step| members[(row + step) % members.len()]);
        let rank = rank.expect("a group has a member");
        let turn = makers.iter().filter(|(other, _)| *other == rank).count();
        makers.push((rank, turn));
    }
    makers
}

/// A shard on its way.
struct Move {
    piece: Piece,
    from: usize,
    to: usize,
    slot: u32,
}

/// The shards that this rank sends or gets.
fn moves(topology: &Topology, rank: usize) -> Vec<Move> {
    let mut groups = vec![topology.group_of(rank).0];
    groups.extend(topology.kept_by(rank).into_iter().map(|piece| piece.group));
    groups.sort_unstable();
    groups.dedup();
    let mut moves = Vec::new();
    for group in groups {
        let k = topology.members(group).len();
        for (row, (from, made_before)) in makers(topology, group).into_iter().enumerate() {
            let to = topology.keeper(group, row);
            if from == to || (from != rank && to != rank) {
                continue;
            }
            // Whoever sends several counts them by the first number, whoever gets several by the
            // second: no two of one rank share a slot.
            let slot = (made_before * topology.levels() + topology.turn(group, row)) as u32;
            moves.push(Move { piece: Piece { group, index: (k + row) as u32 }, from, to, slot });
        }
    }
    moves
}

impl Move {
    /// As a task, without a length yet.
    fn task(&self, k: usize) -> Task {
        let part = |rank| Part { piece: self.piece, rank: Some(rank), bytes: 0, at: 0, sums: None };
        Task {
            k,
            block_bytes: 0,
            sources: vec![part(self.from)],
            targets: vec![Target { part: part(self.to), header: None }],
            matrix: Matrix::new(1, 1, |_, _| 1),
            slots: vec![self.slot],
        }
    }
}

/// A shard that could not be made, and why.
type Lost = (Piece, Error);

/// Tells keepers what they get: header and checksums of every shard. The tasks that are left to do,
/// and the shards that nobody has made.
fn hand_over(comm: &dyn Comm, moves: Vec<Move>, made: &[Shard]) -> Result<(Vec<Task>, Vec<Lost>)> {
    let rank = comm.rank();
    let mut tasks: Vec<Task> = moves.iter().map(|shard| shard.task(0)).collect();
    let mut known: Vec<Option<Shard>> = moves
        .iter()
        .map(|shard| made.iter().find(|made| made.piece() == shard.piece).cloned())
        .collect();
    for Step { send, receive } in steps(&tasks, rank) {
        let message = send.map(|link| known[link.task].as_ref().map(encode_shard));
        let to = send.map(|link| moves[link.task].to);
        let from = receive.map(|link| moves[link.task].from);
        let message = message.flatten().unwrap_or_default();
        let told = match (to, from) {
            (Some(to), Some(from)) => Some(comm.exchange(to, &message, from, HAND_OVER)?),
            (Some(to), None) => {
                comm.send(to, HAND_OVER, &message)?;
                None
            }
            (None, Some(from)) => Some(comm.receive(from, HAND_OVER)?),
            (None, None) => None,
        };
        if let (Some(link), Some(told)) = (receive, told) {
            let shard = decode_shard(&told).filter(|shard| shard.piece() == moves[link.task].piece);
            known[link.task] = shard;
        }
    }
    let mut lost = Vec::new();
    for (at, (task, shard)) in tasks.iter_mut().zip(&known).enumerate() {
        match shard {
            Some(shard) => complete(task, shard),
            None if moves[at].to == rank => {
                let (piece, rank) = (moves[at].piece, moves[at].from);
                lost.push((piece, Error::Peer { piece, rank }));
            }
            None => {}
        }
    }
    tasks.retain(|task| task.block_bytes > 0);
    Ok((tasks, lost))
}

fn complete(task: &mut Task, shard: &Shard) {
    let sums = Some(Arc::new(shard.table.clone()));
    let bytes = shard.header.body_bytes();
    task.k = shard.header.k();
    task.block_bytes = shard.header.block_bytes;
    let source = &mut task.sources[0];
    (source.bytes, source.at, source.sums) = (bytes, shard.body_at, sums.clone());
    let target = &mut task.targets[0];
    (target.part.bytes, target.part.sums) = (bytes, sums);
    target.header = Some(shard.header.clone());
}

fn encode_shard(shard: &Shard) -> Vec<u8> {
    let head = shard.header.encode();
    [&(head.len() as u32).to_le_bytes()[..], &head, &shard.table.encode()].concat()
}

fn decode_shard(bytes: &[u8]) -> Option<Shard> {
    let (length, rest) = bytes.split_first_chunk::<LENGTH_BYTES>()?;
    let (head, table) = rest.split_at_checked(u32::from_le_bytes(*length) as usize)?;
    let header = Header::decode(head).ok()?;
    let table = Table::decode(table, &header).ok()?;
    Some(Shard { header, table, body_at: head.len() as u64 })
}
