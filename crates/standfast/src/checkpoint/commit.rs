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
//! What comes next, and what is taken back where a step fails, [`publishing`] decides; here are the
//! steps of a rank.
//!
//! Where each node has an agent, it does step 1 for its ranks ([`super::agent_outcome`]).
//!
//! Step 1 is a thread's work ([`super::committer`]). The others need the ranks to talk: where any thread may do that it
//! is the same thread's work, otherwise it is done inside the program's next collective call.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use standfast_checkpoint::publishing::{
    self, Files, Happened, Published, Role, Steps, Talk, Verdict,
};
use standfast_checkpoint::{
    Described, Inventory, Order, Part, Publisher, StreamPlace, failpoint, unplaced,
};
use standfast_comm::{Collective, Step as At};
use standfast_format::{
    Image, Level, Manifest, Rank, Reference, RegionImage, SegmentId, SegmentRef, Version, Writes,
};

use super::committer::{Step, Work};
use super::draft::Draft;
use super::ranks::Ranks;
use super::sink::Pending;
use crate::error::{Error, Phase, Result, Stop};
use crate::progress::{Board, Progress};
use crate::report::Report;
use crate::ring::{self, Protection};
use crate::stores::Stores;

/// Where ranks tell each other what they have sealed, or that they have not.
const SEGMENTS: At = At("commit: segments");

/// What became of a checkpoint.
pub(crate) struct Outcome {
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
    pub(crate) rank: Rank,
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
    /// Segments that are taken back if the attempt fails.
    pub(super) own: Vec<SegmentId>,
    /// Segments of other ranks' same attempt, and streams.
    pub(super) foreign: Vec<SegmentId>,
    /// The rank's part, described and durable.
    pub(super) part: Result<(Described, Part)>,
    /// Whether the agents of the nodes pledge this attempt.
    pub(super) pledged: bool,
    /// What this rank has to tell.
    pub(super) notes: Vec<String>,
}

/// Step 1, of a draft that this process writes.
fn seal(pending: standfast_write::Pending, mut described: Described) -> Result<(Described, Part)> {
    failpoint::pass("commit.before_segments");
    let sealed = catch_unwind(AssertUnwindSafe(|| pending.seal()));
    let sealed = sealed.map_err(|_| Error::Broken { what: "sealing" })??;
    let stats = &mut described.stats;
    stats.compressed_bytes = sealed.iter().map(|segment| segment.compressed_bytes).sum();
    stats.segment_bytes = sealed.iter().map(|segment| segment.reference.file_bytes).sum();
    for segment in &sealed {
        described.writes.pieces.join(&segment.pieces);
        described.writes.writes.join(&segment.writes);
    }
    let segments = sealed.iter().map(|segment| segment.reference).collect();
    Ok((described, Part { segments, places: Vec::new() }))
}

impl CommitSettings {
    /// What is left of a step. Collective unless it is settled.
    pub(super) fn finish(
        &self,
        team: &Collective,
        step: Step,
        inventory: &mut Inventory,
    ) -> Outcome {
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
        let sealed = match pending {
            Pending::Agent(ticket) if self.stores.are_one() => {
                let settled = self.conclude_handed(order, ticket, foreign, notes, inventory);
                return Step::Settled(Box::new(settled));
            }
            Pending::Agent(ticket) => {
                Sealed::pledged(ticket, order, started, foreign, stats, notes)
            }
            Pending::Own(pending) => {
                let streams = table.iter().filter(|(_, known)| known.is_none()).map(|(id, _)| *id);
                let (streams, writes) = (streams.collect(), Writes::of(self.rank));
                let image = self.image(order.version, table, regions, references);
                let own = pending.ids().collect();
                let part = seal(pending, Described { image, streams, stats, writes, started });
                Sealed { order, own, foreign, part, pledged: false, notes }
            }
        };
        Step::Sealed(Box::new(sealed))
    }

    /// This rank's image, in which new segments stand by id.
    fn image(
        &self,
        version: Version,
        table: Vec<(SegmentId, Option<SegmentRef>)>,
        regions: Vec<RegionImage>,
        references: Option<Vec<Reference>>,
    ) -> Image {
        let segment = |(id, known): (_, Option<SegmentRef>)| known.unwrap_or_else(|| unplaced(id));
        Image {
            job: self.publisher.job,
            version,
            rank: self.rank,
            page_bytes: self.publisher.page_bytes,
            hash: self.publisher.hash,
            segments: table.into_iter().map(segment).collect(),
            regions,
            references,
        }
    }

    /// Steps 2 to 5, and the news for whoever waits.
    fn conclude(&self, team: &Collective, sealed: Sealed, inventory: &mut Inventory) -> Outcome {
        let version = sealed.order.version;
        let begun = sealed.own.iter().chain(&sealed.foreign).copied().collect();
        let committing = AssertUnwindSafe(|| self.commit(team, sealed, inventory));
        // Whoever waits for this checkpoint must not wait for ever.
        let mut outcome =
            catch_unwind(committing).unwrap_or(Err(Error::Broken { what: "committing" }));
        let mut notes = Vec::new();
        let level = self.protect(team, (version, outcome.is_ok()), inventory, &mut notes);
        if let Ok(committed) = &mut outcome {
            committed.report.notes.append(&mut notes);
            committed.report.level = level;
        }
        self.settled(version, begun, level, outcome)
    }

    /// Brings a committed checkpoint to level ring, where that is wanted. One that does not get
    /// there is a checkpoint all the same.
    fn protect(
        &self,
        team: &Collective,
        (version, committed): (Version, bool),
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
        // All ranks encode, or none does.
        let own = inventory.checkpoint(version).ok().filter(|_| committed);
        let all = team.all_hold(At("ring"), [own.is_some()]);
        let (Ok([true]), Some(manifest)) = (all.map(|all| *all), own) else {
            notes.push("it does not survive the loss of a node: a rank could not encode it".into());
            return Level::Local;
        };
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
    fn fail(&self, team: &Collective, version: Version, error: Error) -> Outcome {
        let told = team.gather(SEGMENTS, Err::<Part, _>(error.clone()));
        let error = told.err().map_or(error, Error::from);
        self.settled(version, Vec::new(), Level::Local, Err(error))
    }

    fn commit(
        &self,
        team: &Collective,
        sealed: Sealed,
        inventory: &mut Inventory,
    ) -> Result<Committed> {
        let Sealed { order, own, part, pledged, notes, .. } = sealed;
        let role = Role::Rank {
            first: team.is_first(),
            leads: self.stores.leader() == self.rank.0 as usize,
            one_store: self.stores.are_one(),
            pledged,
        };
        let same = |other: &Manifest| other.version == order.version;
        let replaced = inventory.checkpoints.iter().any(same);
        let (begun, described, part) = match part {
            Ok((described, part)) => (Ok(()), Some(described), part),
            Err(error) => (Err(error), None, Part::default()),
        };
        let (store, stores, entries) = (&*self.publisher.store, &self.stores, Vec::new());
        let ranks = Ranks { team, store, stores, order, inventory, entries };
        let mut steps = RankSteps { settings: self, own, described, part, replaced, ranks };
        let Published { removed, notes: heard } = publishing::drive(role, begun, &mut steps)?;
        let places = steps.part.places;
        let notes = notes.into_iter().chain(heard).collect();
        self.committed(order, removed, places, notes, inventory)
    }

    /// What there is to know of a checkpoint that exists.
    pub(super) fn committed(
        &self,
        order: Order,
        removed: Vec<SegmentId>,
        places: Vec<StreamPlace>,
        notes: Vec<String>,
        inventory: &Inventory,
    ) -> Result<Committed> {
        let manifest = inventory.checkpoint(order.version)?;
        let mut report = Report::of(manifest, self.publisher.page_bytes);
        report.notes = notes;
        Ok(Committed { segments: manifest.segments.clone(), removed, places, report })
    }

    /// Tells whoever waits.
    pub(super) fn settled(
        &self,
        version: Version,
        begun: Vec<SegmentId>,
        level: Level,
        outcome: Result<Committed>,
    ) -> Outcome {
        let progress = match &outcome {
            Ok(_) => Progress::Done(level),
            Err(error) => Progress::Failed(error.clone()),
        };
        if let Err(error) = &outcome {
            self.board.lose(error);
        }
        // The board first: whoever takes the outcome in must find it told there.
        self.board.set(version, progress);
        Outcome { begun, outcome }
    }
}

/// The steps of one rank.
struct RankSteps<'a> {
    settings: &'a CommitSettings,
    own: Vec<SegmentId>,
    /// Until it is written.
    described: Option<Described>,
    /// Of this rank; once told, of all ranks.
    part: Part,
    /// Whether a checkpoint of this version was there.
    replaced: bool,
    ranks: Ranks<'a>,
}

impl Steps for RankSteps<'_> {
    type Error = Error;

    fn store_images(&mut self) -> Result<()> {
        failpoint::pass("commit.before_image");
        let broken = Error::Broken { what: "committing" };
        let mut described = self.described.take().ok_or(broken)?;
        // What this rank has described is there.
        described.place(&self.part.moved(), |_| true)?;
        let entry = self.settings.publisher.write_image(self.ranks.order, described)?;
        self.ranks.entries = vec![entry];
        Ok(())
    }

    fn write_manifest(&mut self) -> Verdict<Error> {
        self.ranks.write_manifest(&self.settings.publisher, self.ranks.team.size() as u32)
    }

    fn prune(&mut self) -> Published {
        self.settings.publisher.prune(self.replaced, self.ranks.inventory)
    }

    fn remove(&mut self, files: Files) {
        let (publisher, order) = (&self.settings.publisher, self.ranks.order);
        match files {
            Files::Pledge => publisher.discard_pledge(order),
            Files::Data => {
                let (rank, own) = (std::iter::once(self.settings.rank), self.own.iter().copied());
                publisher.discard(order, rank, own);
            }
        }
    }

    fn talk(&mut self, talk: Talk<Error>) -> Happened<Error> {
        match talk {
            Talk::Parts(own) => {
                let own = own.map(|()| std::mem::take(&mut self.part));
                match self.ranks.team.gather(SEGMENTS, own) {
                    Ok(all) => {
                        self.part = Part::join(all.into_inner());
                        Happened::Told(Ok(()))
                    }
                    Err(stop @ Stop::Lost(_)) => Happened::Lost(stop.into()),
                    Err(stop) => Happened::Told(Err(stop.into())),
                }
            }
            Talk::Images(own) => self.ranks.tell_images(own),
            Talk::Verdict(own) => self.ranks.tell_verdict(own),
            Talk::Spread => self.ranks.spread(),
            Talk::Prune => match self.prune_all() {
                Ok(published) => Happened::Pruned(published),
                Err(stop) => Happened::Lost(stop.into()),
            },
        }
    }
}

impl RankSteps<'_> {
    /// Step 5 where nodes have stores of their own.
    fn prune_all(&mut self) -> Phase<Published> {
        let CommitSettings { publisher, ring, .. } = self.settings;
        let Ranks { team, store, stores, inventory, .. } = &mut self.ranks;
        let mut keep = publisher.keep();
        let beyond = keep.newest != 0 && inventory.checkpoints.len() > keep.newest;
        if !(beyond || self.replaced) {
            return Ok(Published::default());
        }
        if let Protection::On(_) = ring {
            // Newer ones may not get there: then this is what survives the loss of a node.
            keep.versions.extend(ring::newest(*store, inventory));
        }
        let (removed, notes) = stores.prune(team, *store, keep, inventory)?;
        Ok(Published { removed, notes })
    }
}
