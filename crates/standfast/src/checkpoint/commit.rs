//! The committing phase: a draft becomes durable, in the one documented order.
//!
//! 1. every rank seals its segments
//! 2. the ranks tell each other what they sealed: nobody refers to what is not there
//! 3. every rank writes its image
//! 4. the first rank, told that all images are there, writes the manifest: from here on the
//!    checkpoint exists. Where nodes have stores of their own, the leaders of the others write the
//!    same manifest there
//! 5. the first rank, or every leader, prunes what is beyond `keep`, and the others are told
//!
//! Each step is durable before the next begins (the store's contract), so a crash anywhere leaves
//! the old checkpoints or the old ones and the new one, and files that the next opening removes.
//! A rank that fails makes the attempt fail on all of them, and each takes its files away again. A
//! failure of step 4 or 5 leaves in doubt what is there: then the store is asked, and where it
//! does not answer, the doubt is kept.
//!
//! Where each node has an agent, it does step 1 for its ranks, and pledges; what its segments are and
//! where each rank's pages lie in them is told in step 2 ([`super::pledged`]).
//!
//! Step 1 is a thread's work ([`super::committer`]). The others need the ranks to talk: where any thread may do that it
//! is the same thread's work, otherwise it is done inside the program's next collective call.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Instant;

use standfast_agent::StreamPlace;
use standfast_checkpoint::{Part, Published, Publisher, Unpublished, failpoint};
use standfast_comm::{Collective, Fault, Step as At};
use standfast_format::{
    Level, Reference, RegionImage, SegmentId, SegmentRef, Stats, Tally, Version,
};
use standfast_restart::Inventory;

use super::committer::{Step, Work};
use super::draft::{Draft, Order};
use super::pledged;
use super::sink::Pending;
use super::told::Told;
use crate::error::{Error, Phase, Result, Stop};
use crate::progress::{Board, Progress};
use crate::report::Report;
use crate::ring::{self, Protection};
use crate::stores::Stores;

/// What became of a checkpoint.
pub(crate) struct Settled {
    /// The segments the attempt had begun or referred to.
    pub(crate) begun: Vec<SegmentId>,
    pub(crate) outcome: Result<Committed>,
}

/// A checkpoint that exists.
pub(crate) struct Committed {
    /// Segments of all ranks that it needs.
    pub(crate) segments: Vec<SegmentRef>,
    pub(crate) removed: Vec<SegmentId>,
    /// Where the agent has put the streams of all ranks.
    pub(crate) places: Vec<StreamPlace>,
    pub(crate) report: Report,
}

/// What committing needs to know of the job.
#[derive(Clone)]
pub(crate) struct CommitSettings {
    pub(crate) publisher: Publisher,
    pub(crate) board: Arc<Board>,
    pub(crate) stores: Stores,
    /// Where the nodes of the job are protected.
    pub(crate) ring: ring::Protection,
    pub(crate) multiplier: ring::Multiplier,
}

/// A draft whose segments are durable, or could not be made so.
pub(super) struct Sealed {
    pub(super) order: Order,
    pub(super) sequence: u64,
    pub(super) started: Instant,
    /// Segments of this rank.
    pub(super) own: Vec<SegmentId>,
    /// Segments of other ranks' same attempt.
    pub(super) foreign: Vec<SegmentId>,
    pub(super) regions: Vec<RegionImage>,
    pub(super) table: Vec<(SegmentId, Option<SegmentRef>)>,
    pub(super) references: Option<Vec<Reference>>,
    pub(super) stats: Stats,
    pub(super) segments: Result<Vec<SegmentRef>>,
    /// What the segments were made of and how they were written.
    pub(super) pieces: Tally,
    pub(super) writes: Tally,
    /// What this rank has to tell.
    pub(super) notes: Vec<String>,
    /// Where streams are that this rank tells of, of a draft that the node's agent was to pledge.
    pub(super) pledged: Option<Vec<StreamPlace>>,
}

/// Step 1, of a draft that this process writes.
fn seal(unsealed: &mut Sealed, pending: standfast_write::Pending) {
    failpoint::pass("commit.before_segments");
    let (mut pieces, mut writes) = (Tally::default(), Tally::default());
    let sealing = AssertUnwindSafe(|| pending.seal());
    let sealed = catch_unwind(sealing).map_err(|_| Error::Broken { what: "sealing" });
    let stats = &mut unsealed.stats;
    unsealed.segments = sealed.and_then(|sealed| {
        let sealed = sealed?;
        stats.compressed_bytes = sealed.iter().map(|segment| segment.compressed_bytes).sum();
        stats.segment_bytes = sealed.iter().map(|segment| segment.reference.file_bytes).sum();
        sealed.iter().for_each(|segment| {
            pieces.join(&segment.pieces);
            writes.join(&segment.writes);
        });
        Ok(sealed.iter().map(|segment| segment.reference).collect())
    });
    unsealed.pieces = pieces;
    unsealed.writes = writes;
}

impl CommitSettings {
    /// What is left of a step. Collective unless it is settled.
    pub(super) fn finish(
        &self,
        team: &Collective,
        step: Step,
        inventory: &mut Inventory,
    ) -> Settled {
        match step {
            Step::Settled(settled) => *settled,
            Step::Sealed(sealed) => self.conclude(team, *sealed, inventory),
            Step::Failed(version, error) => self.fail(team, version, error),
        }
    }

    /// What the thread does with its work.
    pub(super) fn step(
        &self,
        work: Work,
        sequence: u64,
        team: Option<&Collective>,
        inventory: &mut Inventory,
    ) -> Step {
        let draft = match work.draft(team) {
            Ok(draft) => draft,
            Err((version, error, true)) => {
                let settled = self.settled(version, Vec::new(), Level::Local, Err(error));
                return Step::Settled(Box::new(settled));
            }
            Err((version, error, false)) => return Step::Failed(version, error),
        };
        let Draft { order, started, pending, foreign, regions, table, references, stats, notes } =
            draft;
        let settled = match pending {
            Pending::Agent(ticket) if !self.stores.are_one() => {
                let sealed = pledged::sealed(ticket, order, started, foreign, stats, notes);
                return Step::Sealed(Box::new(sealed));
            }
            Pending::Agent(ticket) => {
                self.conclude_handed(order, ticket, foreign, notes, inventory)
            }
            Pending::Own(pending) => {
                let (own, segments) = (pending.ids().collect(), Ok(Vec::new()));
                let mut sealed = Sealed {
                    order,
                    sequence,
                    started,
                    own,
                    foreign,
                    regions,
                    table,
                    references,
                    stats,
                    segments,
                    pieces: Tally::default(),
                    writes: Tally::default(),
                    notes,
                    pledged: None,
                };
                seal(&mut sealed, pending);
                return Step::Sealed(Box::new(sealed));
            }
        };
        Step::Settled(Box::new(settled))
    }

    /// Steps 2 to 5, and the news for whoever waits.
    fn conclude(&self, team: &Collective, sealed: Sealed, inventory: &mut Inventory) -> Settled {
        let version = sealed.order.version;
        let begun = sealed.own.iter().chain(&sealed.foreign).copied().collect();
        let committing = AssertUnwindSafe(|| self.commit(team, sealed, inventory));
        // Whoever waits for this checkpoint must not wait for ever.
        let mut outcome =
            catch_unwind(committing).unwrap_or(Err(Error::Broken { what: "committing" }));
        let level = match &mut outcome {
            Ok(committed) => {
                let level = self.protect(team, version, inventory, &mut committed.report.notes);
                committed.report.level = level;
                level
            }
            Err(_) => Level::Local,
        };
        self.settled(version, begun, level, outcome)
    }

    /// Brings a committed checkpoint to level ring, where that is wanted. One that does not get
    /// there is a checkpoint all the same.
    fn protect(
        &self,
        team: &Collective,
        version: Version,
        inventory: &Inventory,
        notes: &mut Vec<String>,
    ) -> Level {
        let topology = match &self.ring {
            Protection::On(topology) => topology,
            Protection::Off => return Level::Local,
            Protection::Unable(why) => {
                notes.push(format!("it does not survive the loss of a node: {why}"));
                return Level::Local;
            }
        };
        let Ok(manifest) = inventory.checkpoint(version) else { return Level::Local };
        self.board.set(version, Progress::Reached(Level::Local));
        let encoding = AssertUnwindSafe(|| {
            let (store, mut multiplier) = (&*self.publisher.store, self.multiplier.clone());
            ring::protect(team, store, &self.stores, topology, manifest, &mut multiplier)
        });
        let encoded = catch_unwind(encoding).map_err(|_| Error::Broken { what: "encoding" });
        let encoded = encoded.and_then(|encoded| Ok(encoded?));
        notes.extend(self.multiplier.notes());
        match encoded {
            Ok(survives) => {
                notes.push(survives);
                Level::Ring
            }
            Err(error) => {
                notes.push(format!("it does not survive the loss of a node: {error}"));
                self.board.lose(&error);
                Level::Local
            }
        }
    }

    /// The news that a snapshot could not be taken in. The others have come to step 2.
    fn fail(&self, team: &Collective, version: Version, error: Error) -> Settled {
        let own = Err::<(Vec<SegmentRef>, Vec<StreamPlace>), _>(error.clone());
        let told = team.gather(At("commit: segments"), own);
        let error = told.err().map_or(error, Error::from);
        self.settled(version, Vec::new(), Level::Local, Err(error))
    }

    fn commit(
        &self,
        team: &Collective,
        mut sealed: Sealed,
        inventory: &mut Inventory,
    ) -> Result<Committed> {
        let order = sealed.order;
        let version = order.version;
        let own = std::mem::take(&mut sealed.own);
        let own_notes = std::mem::take(&mut sealed.notes);
        let pledged = sealed.pledged.take();
        let is_pledged = pledged.is_some();
        let discard = || {
            if is_pledged {
                // First: it must not name what is gone.
                pledged::forget(&*self.publisher.store, order);
            }
            self.publisher.discard(version, order.attempt, team.rank(), &own);
        };
        let segments = std::mem::replace(&mut sealed.segments, Ok(Vec::new()));
        let told = segments.map(|segments| (segments, pledged.unwrap_or_default()));
        let told = team.gather(At("commit: segments"), told).inspect_err(|stop| {
            // Ranks that cannot be asked may be dead; what all nodes have pledged counts then.
            if !is_pledged || matches!(stop, Stop::Failed(_)) {
                discard();
            }
        })?;
        let (segments, places): (Vec<_>, Vec<_>) = told.into_inner().into_iter().unzip();
        let (segments, places) = (segments.concat(), places.concat());
        let placed = pledged::place(&mut sealed, &segments, &places);

        failpoint::pass("commit.before_image");
        let place = (sealed.sequence, team.size() as u32);
        let replaced = inventory.checkpoints.iter().any(|other| other.version == version);
        // Step 3.
        let Sealed { regions, table, references, stats, started, pieces, writes, .. } = sealed;
        let rank = team.rank();
        let draft = standfast_checkpoint::Draft {
            rank,
            regions,
            table,
            references,
            stats,
            started,
            pieces,
            writes,
        };
        let part = placed.and_then(|()| Ok(self.publisher.write_image(order, draft, &segments)?));
        let own_error = part.as_ref().err().cloned();
        let parts = team.gather_first(At("commit: images"), part)?;
        let mut first_error = None;
        // From here on a failure to talk leaves in doubt what the first rank did.
        let told = team.tell(At("commit: manifest"), || {
            let parts = parts.unwrap_or_default();
            let (told, error) = self.write_manifest(order, place, parts, inventory);
            first_error = error;
            Ok::<_, Error>(told)
        });
        let told = told?.into_inner();
        if !team.is_first() {
            told.take_in(inventory);
        }
        let Told { outcome, files_stay, mut removed, mut notes, .. } = told;
        if let Err(failure) = outcome {
            if !files_stay {
                discard();
            }
            let typed = own_error.or(first_error);
            return Err(typed.unwrap_or_else(|| Error::of_other(failure)));
        }
        if !self.stores.are_one() {
            (removed, notes) = self.finish_others(team, version, replaced, inventory)?;
        }
        if is_pledged {
            // What stays is void all the same.
            let _ = self.stores.lead(|| {
                pledged::forget(&*self.publisher.store, order);
                Ok(())
            });
        }
        let manifest = inventory.checkpoint(version)?;
        let mut report = Report::of(manifest, self.publisher.page_bytes);
        report.notes = own_notes.into_iter().chain(notes).collect();
        let segments = manifest.segments.clone();
        Ok(Committed { segments, removed, places, report })
    }

    /// Steps 4 and 5 where nodes have stores of their own.
    fn finish_others(
        &self,
        team: &Collective,
        version: Version,
        replaced: bool,
        inventory: &mut Inventory,
    ) -> Phase<(Vec<SegmentId>, Vec<String>)> {
        let manifest = inventory.checkpoint(version).map_err(Error::from);
        let manifest = team.agree(At("commit: others"), manifest)?;
        let notes = self.stores.spread(team, &*self.publisher.store, manifest)?;
        let mut keep = self.publisher.keep();
        if let Protection::On(_) = self.ring {
            // Newer ones may not get there: then this is what survives the loss of a node.
            keep.versions.extend(ring::newest(&*self.publisher.store, inventory));
        }
        let beyond = keep.newest != 0 && inventory.checkpoints.len() > keep.newest;
        // A store that does not know the new one keeps what it has.
        if !notes.is_empty() || !(beyond || replaced) {
            return Ok((Vec::new(), notes));
        }
        self.stores.prune(team, &*self.publisher.store, keep, inventory)
    }

    /// Steps 4 and 5, on the first rank: what to tell the others, and what it failed with.
    fn write_manifest(
        &self,
        order: Order,
        place: (u64, u32),
        parts: Vec<Result<Part>>,
        inventory: &mut Inventory,
    ) -> (Told, Option<Error>) {
        let parts = match parts.into_iter().collect::<Result<Vec<Part>>>() {
            Ok(parts) => parts,
            Err(error) => return (Told::failed(&error, false, inventory), Some(error)),
        };
        // Where nodes have stores of their own, all of them are pruned together.
        let published = match self.stores.are_one() {
            true => self.publisher.publish(order, place, parts, inventory),
            false => {
                let written = self.publisher.write_manifest(order, place, parts, inventory);
                written.map(|_| Published::default())
            }
        };
        match published {
            Ok(Published { removed, notes }) => (Told::committed(removed, notes, inventory), None),
            Err(Unpublished { error, files_stay }) => {
                let error = Error::from(error);
                (Told::failed(&error, files_stay, inventory), Some(error))
            }
        }
    }

    /// Tells whoever waits.
    pub(super) fn settled(
        &self,
        version: Version,
        begun: Vec<SegmentId>,
        level: Level,
        outcome: Result<Committed>,
    ) -> Settled {
        let progress = match &outcome {
            Ok(_) => Progress::Done(level),
            Err(error) => Progress::Failed(error.clone()),
        };
        if let Err(error) = &outcome {
            self.board.lose(error);
        }
        // The board first: whoever takes the outcome in must find it told there.
        self.board.set(version, progress);
        Settled { begun, outcome }
    }
}
