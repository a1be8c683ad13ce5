//! The committing phase: a draft becomes durable, in the one documented order.
//!
//! 1. seal every segment
//! 2. write the image
//! 3. write the manifest: from here on the checkpoint exists
//! 4. prune what is beyond `keep`
//!
//! Each step is durable before the next begins (the store's contract), so a crash anywhere leaves
//! the old checkpoints or the old ones and the new one, and files that the next opening removes.

use std::sync::Arc;
use std::thread::JoinHandle;

use crossbeam_channel::{Receiver, Sender, bounded};
use standfast_format::{
    HashKind, Image, ImageRef, JobId, Kind, Level, Manifest, Rank, SegmentId, SegmentRef, name,
};
use standfast_restart::Inventory;
use standfast_store::{Lock, Store};

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
            for (draft, sequence, mut inventory) in queue {
                let version = draft.version;
                let begun = draft.pending.ids().collect();
                let outcome = commit(&*store, &settings, draft, sequence, &mut inventory);
                let progress = match &outcome {
                    Ok(_) => Progress::Done(Level::Local),
                    Err(error) => Progress::Failed(error.clone()),
                };
                // Settled first: whoever waits for the level may ask for the report next.
                if done.send((Settled { begun, outcome }, inventory)).is_err() {
                    return;
                }
                board.set(version, progress);
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

    failpoint::pass("commit.before_manifest");
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
    store.put(&name::manifest(version, Level::Local), &manifest.encode())?;
    failpoint::pass("commit.after_manifest");

    inventory.checkpoints.retain(|other| other.version != version);
    let mut report = Report::of(&manifest, settings.page_bytes);
    inventory.checkpoints.insert(0, manifest);
    let removed = match prune_beyond(store, settings.keep, inventory) {
        Ok(removed) => removed,
        // The checkpoint exists all the same; what stayed is tried again after the next one.
        Err(error) => {
            report.notes.push(format!("older checkpoints were not pruned: {error}"));
            Vec::new()
        }
    };
    Ok(Committed { sealed, removed, report })
}

fn resolve(id: SegmentId, known: Option<SegmentRef>, sealed: &[SegmentRef]) -> SegmentRef {
    known
        .or_else(|| sealed.iter().find(|segment| segment.id == id).copied())
        .expect("a segment in the table is known or was just sealed")
}

/// Removes the checkpoints beyond `keep`, and what only they needed.
fn prune_beyond(store: &dyn Store, keep: u32, inventory: &mut Inventory) -> Result<Vec<SegmentId>> {
    let keep = Keep { newest: keep as usize, versions: Vec::new() };
    if keep.newest == 0 || inventory.checkpoints.len() <= keep.newest {
        return Ok(Vec::new());
    }
    // Somebody reads (a verify, an export): nothing is taken away from under them.
    let _lock = match store.lock(Lock::ReadExclusive) {
        Ok(lock) => lock,
        Err(error) if error.kind() == Kind::Busy => return Ok(Vec::new()),
        Err(error) => return Err(Error::from(error)),
    };
    let plan = prune::plan(inventory, &store.list("")?, &keep);
    let removed = prune::execute(store, &plan)?;
    inventory.checkpoints.retain(|manifest| !plan.remove.contains(&manifest.version));
    Ok(removed)
}
