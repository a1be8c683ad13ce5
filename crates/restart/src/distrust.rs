//! Checkpoints to read completely before the program continues.
//!
//! ```text
//! lazy restart: a page cannot be loaded -> mark, durable -> the program ends
//! next restart: marked? -> read completely, with ring and global storage -> intact: mark cleared
//!                                                                        -> else the next older one
//! ```
//! Why nothing else is tried at the moment of the fault: the ring needs all ranks, and those have
//! continued with their programs; and what one rank fetched from global storage alone the others
//! would still refer to in their next checkpoints.
//!
//! Once a checkpoint was found damaged, older ones are read completely too: they share files with it.

use std::fmt;
use std::sync::Arc;

use standfast_checkpoint::mark;
use standfast_comm::Step;
use standfast_format::{AttemptId, Level, Manifest, Rank, Version};
use standfast_store::Store;

use crate::error::{Error, Phase};
use crate::restart::{Restart, Restored};
use crate::restart_plan::Candidate;

/// Why a checkpoint is read completely before the program continues.
pub(crate) enum Distrust {
    /// A lazy restart found it damaged, and said this.
    Marked(String),
    /// A newer one is damaged.
    Newer,
}

impl fmt::Display for Distrust {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Distrust::Marked(why) => {
                write!(f, "it is marked as damaged by an earlier lazy restart ({why})")
            }
            Distrust::Newer => f.write_str("a newer checkpoint is damaged, and may share files"),
        }
    }
}

impl Restart<'_> {
    /// Whether a checkpoint whose pages could be loaded later must be read completely.
    pub(crate) fn distrust(
        &self,
        candidate: &Candidate,
        newer_failed: bool,
    ) -> Phase<Option<Distrust>> {
        let Some(local) = candidate.local.as_ref().filter(|_| self.way.lazy) else {
            return Ok(None);
        };
        let find = || Ok::<_, Error>(mark::find(&**self.store, local.version, local.attempt));
        let own = self.stores.lead(find).map(Option::flatten);
        let marks = self.ranks.gather(Step("distrust: marks"), own)?;
        let mark = marks.into_inner().into_iter().flatten().next();
        Ok(mark.map(Distrust::Marked).or(newer_failed.then_some(Distrust::Newer)))
    }

    /// Clears the mark of a checkpoint that the nodes have given back intact, all ranks of it.
    pub(crate) fn clear_mark(&self, local: &Manifest, restored: &mut Restored) {
        if restored.levels.contains(&Level::Global) {
            return;
        }
        let clear = || mark::clear(&**self.store, local.version, local.attempt);
        restored.notes.push(match self.stores.lead(clear) {
            Ok(_) => "it is intact: its mark is cleared".into(),
            Err(error) => format!("it is intact, but its mark stays: {error}"),
        });
    }
}

/// Records for the next restart that a checkpoint is damaged.
pub(crate) struct DamageMarker {
    store: Arc<dyn Store>,
    version: Version,
    attempt: AttemptId,
    rank: Rank,
}

impl DamageMarker {
    pub(crate) fn new(store: &Arc<dyn Store>, manifest: &Manifest, rank: Rank) -> Self {
        let Manifest { version, attempt, .. } = *manifest;
        Self { store: Arc::clone(store), version, attempt, rank }
    }

    /// Marks the checkpoint, and tells the user what was found and what comes next.
    pub(crate) fn report(&self, what: &str) {
        let Self { store, version, attempt, rank } = self;
        // First: whoever reads stderr may be slow.
        let marked = mark::put(&**store, *version, *attempt, &format!("rank {rank}: {what}"));
        let place = store.describe();
        eprintln!("standfast: rank {rank}: checkpoint {version} in {place} is damaged: {what}");
        match marked {
            Ok(()) => eprintln!(
                "standfast: it is marked: the next restart reads it completely, with the help of \
                 ring and global storage, and goes back to an older one if that fails; start the \
                 program again ('standfast run' does)"
            ),
            Err(error) => eprintln!(
                "standfast: it could not be marked ({error}): start the program again with \
                 restart=eager, which goes back to an older checkpoint"
            ),
        }
    }
}
