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

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use std::time::Instant;

use standfast_checkpoint::{Draft, Moved, Order, Part, Publisher, relocate};
use standfast_comm::{Collective, Step};
use standfast_format::{AttemptId, HashKind, Image, Kind, Pledge, SegmentId, SegmentRef, name};
use standfast_restart::Inventory;
use standfast_store::Store;

use crate::checkpoint::told::Holdings;
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
    let heads = team.gather(Step("pledges"), heads)?.concat();
    // All have succeeded.
    let own = own.ok().flatten().unwrap_or_default();
    let Some(attempt) = complete(&heads) else { return Ok(()) };
    let of_attempt: Vec<&Pledge> = heads.iter().filter(|head| head.attempt == attempt).collect();
    let order = Order {
        version: of_attempt[0].version,
        attempt,
        taken_ns: of_attempt[0].taken_ns,
        sequence: of_attempt[0].sequence,
    };
    let moved = moved(&of_attempt);
    let written = own.iter().filter(|pledge| pledge.attempt == attempt).map(|pledge| {
        has_segments(&**store, pledge)?;
        write_images(store, order, pledge, &moved, inventory)
    });
    let written = written.collect::<Result<Vec<Vec<Part>>>>().map(|parts| parts.concat());
    let parts = match team.gather(Step("pledges: images"), written) {
        Ok(parts) => parts.concat(),
        Err(Stop::Failed(why)) => {
            // It contradicts itself or what is there: the opening takes it away.
            let [void] = *team.all_hold(Step("pledges: void"), [is_void(why.error())])?;
            return if void { Ok(()) } else { Err(why.into()) };
        }
        Err(lost) => return Err(lost),
    };
    publish(team, store, stores, (order, of_attempt[0].ranks), parts, inventory)
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

fn moved(pledges: &[&Pledge]) -> HashMap<SegmentId, Moved> {
    let of_pledge = |pledge: &&Pledge| {
        let place = |stream: &standfast_format::PledgedStream| {
            let segment = pledge.segments[stream.segment as usize];
            (stream.stream, Moved { segment, first_slot: stream.first_slot })
        };
        pledge.streams.iter().map(place).collect::<Vec<_>>()
    };
    pledges.iter().flat_map(of_pledge).collect()
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

fn write_images(
    store: &Arc<dyn Store>,
    order: Order,
    pledge: &Pledge,
    moved: &HashMap<SegmentId, Moved>,
    inventory: &Inventory,
) -> Result<Vec<Part>> {
    let segments = inventory.checkpoints.iter().flat_map(|manifest| &manifest.segments);
    let known: HashMap<SegmentId, &SegmentRef> =
        segments.map(|segment| (segment.id, segment)).collect();
    let write = |part: &standfast_format::PledgedPart| {
        let object = name::pledge(order.version, order.attempt);
        let decoded = Image::decode(&part.image);
        let (mut image, _) = decoded
            .map_err(|source| standfast_checkpoint::Unreadable::Object { object, source })?;
        for segment in &image.segments {
            let there = match part.streams.contains(&segment.id) {
                true => moved.contains_key(&segment.id),
                false => known.get(&segment.id) == Some(&segment),
            };
            if !there {
                return Err(Error::Unsealed { segment: segment.id });
            }
        }
        relocate(&mut image.segments, &mut image.regions, moved)?;
        let publisher = Publisher {
            store: Arc::clone(store),
            job: inventory.header.id,
            hash: image.hash,
            page_bytes: image.page_bytes,
            keep: 0,
            every: 0,
            node: pledge.node.clone(),
        };
        let table = image.segments.into_iter().map(|segment| (segment.id, Some(segment)));
        let draft = Draft {
            rank: part.rank,
            regions: image.regions,
            table: table.collect(),
            references: image.references,
            stats: part.stats,
            started: Instant::now(),
            pieces: part.writes.pieces.clone(),
            writes: part.writes.writes.clone(),
        };
        Ok(publisher.write_image(order, draft, &[])?)
    };
    pledge.parts.iter().map(write).collect()
}

/// Writes the manifest over all parts, in every store.
fn publish(
    team: &Collective,
    store: &Arc<dyn Store>,
    stores: &Stores,
    (order, ranks): (Order, u32),
    mut parts: Vec<Part>,
    inventory: &mut Inventory,
) -> Phase<()> {
    parts.sort_by_key(|part| part.image.rank);
    // A manifest says nothing of hashes or pages.
    let publisher = Publisher {
        store: Arc::clone(store),
        job: inventory.header.id,
        hash: HashKind::Xxh3,
        page_bytes: 0,
        keep: 0,
        every: 0,
        node: String::new(),
    };
    let holdings = team.tell(Step("pledges: manifest"), || {
        let written = publisher.write_manifest(order, (order.sequence, ranks), parts, inventory);
        written.map_err(|unpublished| unpublished.error)?;
        Ok::<_, Error>(Holdings::of(inventory))
    })?;
    if !team.is_first() {
        holdings.take_in(inventory);
    }
    // A store that could not be told is at the next opening.
    let manifest = inventory.checkpoint(order.version).map_err(Error::from);
    let manifest = team.agree(Step("pledges: redeemed"), manifest)?;
    stores.spread(team, &**store, manifest).map(drop)
}

/// Whether a failure is the pledge's own.
fn is_void(error: &Error) -> bool {
    matches!(error.kind(), Kind::Corrupt | Kind::Missing | Kind::Bug)
}

#[cfg(test)]
mod tests {
    use standfast_format::{JobId, PledgedPart, Rank, Stats, Version, Writes};

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
