//! Runs a plan, and plans again when something turns out to be damaged.

use std::collections::BTreeSet;
use std::sync::Arc;

use standfast_comm::{Comm, Tag, collective};

use super::slots::slots;
use super::{Claim, GroupPlan, Holding, Place, Plan, plan};
use crate::error::{Error, Result};
use crate::shard::{BLOCK_BYTES_MAX, BLOCK_BYTES_MIN, Header, Shard, Stamp, Table};
use crate::star::{self, Cpu, Means, Outcome, Part, Report, Sink, Source, Target, Task};
use crate::topology::{Piece, Topology};

const WITNESS: Tag = Tag(0x0602);

/// How a recovery has ended.
#[derive(Debug)]
pub struct Recovered {
    /// Members and shards that were made on this rank.
    pub made: Vec<Piece>,
    /// The shards among them.
    pub shards: Vec<Shard>,
    /// Pieces that were found damaged, on any rank.
    pub damaged: Vec<Piece>,
    /// What it has cost this rank.
    pub report: Report,
}

/// What shall be brought back, and for whom.
#[derive(Clone, Copy, Debug)]
pub struct Recovery<'a> {
    /// As it was when the checkpoint was encoded.
    pub topology: &'a Topology,
    /// The checkpoint.
    pub stamp: Stamp,
    /// The rank of this job that takes the place of each rank of the topology.
    pub heirs: &'a [usize],
    /// Bytes of a block where no shard of a group is left to tell.
    pub block_bytes: u32,
}

/// Brings back whatever the groups of a checkpoint have lost. Collective over the new job: each
/// rank says what it holds, reads it from `source`, and gets what it shall hold in `sink`. Empty
/// members are not written: their heirs know them by their length.
pub fn recover(
    comm: &dyn Comm,
    recovery: Recovery<'_>,
    holding: &Holding,
    source: &mut dyn Source,
    sink: &mut dyn Sink,
) -> Result<Recovered> {
    recover_with(comm, recovery, holding, &mut Means { source, sink, arithmetic: &mut Cpu })
}

/// The same with means of the caller's choice; every rank may have others.
pub fn recover_with(
    comm: &dyn Comm,
    recovery: Recovery<'_>,
    holding: &Holding,
    means: &mut Means<'_>,
) -> Result<Recovered> {
    let Recovery { topology, stamp, heirs, block_bytes } = recovery;
    if heirs.len() != topology.ranks() || heirs.iter().any(|heir| *heir >= comm.size()) {
        return Err(Error::invalid("every rank of the checkpoint needs an heir in this job"));
    }
    if !(BLOCK_BYTES_MIN..=BLOCK_BYTES_MAX).contains(&block_bytes) {
        return Err(Error::invalid(format!("blocks of {block_bytes} bytes")));
    }
    let mut job = Job { comm, topology, stamp, shards: holding.shards.clone() };
    let mut claims = job.claims(holding)?;
    let mut bad = BTreeSet::new();
    let mut recovered =
        Recovered { made: vec![], shards: vec![], damaged: vec![], report: Report::default() };
    loop {
        let plan = plan(topology, &claims, heirs, &bad, block_bytes);
        if let Some(loss) = plan.lost.first() {
            return Err(loss.error(topology));
        }
        if plan.groups.is_empty() {
            return Ok(recovered);
        }
        let outcome = star::run(comm, &job.tasks(&plan)?, means)?;
        recovered.report = recovered.report.plus(outcome.report);
        let round = job.settle(&plan, outcome)?;
        recovered.note(&round)?;
        bad.extend(&round.bad);
        // What was made is held from now on, also where it was damaged before.
        for (rank, made) in round.made_by.into_iter().enumerate() {
            made.pieces().for_each(|piece| _ = bad.remove(&(piece, rank)));
            claims[rank].members.extend(made.members);
            claims[rank].shards.extend(made.shards);
        }
        job.shards.splice(0..0, round.shards);
    }
}

impl Recovered {
    /// Keeps a round's results. Damage must be new: what was made again and is damaged again, or
    /// fails without damage, would go on for ever.
    fn note(&mut self, round: &Round) -> Result<()> {
        let again = round.bad.iter().any(|(piece, _)| self.damaged.contains(piece));
        if again || (round.bad.is_empty() && !round.complete) {
            return Err(Error::Corrupt { what: "piece", why: "it cannot be made whole" });
        }
        self.damaged.extend(round.bad.iter().map(|(piece, _)| *piece));
        self.made.extend(&round.made);
        self.shards.extend(round.shards.iter().cloned());
        Ok(())
    }
}

struct Job<'a> {
    comm: &'a dyn Comm,
    topology: &'a Topology,
    stamp: Stamp,
    /// Shards that this rank holds, the newest first.
    shards: Vec<Shard>,
}

/// What all ranks know after a round.
struct Round {
    made: Vec<Piece>,
    shards: Vec<Shard>,
    bad: Vec<(Piece, usize)>,
    made_by: Vec<Claim>,
    /// Whether every target of the plan was made.
    complete: bool,
}

/// What a rank tells after a round.
#[derive(serde::Serialize, serde::Deserialize)]
struct Told {
    made: Vec<Piece>,
    bad: Vec<Piece>,
    /// A piece that could not be made, though no source of it is known to be damaged.
    stuck: Option<Piece>,
}

impl Job<'_> {
    fn claims(&self, holding: &Holding) -> Result<Vec<Claim>> {
        let own = Claim::of(self.topology, self.stamp, holding).encode();
        let told = collective::all_gather(self.comm, &own)?;
        let claims = told.iter().enumerate();
        claims.map(|(from, bytes)| Claim::decode(self.topology, from, bytes)).collect()
    }

    /// The groups of a plan that this rank has a part in, ready to run.
    fn tasks(&self, plan: &Plan) -> Result<Vec<Task>> {
        let mut tasks = Vec::new();
        for (group, slots) in plan.groups.iter().zip(slots(plan)) {
            let own = |place: &Place| place.rank == Some(self.comm.rank());
            if group.sources.iter().chain(&group.targets).chain(&group.witness).any(own) {
                let witness = self.witness(group)?.map(Arc::new);
                tasks.push(self.task(group, slots, witness)?);
            }
        }
        Ok(tasks)
    }

    fn header(&self, group: &GroupPlan, piece: Piece) -> Header {
        Header {
            stamp: self.stamp,
            group: group.group,
            row: piece.index.saturating_sub(group.member_bytes.len() as u32),
            m: self.topology.shape().m as u32,
            family: self.topology.shape().family,
            block_bytes: group.block_bytes,
            member_bytes: group.member_bytes.clone(),
        }
    }

    /// The witness's table, told to everybody who has a part in the group. One message after the
    /// other, in the same order everywhere.
    fn witness(&self, group: &GroupPlan) -> Result<Option<Table>> {
        let Some(Place { piece, rank: Some(teller) }) = group.witness else { return Ok(None) };
        let own = self.comm.rank();
        let parts = group.sources.iter().chain(&group.targets).filter_map(|place| place.rank);
        let listeners: BTreeSet<usize> = parts.filter(|rank| *rank != teller).collect();
        if own == teller {
            let table = &self.held(piece).expect("a witness holds its shard").table;
            let bytes = table.encode();
            for listener in listeners {
                self.comm.send(listener, WITNESS, &bytes)?;
            }
            return Ok(Some(table.clone()));
        }
        let bytes = self.comm.receive(teller, WITNESS)?;
        let table = Table::decode(&bytes, &self.header(group, piece));
        let why = "a table of checksums that cannot be used";
        table.map(Some).map_err(|_| Error::Message { from: teller, why })
    }

    fn held(&self, piece: Piece) -> Option<&Shard> {
        let current = |shard: &&Shard| shard.header.stamp == self.stamp && shard.piece() == piece;
        self.shards.iter().find(current)
    }

    fn task(&self, group: &GroupPlan, slots: Vec<u32>, known: Option<Arc<Table>>) -> Result<Task> {
        let k = group.member_bytes.len();
        let longest = group.member_bytes.iter().copied().max().unwrap_or(0);
        let part = |place: &Place, sums| Part {
            piece: place.piece,
            rank: place.rank,
            bytes: group.member_bytes.get(place.piece.index as usize).copied().unwrap_or(longest),
            at: 0,
            sums,
        };
        let source = |place: &Place| {
            if (place.piece.index as usize) < k {
                return part(place, known.clone());
            }
            // Only its holder has the shard's own table, and only it reads the shard.
            let shard = self.held(place.piece).filter(|_| place.rank == Some(self.comm.rank()));
            let at = shard.map_or(0, |shard| shard.body_at);
            Part { at, ..part(place, shard.map(|shard| Arc::new(shard.table.clone()))) }
        };
        let target = |place: &Place| {
            let is_shard = place.piece.index as usize >= k;
            let header = is_shard.then(|| self.header(group, place.piece));
            Target { part: part(place, known.clone()), header }
        };
        let index = |place: &Place| place.piece.index as usize;
        let present: Vec<usize> = group.sources.iter().map(index).collect();
        let wanted: Vec<usize> = group.targets.iter().map(index).collect();
        Ok(Task {
            k,
            block_bytes: group.block_bytes,
            sources: group.sources.iter().map(source).collect(),
            targets: group.targets.iter().map(target).collect(),
            matrix: self.topology.code(group.group)?.rebuild(&present, &wanted)?,
            slots,
        })
    }

    /// Tells and hears how the round went; fails on all ranks where one is stuck.
    fn settle(&self, plan: &Plan, outcome: Outcome) -> Result<Round> {
        let bad: Vec<Piece> = outcome.sources_failed.iter().map(|(piece, _)| *piece).collect();
        // A peer that could not give its part names the damage itself.
        let is_stuck = |error: &Error| !matches!(error, Error::Peer { .. });
        let stuck = outcome.targets_failed.into_iter().find(|(_, error)| is_stuck(error));
        let made = outcome.made;
        let told = Told { made: made.clone(), bad, stuck: stuck.as_ref().map(|(piece, _)| *piece) };
        let bytes = postcard::to_stdvec(&told).expect("our own fields can be encoded");
        let all = collective::all_gather(self.comm, &bytes)?;
        if let Some((_, error)) = stuck {
            return Err(error);
        }
        let (bad, made_by) = (vec![], vec![]);
        let mut round = Round { made, shards: outcome.shards, bad, made_by, complete: false };
        for (rank, bytes) in all.iter().enumerate() {
            let unreadable = |_| Error::Message { from: rank, why: "an unreadable end of a round" };
            let told: Told = postcard::from_bytes(bytes).map_err(unreadable)?;
            if let Some(piece) = told.stuck {
                return Err(Error::Peer { piece, rank });
            }
            round.bad.extend(told.bad.into_iter().map(|piece| (piece, rank)));
            round.made_by.push(made_claim(plan, &told.made));
        }
        let targets: usize = plan.groups.iter().map(|group| group.targets.len()).sum();
        let made = round.made_by.iter().map(|made| made.pieces().count()).sum::<usize>();
        round.complete = made == targets;
        Ok(round)
    }
}

/// What a rank holds since it made these pieces.
fn made_claim(plan: &Plan, made: &[Piece]) -> Claim {
    let mut claim = Claim::default();
    for &piece in made {
        let Some(group) = plan.groups.iter().find(|group| group.group == piece.group) else {
            continue;
        };
        match group.member_bytes.get(piece.index as usize) {
            Some(&bytes) => claim.members.push((piece, bytes)),
            None => claim.shards.push(super::ShardClaim {
                piece,
                block_bytes: group.block_bytes,
                member_bytes: group.member_bytes.clone(),
            }),
        }
    }
    claim
}
