//! The committing phase: a draft becomes durable, in the one documented order.
//!
//! 1. seal every segment
//! 2. write the image
//! 3. write the manifest: from here on the checkpoint exists
//! 4. prune what is beyond `keep`
//!
//! Each step is durable before the next begins (the store's contract), so a crash anywhere leaves
//! the old checkpoints or the old ones and the new one, and files that the next opening removes.
//!
//! A failure before step 3 takes its files away again. A failure of step 3 or 4 leaves in doubt
//! what is there: then the store is asked, and where it does not answer, the doubt is kept.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::thread::JoinHandle;

use crossbeam_channel::{Receiver, Sender, bounded};
use standfast_format::{
    AttemptId, HashKind, Image, ImageRef, JobId, Kind, Level, Manifest, Rank, SegmentId,
    SegmentRef, Version, name,
};
use standfast_restart::{Damaged, Inventory};
use standfast_store::{Lock, Store, keep_signals_away};

use super::capture::{Draft, elapsed_ns};
use crate::error::{Error, Result};
use crate::failpoint;
use crate::progress::{Board, Progress};
use crate::prune::{self, Keep};
use crate::report::Report;

/// This library serves one rank; a job of several ranks gives each its own number.
pub(crate) const RANK: Rank = Rank(0);

/// What became of a checkpoint.
pub(crate) struct Settled {
    /// The segments the attempt had begun.
    pub(crate) begun: Vec<SegmentId>,
    pub(crate) outcome: Result<Committed>,
}

/// A checkpoint that exists.
pub(crate) struct Committed {
    pub(crate) sealed: Vec<SegmentRef>,
    pub(crate) removed: Vec<SegmentId>,
    pub(crate) report: Report,
}

/// What committing needs to know of the job.
pub(crate) struct CommitSettings {
    pub(crate) job: JobId,
    pub(crate) hash: HashKind,
    pub(crate) page_bytes: u32,
    pub(crate) keep: u32,
}

/// The committer's thread.
pub(crate) struct Committer {
    drafts: Option<Sender<(Draft, u64, Inventory)>>,
    settled: Receiver<(Settled, Inventory)>,
    thread: Option<JoinHandle<()>>,
}

impl Committer {
    pub(crate) fn start(
        store: Arc<dyn Store>,
        settings: CommitSettings,
        board: Arc<Board>,
    ) -> Self {
        let (drafts, queue) = bounded::<(Draft, u64, Inventory)>(1);
        let (done, settled) = bounded(1);
        let run = move || {
            keep_signals_away();
            for (draft, sequence, mut inventory) in queue {
                let version = draft.version;
                let begun = draft.pending.ids().collect();
                let committing = AssertUnwindSafe(|| {
                    commit(&*store, &settings, draft, sequence, &mut inventory)
                });
                // Whoever waits for this checkpoint must not wait for ever.
                let outcome =
                    catch_unwind(committing).unwrap_or(Err(Error::Broken { what: "committing" }));
                let progress = match &outcome {
                    Ok(_) => Progress::Done(Level::Local),
                    Err(error) => Progress::Failed(error.clone()),
                };
                // The board first: whoever takes the outcome in must find it told there.
                board.set(version, progress);
                if done.send((Settled { begun, outcome }, inventory)).is_err() {
                    return;
                }
            }
        };
        let thread = std::thread::Builder::new()
            .name("sf-commit".into())
            .spawn(run)
            .expect("a thread can be started");
        Self { drafts: Some(drafts), settled, thread: Some(thread) }
    }

    /// Hands a draft over. The inventory travels along and comes back with the outcome.
    pub(crate) fn submit(&self, draft: Draft, sequence: u64, inventory: Inventory) {
        let drafts = self.drafts.as_ref().expect("open until dropped");
        drafts.send((draft, sequence, inventory)).expect("the committer lives until dropped");
    }

    /// Waits for the outcome of the draft that was handed over.
    pub(crate) fn settle(&self) -> (Settled, Inventory) {
        self.settled.recv().expect("the committer answers every draft")
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

fn commit(
    store: &dyn Store,
    settings: &CommitSettings,
    draft: Draft,
    sequence: u64,
    inventory: &mut Inventory,
) -> Result<Committed> {
    let begun: Vec<SegmentId> = draft.pending.ids().collect();
    let (version, attempt) = (draft.version, draft.attempt);
    let (manifest, sealed) = write_files(store, settings, draft, sequence).inspect_err(|_| {
        discard(store, version, attempt, &begun);
    })?;

    failpoint::pass("commit.before_manifest");
    let object = name::manifest(version, Level::Local);
    if let Err(error) = store.put(&object, &manifest.encode()) {
        let error = Error::from(error);
        if !in_doubt(store, inventory, object, &error, attempt) {
            discard(store, version, attempt, &begun);
        }
        return Err(error);
    }
    failpoint::pass("commit.after_manifest");

    let before = inventory.checkpoints.len();
    inventory.checkpoints.retain(|other| other.version != version);
    inventory.damaged.retain(|damaged| damaged.object != object);
    let replaced = inventory.checkpoints.len() < before;
    let mut report = Report::of(&manifest, settings.page_bytes);
    inventory.checkpoints.insert(0, manifest);
    let (removed, pruned) = prune_beyond(store, settings.keep, replaced, inventory);
    if let Err(error) = pruned {
        // The checkpoint exists all the same; what stayed is tried again after the next one.
        report.notes.push(format!("older checkpoints were not pruned: {error}"));
    }
    Ok(Committed { sealed, removed, report })
}

/// Steps 1 and 2: everything but the manifest, which is returned.
fn write_files(
    store: &dyn Store,
    settings: &CommitSettings,
    draft: Draft,
    sequence: u64,
) -> Result<(Manifest, Vec<SegmentRef>)> {
    let Draft { version, attempt, taken_ns, started, pending, regions, table, mut stats } = draft;

    failpoint::pass("commit.before_segments");
    let sealed = pending.seal()?;
    stats.compressed_bytes = sealed.iter().map(|segment| segment.compressed_bytes).sum();
    stats.segment_bytes = sealed.iter().map(|segment| segment.reference.file_bytes).sum();
    let sealed: Vec<SegmentRef> = sealed.iter().map(|segment| segment.reference).collect();

    failpoint::pass("commit.before_image");
    let segments: Vec<SegmentRef> =
        table.into_iter().map(|(id, known)| resolve(id, known, &sealed)).collect();
    let image = Image {
        job: settings.job,
        version,
        rank: RANK,
        page_bytes: settings.page_bytes,
        hash: settings.hash,
        segments: segments.clone(),
        regions,
    };
    let (bytes, digest) = image.encode();
    stats.image_bytes = bytes.len() as u64;
    store.put(&name::image(version, attempt, RANK), &bytes)?;

    stats.total_ns = elapsed_ns(started);
    let manifest = Manifest {
        job: settings.job,
        version,
        sequence,
        attempt,
        level: Level::Local,
        taken_ns,
        ranks: 1,
        images: vec![ImageRef { rank: RANK, file_bytes: stats.image_bytes, digest }],
        segments,
        stats,
    };
    Ok((manifest, sealed))
}

/// Gives the space of a failed attempt back, as far as the store lets it.
fn discard(store: &dyn Store, version: Version, attempt: AttemptId, begun: &[SegmentId]) {
    // Most are not there, and what stays goes with the next prune or opening.
    let _ = store.remove(&name::image(version, attempt, RANK));
    for id in begun {
        let _ = store.remove(&name::segment(*id));
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

fn resolve(id: SegmentId, known: Option<SegmentRef>, sealed: &[SegmentRef]) -> SegmentRef {
    known
        .or_else(|| sealed.iter().find(|segment| segment.id == id).copied())
        .expect("a segment in the table is known or was just sealed")
}

/// Removes the checkpoints beyond `keep`, and what only they or a replaced one needed. Returns
/// the segments that are gone, or may be.
fn prune_beyond(
    store: &dyn Store,
    keep: u32,
    replaced: bool,
    inventory: &mut Inventory,
) -> (Vec<SegmentId>, Result<()>) {
    let keep = Keep { newest: keep as usize, versions: Vec::new() };
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
