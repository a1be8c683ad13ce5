//! Making a checkpoint durable for the ranks of a node, in the documented order.
//!
//! Data: blocks of all ranks in shared segments, and each rank's image description -> where these
//! are all ranks of the job, the same files that ranks write by themselves; else the node's pledge,
//! with which the ranks commit ([`super::pledge`]). Images come from other processes: what they refer
//! to is checked before anything names it.

use std::collections::BTreeMap;

use standfast_checkpoint::publishing::{
    Aftermath, Files, Happened, Role, Steps, Talk, Verdict, drive,
};
use standfast_checkpoint::{
    Described, Entry, Error as CommitError, Holdings, Inventory, Order, Part, Publisher,
    StreamPlace, busy, failpoint, known_segments,
};
use standfast_format::{
    AttemptId, Image, Kind, PledgedPart, Rank, SegmentRef, Stats, Writes, name,
};
use standfast_sys::Stopwatch;
use standfast_write::{Segments, SharedSegment};

use super::pledge;
use crate::message::{Failure, HandOver, Pledged, Settled};

/// An attempt that every rank has handed over, with the time of each.
pub(super) struct Ready {
    pub(super) batch: Segments,
    pub(super) parts: BTreeMap<u32, (HandOver, Stopwatch)>,
}

/// Commits as [`Role::Agent`], or pledges as [`Role::Pledger`]; tells what became of it. `ranks`: of
/// the job, on all nodes.
pub(super) fn commit(
    publisher: &Publisher,
    order: Order,
    ranks: u32,
    role: Role,
    ready: Ready,
    inventory: &mut Inventory,
) -> Settled {
    let _busy = busy::hold(&*publisher.store);
    if role == Role::Agent {
        failpoint::pass("commit.before_segments");
    }
    // Sealing replaces nothing; what it leaves of a refused attempt goes when the job is next opened.
    let sealed = ready.batch.seal().map_err(|error| Failure::new(error.kind(), &error));
    let sealed = sealed.and_then(|sealed| check_new(publisher, order).map(|()| sealed));
    let (begun, sealed) = match sealed {
        Ok(sealed) => (Ok(()), sealed),
        Err(failure) => (Err(failure), Vec::new()),
    };
    let handed = ready
        .parts
        .into_iter()
        .map(|(rank, (part, received))| handed(rank, part, received, &sealed));
    let mut steps = AgentSteps {
        publisher,
        order,
        ranks,
        is_whole: role == Role::Agent,
        part: durable(&sealed),
        handed: handed.collect(),
        entries: Vec::new(),
        pledged: None,
        replaced: inventory.checkpoints.iter().any(|other| other.version == order.version),
        inventory,
    };
    let outcome = drive(role, begun, &mut steps);
    let AgentSteps { part, pledged, is_whole, inventory, .. } = steps;
    let news = settled(order.attempt, Ok(()), is_whole.then_some(&*inventory));
    match outcome {
        Ok(Aftermath { removed, notes }) => {
            Settled { places: part.places, pledged, removed, notes, ..news }
        }
        Err(failure) => Settled { outcome: Err(failure), ..news },
    }
}

/// Whether nothing of such an attempt is in the store: who fails removes what it has written, and must
/// not write over what others have.
fn check_new(publisher: &Publisher, order: Order) -> Result<(), Failure> {
    let (store, pledge) = (&publisher.store, name::pledge(order.version, order.attempt));
    let image = name::image(order.version, order.attempt, Rank(0));
    let images = image.rsplit_once('/').map_or("", |(dir, _)| dir);
    let there = store.list(images).map_err(|error| failure(error.into()))?;
    match there.is_empty() && store.open(&pledge).is_err() {
        true => Ok(()),
        false => Err(Failure::new(Kind::Invalid, "files of this attempt are in the store already")),
    }
}

/// The news of an attempt.
pub(super) fn settled(
    attempt: AttemptId,
    outcome: Result<(), Failure>,
    inventory: Option<&Inventory>,
) -> Settled {
    Settled {
        attempt,
        outcome,
        places: Vec::new(),
        pledged: None,
        removed: Vec::new(),
        notes: Vec::new(),
        holdings: inventory.map(Holdings::of).unwrap_or_default(),
    }
}

/// One rank's part with its share of the segments' figures, and when the rank had begun.
type Handed = (PledgedPart, Stopwatch);

fn handed(rank: u32, part: HandOver, received: Stopwatch, sealed: &[SharedSegment]) -> Handed {
    // The rank's clock, carried on by ours.
    let started = received.after(part.elapsed_ns);
    let (stats, writes) = (stats(rank, &part, sealed), writes(rank, sealed));
    let HandOver { image, streams, .. } = part;
    (PledgedPart { rank: Rank(rank), image, streams, stats, writes }, started)
}

/// The steps of an agent.
struct AgentSteps<'a> {
    publisher: &'a Publisher,
    order: Order,
    ranks: u32,
    /// Whether it commits for all ranks of the job.
    is_whole: bool,
    part: Part,
    handed: Vec<Handed>,
    entries: Vec<Entry>,
    /// What the ranks are told of the pledge.
    pledged: Option<Pledged>,
    /// Whether a checkpoint of this version was there.
    replaced: bool,
    inventory: &'a mut Inventory,
}

impl Steps for AgentSteps<'_> {
    type Error = Failure;

    fn store_images(&mut self) -> Result<(), Failure> {
        let handed = std::mem::take(&mut self.handed);
        if !self.is_whole {
            return self.store_pledge(handed);
        }
        failpoint::pass("commit.before_image");
        let (moved, known) = (self.part.moved(), known_segments(self.inventory));
        let is_there = |segment: &SegmentRef| {
            known.get(&segment.id) == Some(segment) || is_stored(self.publisher, segment)
        };
        for (part, started) in handed {
            let image = check_image(self.publisher, self.order, &part)?;
            let PledgedPart { streams, stats, writes, .. } = part;
            let mut described = Described { image, streams, stats, writes, started };
            described.place(&moved, is_there).map_err(failure)?;
            let entry = self.publisher.write_image(self.order, described).map_err(failure)?;
            self.entries.push(entry);
        }
        Ok(())
    }

    fn write_manifest(&mut self) -> Verdict<Failure> {
        // What the agent committed for ranks that died the job may not know of.
        let newest = self.inventory.checkpoints.first().map_or(0, |newest| newest.sequence);
        let sequence = self.order.sequence.max(newest.saturating_add(1));
        let order = Order { sequence, ..self.order };
        let entries = std::mem::take(&mut self.entries);
        let written = self.publisher.write_manifest(order, self.ranks, entries, self.inventory);
        written.map_err(failure)
    }

    fn prune(&mut self) -> Aftermath {
        self.publisher.prune(self.replaced, self.inventory)
    }

    fn remove(&mut self, files: Files) -> bool {
        // Where the ranks commit, they write the images.
        let ranks = if self.is_whole { self.ranks } else { 0 };
        match files {
            Files::Pledge => self.publisher.discard_pledge(self.order),
            Files::Data => {
                self.publisher.discard(self.order, (0..ranks).map(Rank), self.part.ids());
                true
            }
        }
    }

    fn talk(&mut self, _: Talk<Failure>) -> Happened<Failure> {
        Happened::Lost(Failure::new(Kind::Bug, "an agent talks to no other; please report it"))
    }
}

impl AgentSteps<'_> {
    fn store_pledge(&mut self, handed: Vec<Handed>) -> Result<(), Failure> {
        let parts: Vec<PledgedPart> = handed.into_iter().map(|(part, _)| part).collect();
        for part in &parts {
            check_image(self.publisher, self.order, part)?;
        }
        let pledge = pledge::record(self.publisher, self.order, self.ranks, &self.part, parts);
        let object = name::pledge(self.order.version, self.order.attempt);
        let stored = self.publisher.store.put(&object, &pledge.encode());
        stored.map_err(|error| failure(error.into()))?;
        self.pledged = Some(pledge::told(pledge));
        Ok(())
    }
}

fn failure(error: CommitError) -> Failure {
    Failure::new(error.kind(), &error)
}

/// What shared segments hold.
fn durable(sealed: &[SharedSegment]) -> Part {
    let places = |shared: &SharedSegment| {
        let segment = shared.sealed.reference.id;
        let place = move |placed: &standfast_write::Placed| StreamPlace {
            stream: placed.stream,
            segment,
            first_slot: placed.first_slot,
        };
        shared.streams.iter().map(place).collect::<Vec<_>>()
    };
    Part {
        segments: sealed.iter().map(|shared| shared.sealed.reference).collect(),
        places: sealed.iter().flat_map(places).collect(),
    }
}

/// The image that a rank describes, if it is one of this checkpoint.
fn check_image(publisher: &Publisher, order: Order, part: &PledgedPart) -> Result<Image, Failure> {
    let rank = part.rank;
    let wrong =
        |why: String| Failure::new(Kind::Invalid, format!("the image of rank {rank}: {why}"));
    let (image, _) = Image::decode(&part.image).map_err(|error| wrong(error.to_string()))?;
    let expected = (publisher.job, order.version, rank, publisher.page_bytes, publisher.hash);
    let found = (image.job, image.version, image.rank, image.page_bytes, image.hash);
    match expected == found {
        true => Ok(image),
        false => Err(wrong("it belongs to another checkpoint".into())),
    }
}

/// Whether a segment that no manifest names is there all the same: after a prune that failed half
/// way, ranks may know more than the inventory.
fn is_stored(publisher: &Publisher, segment: &SegmentRef) -> bool {
    let object = publisher.store.open(&name::segment(segment.id));
    object.is_ok_and(|object| object.bytes() == segment.file_bytes)
}

/// A rank's figures, with what its blocks took. What a shared file takes beyond its blocks counts
/// for the rank that the segment is named after.
fn stats(rank: u32, part: &HandOver, sealed: &[SharedSegment]) -> Stats {
    let mut stats = part.stats;
    (stats.compressed_bytes, stats.segment_bytes) = (0, 0);
    for shared in sealed {
        let own = shared.streams.iter().filter(|placed| placed.rank.0 == rank);
        let own: u64 = own.map(|placed| placed.compressed_bytes).sum();
        stats.compressed_bytes += own;
        stats.segment_bytes += own;
        if shared.sealed.reference.rank.0 == rank {
            stats.segment_bytes +=
                shared.sealed.reference.file_bytes - shared.sealed.compressed_bytes;
        }
    }
    stats
}

/// What shared files were made of and how they were written counts for the rank that they are
/// named after: nobody can tell whose part of a write was whose.
fn writes(rank: u32, sealed: &[SharedSegment]) -> Writes {
    let mut writes = Writes::of(Rank(rank));
    for shared in sealed.iter().filter(|shared| shared.sealed.reference.rank.0 == rank) {
        writes.pieces.join(&shared.sealed.pieces);
        writes.writes.join(&shared.sealed.writes);
    }
    writes
}
