//! Redeeming pledges: an attempt whose ranks have died after every node had made its part durable.
//!
//! ```text
//! every leader: its store's pledges -> all ranks know who has pledged what
//! one attempt covers every rank -> each leader writes the images of its pledge -> manifest, as ever
//! ```
//! Why at the next opening: agents of different nodes do not talk to each other, and the ranks that
//! did are dead. Nothing can be lost meanwhile: pruning leaves pledged files alone.
//!
//! Invariants:
//! - Only what is newer than every committed checkpoint is redeemed: an attempt that failed while its
//!   job went on is void.
//! - A pledge that contradicts the store is void; a store that fails is an error, and the pledges stay.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Instant;

use standfast_checkpoint::publishing::{
    Files, Happened, Published, Role, Steps, Talk, Verdict, drive,
};
use standfast_checkpoint::{
    Described, Inventory, Order, Part, Publisher, StreamPlace, Unreadable, known_segments,
};
use standfast_comm::{Collective, Step};
use standfast_format::{
    AttemptId, HashKind, Image, Kind, Pledge, PledgedPart, PledgedStream, name,
};
use standfast_store::Store;

use crate::checkpoint::ranks::Ranks;
use crate::error::{Error, Phase, Result, Stop};
use crate::stores::Stores;

/// Largest pledge that is read: the images of a node's ranks are in it.
const PLEDGE_BYTES_MAX: u64 = 1 << 34;

/// Commits the newest attempt that all nodes have pledged, if it is newer than every checkpoint.
pub(crate) fn redeem(
    team: &Collective,
    store: &Arc<dyn Store>,
    stores: &Stores,
    inventory: &mut Inventory,
) -> Phase<()> {
    let own = stores.lead(|| read(&**store, inventory));
    let heads = match &own {
        Ok(own) => Ok(own.iter().flatten().map(head).collect::<Vec<Pledge>>()),
        Err(error) => Err(error.clone()),
    };
    let mut heads = team.gather(Step("pledges"), heads)?.concat();
    // All have succeeded.
    let own = own.ok().flatten().unwrap_or_default();
    let Some(attempt) = complete(&heads) else { return Ok(()) };
    heads.retain(|head| head.attempt == attempt);
    let Pledge { version, taken_ns, sequence, ranks: job_ranks, .. } = heads[0];
    let order = Order { version, attempt, taken_ns, sequence };
    let own = own.into_iter().find(|pledge| pledge.attempt == attempt);
    let publisher = Publisher {
        store: Arc::clone(store),
        job: inventory.header.id,
        // Images say these themselves.
        hash: HashKind::Xxh3,
        page_bytes: 0,
        keep: 0,
        every: 0,
        node: own.as_ref().map(|pledge| pledge.node.clone()).unwrap_or_default(),
    };
    let part = Part::join(heads.iter().map(durable));
    let ranks = Ranks { team, store: &**store, stores, order, inventory, entries: Vec::new() };
    let role = Role::Redeemer { first: team.is_first() };
    let mut steps = RedeemSteps { publisher, own, job_ranks, part, ranks, void: false };
    let redeemed = match drive(role, Ok(()), &mut steps) {
        // The opening takes it away.
        Err(_) if steps.void => Ok(()),
        redeemed => redeemed.map(drop),
    };
    team.agree(Step("pledges: redeemed"), redeemed)
}

/// The steps of a rank that redeems.
struct RedeemSteps<'a> {
    publisher: Publisher,
    /// The pledge of this rank's store, on its leader.
    own: Option<Pledge>,
    /// Ranks of the job that pledged.
    job_ranks: u32,
    /// Of all nodes.
    part: Part,
    ranks: Ranks<'a>,
    /// Whether a pledge contradicts itself or what is there.
    void: bool,
}

impl Steps for RedeemSteps<'_> {
    type Error = Error;

    fn store_images(&mut self) -> Result<()> {
        let Some(pledge) = self.own.take() else { return Ok(()) };
        has_segments(self.ranks.store, &pledge)?;
        let (moved, known) = (self.part.moved(), known_segments(self.ranks.inventory));
        let order = self.ranks.order;
        for part in pledge.parts {
            let object = name::pledge(order.version, order.attempt);
            let decoded = Image::decode(&part.image);
            let (image, _) = decoded.map_err(|source| Unreadable::Object { object, source })?;
            let PledgedPart { streams, stats, writes, .. } = part;
            let started = Instant::now();
            let mut described = Described { image, streams, stats, writes, started };
            described.place(&moved, |segment| known.get(&segment.id) == Some(segment))?;
            self.ranks.entries.push(self.publisher.write_image(order, described)?);
        }
        Ok(())
    }

    fn write_manifest(&mut self) -> Verdict<Error> {
        self.ranks.write_manifest(&self.publisher, self.job_ranks)
    }

    /// What is beyond `keep` goes with the job's next checkpoint.
    fn prune(&mut self) -> Published {
        Published::default()
    }

    /// What is left of it goes with the opening.
    fn remove(&mut self, _: Files) {}

    fn talk(&mut self, talk: Talk<Error>) -> Happened<Error> {
        match talk {
            // The pledges have told it.
            Talk::Parts(own) => Happened::Told(own),
            Talk::Images(own) => self.tell_images(own),
            Talk::Verdict(own) => self.ranks.tell_verdict(own),
            // A store that could not be told is at the next opening.
            Talk::Spread => self.ranks.spread(),
            Talk::Prune => Happened::Pruned(self.prune()),
        }
    }
}

impl RedeemSteps<'_> {
    /// All ranks hear of all: they must agree on whether the pledges are void.
    fn tell_images(&mut self, own: Result<()>) -> Happened<Error> {
        let own = own.map(|()| std::mem::take(&mut self.ranks.entries));
        match self.ranks.team.gather(Step("pledges: images"), own) {
            Ok(all) => {
                self.ranks.entries = all.concat();
                self.ranks.entries.sort_by_key(|entry| entry.image.rank);
                Happened::Images(Ok(()))
            }
            Err(stop @ Stop::Lost(_)) => Happened::Lost(stop.into()),
            Err(stop) => {
                let error = Error::from(stop);
                self.void = is_void(&error);
                Happened::Images(Err(error))
            }
        }
    }
}

/// The pledges of a store that may be redeemed.
fn read(store: &dyn Store, inventory: &Inventory) -> Result<Vec<Pledge>> {
    let newest = inventory.checkpoints.first().map_or(0, |manifest| manifest.sequence);
    let mut pledges = Vec::new();
    for object in store.list(name::PLEDGES)? {
        let Some((version, attempt)) = name::parse_pledge(&object.name) else { continue };
        let Ok(pledge) = Pledge::decode(&store.get(&object.name, PLEDGE_BYTES_MAX)?) else {
            continue;
        };
        let same =
            (pledge.job, pledge.version, pledge.attempt) == (inventory.header.id, version, attempt);
        if same && pledge.sequence > newest {
            pledges.push(pledge);
        }
    }
    Ok(pledges)
}

/// A pledge without its images: what others need to know of it.
fn head(pledge: &Pledge) -> Pledge {
    let mut head = pledge.clone();
    for part in &mut head.parts {
        part.image = Vec::new();
        part.streams = Vec::new();
    }
    head
}

/// The newest attempt that is pledged for every rank.
fn complete(heads: &[Pledge]) -> Option<AttemptId> {
    let covers = |head: &&Pledge| {
        let same = heads.iter().filter(|other| other.attempt == head.attempt);
        let ranks: BTreeSet<u32> =
            same.flat_map(|pledge| &pledge.parts).map(|part| part.rank.0).collect();
        ranks.len() == head.ranks as usize && ranks.last().is_some_and(|last| *last < head.ranks)
    };
    let newest = heads.iter().filter(covers).max_by_key(|head| (head.sequence, head.taken_ns));
    newest.map(|head| head.attempt)
}

/// What the node of a pledge has made durable.
fn durable(pledge: &Pledge) -> Part {
    let place = |stream: &PledgedStream| StreamPlace {
        stream: stream.stream,
        segment: pledge.segments[stream.segment as usize].id,
        first_slot: stream.first_slot,
    };
    Part { segments: pledge.segments.clone(), places: pledge.streams.iter().map(place).collect() }
}

fn has_segments(store: &dyn Store, pledge: &Pledge) -> Result<()> {
    for segment in &pledge.segments {
        let object = store.open(&name::segment(segment.id))?;
        if object.bytes() != segment.file_bytes {
            return Err(Error::Unsealed { segment: segment.id });
        }
    }
    Ok(())
}

/// Whether a failure is the pledge's own.
fn is_void(error: &Error) -> bool {
    matches!(error.kind(), Kind::Corrupt | Kind::Missing | Kind::Bug)
}

#[cfg(test)]
mod tests {
    use standfast_format::{JobId, Rank, Stats, Version, Writes};

    use super::*;

    fn pledge(attempt: u8, sequence: u64, ranks: u32, of: &[u32]) -> Pledge {
        let part = |rank: &u32| PledgedPart {
            rank: Rank(*rank),
            image: vec![],
            streams: vec![],
            stats: Stats::default(),
            writes: Writes::of(Rank(*rank)),
        };
        Pledge {
            job: JobId([0; 16]),
            version: Version(sequence),
            attempt: AttemptId([attempt; 8]),
            sequence,
            taken_ns: 0,
            ranks,
            node: String::new(),
            segments: vec![],
            streams: vec![],
            parts: of.iter().map(part).collect(),
        }
    }

    #[test]
    fn an_attempt_counts_when_every_rank_is_in_it() {
        let older = [pledge(1, 4, 3, &[0, 1]), pledge(1, 4, 3, &[2])];
        let newer = pledge(2, 5, 3, &[0, 1]);
        assert_eq!(complete(&older), Some(AttemptId([1; 8])));
        let all = [older[0].clone(), newer.clone(), older[1].clone()];
        assert_eq!(complete(&all), Some(AttemptId([1; 8])), "the newer one lacks a rank");
        let all = [older.to_vec(), vec![newer, pledge(2, 5, 3, &[2])]].concat();
        assert_eq!(complete(&all), Some(AttemptId([2; 8])));
        assert_eq!(complete(&older[..1]), None);
        assert_eq!(complete(&[]), None);
    }
}
