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

use standfast_checkpoint::publishing::{
    Aftermath, Files, Happened, Role, Steps, Talk, Verdict, drive,
};
use standfast_checkpoint::{
    Described, Inventory, Order, Part, Publisher, StreamPlace, Unreadable, known_segments,
};
use standfast_comm::{Collective, Step};
use standfast_format::{
    AttemptId, HashKind, Image, Kind, Pledge, PledgedPart, PledgedStream, name,
};
use standfast_store::{Store, prove_absent};
use standfast_sys::Stopwatch;

use crate::checkpoint::ranks::Ranks;
use crate::error::{Cause, Error, Phase, Result, Stop};
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
    let mut own = own.ok().flatten().unwrap_or_default();
    // What is void hides nothing: an attempt of which a node has removed something may be the newer one.
    while let Some(attempt) = complete(&heads) {
        let (one, others) = heads.into_iter().partition(|head| head.attempt == attempt);
        heads = others;
        let at = own.iter().position(|pledge| pledge.attempt == attempt);
        let own = at.map(|at| own.swap_remove(at));
        if redeem_one(team, (store, stores), (&one, own), inventory)? {
            break;
        }
    }
    Ok(())
}

/// Commits an attempt that all nodes have pledged; false if it is void. `heads`: of all nodes;
/// `own`: the pledge of this rank's store, on its leader.
fn redeem_one(
    team: &Collective,
    (store, stores): (&Arc<dyn Store>, &Stores),
    (heads, own): (&[Pledge], Option<Pledge>),
    inventory: &mut Inventory,
) -> Phase<bool> {
    let Pledge { version, attempt, taken_ns, sequence, ranks: job_ranks, abandons, .. } = heads[0];
    let order = Order { version, attempt, taken_ns, sequence, abandons };
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
        Err(_) if steps.void => Ok(false),
        redeemed => redeemed.map(|_| true),
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
            let started = Stopwatch::start();
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
    fn prune(&mut self) -> Aftermath {
        Aftermath::default()
    }

    /// What is left of it goes with the opening.
    fn remove(&mut self, _: Files) -> bool {
        true
    }

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
        let name = name::segment(segment.id);
        let object = store.open(&name).map_err(|error| prove_absent(store, &name, error))?;
        if object.bytes() != segment.file_bytes {
            return Err(Cause::Unsealed { segment: segment.id }.into());
        }
    }
    Ok(())
}

/// Whether a failure is the pledge's own.
fn is_void(error: &Error) -> bool {
    matches!(error.kind(), Kind::Corrupt | Kind::Missing | Kind::Bug)
}

#[cfg(test)]
mod tests;
