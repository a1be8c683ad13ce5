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
//! Step 1 is a thread's work. The others need the ranks to talk: where any thread may do that it
//! is the same thread's work, otherwise it is done inside the program's next collective call.

use std::collections::HashSet;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Instant;

use crossbeam_channel::{Receiver, Sender, bounded};
use standfast_format::{
    AttemptId, HashKind, Image, ImageRef, JobId, Kind, Level, Manifest, Rank, RegionImage,
    SegmentId, SegmentRef, Stats, Tally, Version, Writes, name,
};
use standfast_protect::Topology;
use standfast_restart::{Damaged, Inventory};
use standfast_store::{Lock, Store, keep_signals_away};

use super::draft::{Draft, Order, elapsed_ns};
use super::told::Told;
use crate::busy;
use crate::error::{Error, Result};
use crate::failpoint;
use crate::progress::{Board, Progress};
use crate::prune::{self, Keep};
use crate::report::Report;
use crate::ring;
use crate::stores::Stores;
use crate::team::Team;

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
    pub(crate) report: Report,
}

/// What committing needs to know of the job.
#[derive(Clone)]
pub(crate) struct CommitSettings {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) board: Arc<Board>,
    pub(crate) job: JobId,
    pub(crate) hash: HashKind,
    pub(crate) page_bytes: u32,
    pub(crate) keep: u32,
    pub(crate) stores: Stores,
    /// Where the nodes of the job are protected.
    pub(crate) ring: Option<Arc<Topology>>,
}

/// A draft whose segments are durable, or could not be made so.
struct Sealed {
    version: Version,
    attempt: AttemptId,
    sequence: u64,
    taken_ns: u64,
    started: Instant,
    /// Segments of this rank.
    own: Vec<SegmentId>,
    /// Segments of other ranks' same attempt.
    foreign: Vec<SegmentId>,
    regions: Vec<RegionImage>,
    table: Vec<(SegmentId, Option<SegmentRef>)>,
    stats: Stats,
    segments: Result<Vec<SegmentRef>>,
    /// What the segments were made of and how they were written.
    pieces: Tally,
    writes: Tally,
    /// What this rank has to tell.
    notes: Vec<String>,
}

/// What the thread hands back.
enum Step {
    /// The other ranks must be asked, which the thread may not.
    Sealed(Box<Sealed>),
    /// The other ranks must be told that there is no draft of this version.
    Failed(Version, Error),
    Settled(Box<Settled>),
}

/// What the thread is handed.
pub(crate) enum Work {
    Draft(Box<Draft>),
    /// A snapshot of this version, from which the draft is still to be made.
    Snapshot(Version, TakeIn),
}

/// Makes a draft of a snapshot, together with the other ranks where a thread may talk to them.
pub(crate) type TakeIn = Box<dyn FnOnce(Option<&Team>) -> Result<Draft> + Send>;

impl Work {
    fn draft(self, team: Option<&Team>) -> std::result::Result<Draft, (Version, Error)> {
        match self {
            Work::Draft(draft) => Ok(*draft),
            Work::Snapshot(version, take_in) => take_in(team).map_err(|error| (version, error)),
        }
    }
}

/// The committer: its thread, and what it needs to finish in a caller's.
pub(crate) struct Committer {
    settings: CommitSettings,
    drafts: Option<Sender<(Work, u64, Inventory)>>,
    steps: Receiver<(Step, Inventory)>,
    thread: Option<JoinHandle<()>>,
}

impl Committer {
    /// `team`: the ranks, if a thread beside the program may talk to them.
    pub(crate) fn start(settings: CommitSettings, team: Option<Team>) -> Self {
        let (drafts, queue) = bounded::<(Work, u64, Inventory)>(1);
        let (done, steps) = bounded(1);
        let own = settings.clone();
        let run = move || {
            keep_signals_away();
            for (work, sequence, mut inventory) in queue {
                let _busy = busy::hold(&*own.store);
                let sealed = work.draft(team.as_ref()).map(|draft| seal(draft, sequence));
                let step = match sealed {
                    Ok(sealed) => Step::Sealed(Box::new(sealed)),
                    Err((version, error)) => Step::Failed(version, error),
                };
                let step = match &team {
                    Some(team) => Step::Settled(Box::new(own.finish(team, step, &mut inventory))),
                    None => step,
                };
                if done.send((step, inventory)).is_err() {
                    return;
                }
            }
        };
        let thread = std::thread::Builder::new()
            .name("sf-commit".into())
            .spawn(run)
            .expect("a thread can be started");
        Self { settings, drafts: Some(drafts), steps, thread: Some(thread) }
    }

    /// Hands work over. The inventory travels along and comes back with the outcome.
    pub(crate) fn submit(&self, work: Work, sequence: u64, inventory: Inventory) {
        let drafts = self.drafts.as_ref().expect("open until dropped");
        drafts.send((work, sequence, inventory)).expect("the committer lives until dropped");
    }

    /// Whether the thread has done what it can for the draft that was handed over.
    pub(crate) fn is_ready(&self) -> bool {
        !self.steps.is_empty()
    }

    /// Waits for the outcome of the draft that was handed over. Collective where the thread may
    /// not talk to other ranks.
    pub(crate) fn settle(&self, team: &Team) -> (Settled, Inventory) {
        let (step, mut inventory) = self.steps.recv().expect("the committer answers every draft");
        (self.settings.finish(team, step, &mut inventory), inventory)
    }
}

impl Drop for Committer {
    fn drop(&mut self) {
        self.drafts = None;
        if let Some(thread) = self.thread.take() {
            // A committer that panicked has reported it on stderr.
            let _ = thread.join();
        }
    }
}

/// Step 1.
fn seal(draft: Draft, sequence: u64) -> Sealed {
    let Draft { version, attempt, taken_ns, started, regions, table, mut stats, notes, .. } = draft;
    let (pending, foreign) = (draft.pending, draft.foreign);
    let own: Vec<SegmentId> = pending.ids().collect();
    failpoint::pass("commit.before_segments");
    let (mut pieces, mut writes) = (Tally::default(), Tally::default());
    let sealing = AssertUnwindSafe(|| pending.seal());
    let sealed = catch_unwind(sealing).map_err(|_| Error::Broken { what: "sealing" });
    let segments = sealed.and_then(|sealed| {
        let sealed = sealed?;
        stats.compressed_bytes = sealed.iter().map(|segment| segment.compressed_bytes).sum();
        stats.segment_bytes = sealed.iter().map(|segment| segment.reference.file_bytes).sum();
        sealed.iter().for_each(|segment| {
            pieces.join(&segment.pieces);
            writes.join(&segment.writes);
        });
        Ok(sealed.iter().map(|segment| segment.reference).collect())
    });
    Sealed {
        version,
        attempt,
        sequence,
        taken_ns,
        started,
        own,
        foreign,
        regions,
        table,
        stats,
        segments,
        pieces,
        writes,
        notes,
    }
}

/// One rank's part of a manifest.
#[derive(serde::Serialize, serde::Deserialize)]
struct Part {
    image: ImageRef,
    segments: Vec<SegmentRef>,
    stats: Stats,
    writes: Writes,
}

impl CommitSettings {
    /// What is left of a step. Collective unless it is settled.
    fn finish(&self, team: &Team, step: Step, inventory: &mut Inventory) -> Settled {
        match step {
            Step::Settled(settled) => *settled,
            Step::Sealed(sealed) => self.conclude(team, *sealed, inventory),
            Step::Failed(version, error) => self.fail(team, version, error),
        }
    }

    /// Steps 2 to 5, and the news for whoever waits. Collective.
    fn conclude(&self, team: &Team, sealed: Sealed, inventory: &mut Inventory) -> Settled {
        let version = sealed.version;
        let begun = sealed.own.iter().chain(&sealed.foreign).copied().collect();
        let committing = AssertUnwindSafe(|| self.commit(team, sealed, inventory));
        // Whoever waits for this checkpoint must not wait for ever.
        let mut outcome =
            catch_unwind(committing).unwrap_or(Err(Error::Broken { what: "committing" }));
        let level = match &mut outcome {
            Ok(committed) => self.protect(team, version, inventory, &mut committed.report.notes),
            Err(_) => Level::Local,
        };
        let progress = match &outcome {
            Ok(_) => Progress::Done(level),
            Err(error) => Progress::Failed(error.clone()),
        };
        // The board first: whoever takes the outcome in must find it told there.
        self.board.set(version, progress);
        Settled { begun, outcome }
    }

    /// Brings a committed checkpoint to level ring, where that is wanted. One that does not get
    /// there is a checkpoint all the same.
    fn protect(
        &self,
        team: &Team,
        version: Version,
        inventory: &Inventory,
        notes: &mut Vec<String>,
    ) -> Level {
        let (Some(topology), Ok(manifest)) = (&self.ring, inventory.checkpoint(version)) else {
            return Level::Local;
        };
        self.board.set(version, Progress::Reached(Level::Local));
        let encoding = AssertUnwindSafe(|| {
            ring::protect(team, &*self.store, &self.stores, topology, manifest)
        });
        let encoded = catch_unwind(encoding).unwrap_or(Err(Error::Broken { what: "encoding" }));
        match encoded {
            Ok(()) => Level::Ring,
            Err(error) => {
                notes.push(format!("it does not survive the loss of a node: {error}"));
                Level::Local
            }
        }
    }

    /// The news that a snapshot could not be taken in. Collective: the others have come to step 2.
    fn fail(&self, team: &Team, version: Version, error: Error) -> Settled {
        let told = team.gather_all::<Vec<SegmentRef>>(Err(error.clone()));
        let error = told.err().unwrap_or(error);
        self.board.set(version, Progress::Failed(error.clone()));
        Settled { begun: Vec::new(), outcome: Err(error) }
    }

    fn commit(
        &self,
        team: &Team,
        mut sealed: Sealed,
        inventory: &mut Inventory,
    ) -> Result<Committed> {
        let (version, attempt) = (sealed.version, sealed.attempt);
        let own = std::mem::take(&mut sealed.own);
        let own_notes = std::mem::take(&mut sealed.notes);
        let discard = || self.discard(version, attempt, team.rank(), &own);
        let segments = std::mem::replace(&mut sealed.segments, Ok(Vec::new()));
        let segments = team.gather_all(segments).inspect_err(|_| discard())?;

        failpoint::pass("commit.before_image");
        let order = Order { version, attempt, taken_ns: sealed.taken_ns };
        let place = (sealed.sequence, team.size() as u32);
        let part = self.write_image(team.rank(), sealed, &segments.concat());
        let replaced = inventory.checkpoints.iter().any(|other| other.version == version);
        let own_error = part.as_ref().err().cloned();
        let parts = team.gather_first(part)?;
        let written = parts.map(|parts| self.write_manifest(order, place, parts, inventory));
        let (told, first_error) = written.unzip();
        // From here on a failure to talk leaves in doubt what the first rank did.
        let told = team.tell(told.map(Ok))?;
        if !team.is_first() {
            told.take_in(inventory);
        }
        let Told { outcome, files_stay, mut removed, mut notes, .. } = told;
        if let Err(failure) = outcome {
            if !files_stay {
                discard();
            }
            let typed = own_error.or(first_error.flatten());
            return Err(typed.unwrap_or_else(|| failure.into_error()));
        }
        if !self.stores.are_one() {
            (removed, notes) = self.finish_others(team, version, replaced, inventory)?;
        }
        let manifest = inventory.checkpoint(version)?;
        let mut report = Report::of(manifest, self.page_bytes);
        report.notes = own_notes.into_iter().chain(notes).collect();
        Ok(Committed { segments: manifest.segments.clone(), removed, report })
    }

    /// Steps 4 and 5 where nodes have stores of their own.
    fn finish_others(
        &self,
        team: &Team,
        version: Version,
        replaced: bool,
        inventory: &mut Inventory,
    ) -> Result<(Vec<SegmentId>, Vec<String>)> {
        let manifest = inventory.checkpoint(version)?;
        let notes = self.stores.spread(team, &*self.store, manifest)?;
        let keep = Keep { newest: self.keep as usize, ..Keep::default() };
        let beyond = keep.newest != 0 && inventory.checkpoints.len() > keep.newest;
        // A store that does not know the new one keeps what it has.
        if !notes.is_empty() || !(beyond || replaced) {
            return Ok((Vec::new(), notes));
        }
        self.stores.prune(team, &*self.store, keep, inventory)
    }

    /// Step 3.
    fn write_image(&self, rank: Rank, sealed: Sealed, new: &[SegmentRef]) -> Result<Part> {
        let Sealed { version, attempt, started, regions, table, mut stats, .. } = sealed;
        let mut writes = Writes { rank, pieces: sealed.pieces, writes: sealed.writes };
        let segments = table
            .into_iter()
            .map(|(id, known)| resolve(id, known, new))
            .collect::<Result<Vec<SegmentRef>>>()?;
        let image = Image {
            job: self.job,
            version,
            rank,
            page_bytes: self.page_bytes,
            hash: self.hash,
            segments: segments.clone(),
            regions,
        };
        let (bytes, digest) = image.encode();
        stats.image_bytes = bytes.len() as u64;
        stats.rank_bytes_max = stats.segment_bytes + stats.image_bytes;
        let putting = Instant::now();
        self.store.put(&name::image(version, attempt, rank), &bytes)?;
        let put_ns = elapsed_ns(putting);
        writes.pieces.add(stats.image_bytes, put_ns);
        writes.writes.add(stats.image_bytes, put_ns);
        stats.total_ns = elapsed_ns(started);
        let image = ImageRef { rank, file_bytes: stats.image_bytes, digest };
        Ok(Part { image, segments, stats, writes })
    }

    /// Steps 4 and 5, on the first rank: what to tell the others, and what it failed with.
    fn write_manifest(
        &self,
        order: Order,
        place: (u64, u32),
        parts: Vec<Result<Part>>,
        inventory: &mut Inventory,
    ) -> (Told, Option<Error>) {
        let (version, attempt) = (order.version, order.attempt);
        let manifest = match parts.into_iter().collect::<Result<Vec<Part>>>() {
            Ok(parts) => self.join(order, place, parts),
            Err(error) => return (Told::failed(&error, false, inventory), Some(error)),
        };
        failpoint::pass("commit.before_manifest");
        let object = name::manifest(version, Level::Local);
        if let Err(error) = self.store.put(&object, &manifest.encode()) {
            let error = Error::from(error);
            let files_stay = in_doubt(&*self.store, inventory, object, &error, attempt);
            return (Told::failed(&error, files_stay, inventory), Some(error));
        }
        failpoint::pass("commit.after_manifest");

        let before = inventory.checkpoints.len();
        inventory.checkpoints.retain(|other| other.version != version);
        inventory.damaged.retain(|damaged| damaged.object != object);
        let replaced = inventory.checkpoints.len() < before;
        inventory.checkpoints.insert(0, manifest);
        if !self.stores.are_one() {
            return (Told::committed(Vec::new(), Vec::new(), inventory), None);
        }
        let (removed, pruned) = prune_beyond(&*self.store, self.keep, replaced, inventory);
        // The checkpoint exists all the same; what stayed is tried again after the next one.
        let note = |error: Error| format!("older checkpoints were not pruned: {error}");
        let notes = pruned.err().map(note).into_iter().collect();
        (Told::committed(removed, notes, inventory), None)
    }

    /// The manifest of all ranks' parts; `place`: its sequence and how many ranks there are.
    fn join(&self, order: Order, (sequence, ranks): (u64, u32), parts: Vec<Part>) -> Manifest {
        let mut seen = HashSet::new();
        let segments = parts.iter().flat_map(|part| &part.segments);
        let segments = segments.filter(|segment| seen.insert(segment.id)).copied().collect();
        let stats = parts.iter().fold(Stats::default(), |all, part| all.join(part.stats));
        Manifest {
            job: self.job,
            version: order.version,
            sequence,
            attempt: order.attempt,
            level: Level::Local,
            taken_ns: order.taken_ns,
            ranks,
            writes: parts.iter().map(|part| part.writes.clone()).collect(),
            images: parts.into_iter().map(|part| part.image).collect(),
            segments,
            stats,
        }
    }

    /// Gives the space of a failed attempt back, as far as the store lets it.
    fn discard(&self, version: Version, attempt: AttemptId, rank: Rank, own: &[SegmentId]) {
        // Most are not there, and what stays goes with the next prune or opening.
        let _ = self.store.remove(&name::image(version, attempt, rank));
        for id in own {
            let _ = self.store.remove(&name::segment(*id));
        }
    }
}

/// Whether a manifest may be there although writing it was reported to have failed. It is then
/// in the inventory: as a checkpoint, or as a manifest of unknown contents.
fn in_doubt(
    store: &dyn Store,
    inventory: &mut Inventory,
    object: String,
    error: &Error,
    attempt: AttemptId,
) -> bool {
    if refresh(store, inventory) {
        return inventory.checkpoints.iter().any(|manifest| manifest.attempt == attempt)
            || inventory.damaged.iter().any(|damaged| damaged.object == object);
    }
    let why =
        standfast_restart::Error::Uncertain { object: object.clone(), why: error.to_string() };
    inventory.damaged.push(Damaged { object, error: why });
    true
}

/// Asks the store what is there; false if it does not answer.
fn refresh(store: &dyn Store, inventory: &mut Inventory) -> bool {
    Inventory::read(store).map(|fresh| *inventory = fresh).is_ok()
}

fn resolve(id: SegmentId, known: Option<SegmentRef>, new: &[SegmentRef]) -> Result<SegmentRef> {
    known
        .or_else(|| new.iter().find(|segment| segment.id == id).copied())
        .ok_or(Error::Unsealed { segment: id })
}

/// Removes the checkpoints beyond `keep`, and what only they or a replaced one needed. Returns
/// the segments that are gone, or may be.
fn prune_beyond(
    store: &dyn Store,
    keep: u32,
    replaced: bool,
    inventory: &mut Inventory,
) -> (Vec<SegmentId>, Result<()>) {
    let mut keep = Keep { newest: keep as usize, ..Keep::default() };
    let beyond = keep.newest != 0 && inventory.checkpoints.len() > keep.newest;
    if !beyond && !replaced {
        return (Vec::new(), Ok(()));
    }
    // Somebody reads (a verify, an export): nothing is taken away from under them.
    let _lock = match store.lock(Lock::ReadExclusive) {
        Ok(lock) => lock,
        Err(error) if error.kind() == Kind::Busy => return (Vec::new(), Ok(())),
        Err(error) => return (Vec::new(), Err(error.into())),
    };
    keep.versions = prune::kept_by_others(store, inventory, &keep);
    let plan = match store.list("") {
        Ok(objects) => prune::plan(inventory, &objects, &keep),
        Err(error) => return (Vec::new(), Err(error.into())),
    };
    let pruned = prune::execute(store, &plan);
    match &pruned {
        Ok(_) => {
            inventory.checkpoints.retain(|manifest| !plan.remove.contains(&manifest.version));
        }
        // Some are gone, some are not; an old inventory at worst offers what is gone.
        Err(_) => {
            refresh(store, inventory);
        }
    }
    // Also those that stayed: nothing may refer to them any more.
    (plan.segment_ids().collect(), pruned.map(drop))
}
