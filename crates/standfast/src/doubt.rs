//! Doubt: checkpoints whose pages shall not arrive behind the program's back.
//!
//! ```text
//! lazy restart: a page cannot be brought -> mark, durable -> the program ends
//! next restart: marked? -> read as a whole, with ring and global storage -> whole: mark cleared
//!                                                                        -> else the next older one
//! ```
//! Why nothing else is tried at the moment of the fault: the ring needs all ranks, and those have gone
//! on with their programs; and what one rank fetched from global storage alone the others would
//! still lean on in their next checkpoints.
//!
//! Once a checkpoint was found damaged, older ones are read as a whole too: they share files with it.

use std::fmt;
use std::sync::Arc;

use standfast_comm::Step;
use standfast_format::{AttemptId, Level, Manifest, Rank, Version};
use standfast_store::Store;

use crate::config;
use crate::error::Phase;
use crate::job::{Core, Job};
use crate::mark;
use crate::restart::Back;
use crate::sources::Found;

/// Why a checkpoint is read as a whole before the program goes on.
pub(crate) enum Doubt {
    /// A lazy restart found it damaged, and said this.
    Marked(String),
    /// A newer one is damaged.
    Newer,
}

impl fmt::Display for Doubt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Doubt::Marked(why) => {
                write!(f, "it is marked as damaged by an earlier lazy restart ({why})")
            }
            Doubt::Newer => f.write_str("a newer checkpoint is damaged, and may share files"),
        }
    }
}

impl Job {
    /// Whether a checkpoint that could arrive lazily must not.
    pub(crate) fn doubt(
        &self,
        core: &Core,
        found: &Found,
        newer_failed: bool,
    ) -> Phase<Option<Doubt>> {
        let Some(local) = &found.local else { return Ok(None) };
        if self.config().config.restart == config::Restart::Eager {
            return Ok(None);
        }
        let own = self.stores.lead(|| Ok(mark::find(&*self.store, local.version, local.attempt)));
        let marks = core.team.gather(Step("doubt: marks"), own.map(Option::flatten))?;
        let mark = marks.into_inner().into_iter().flatten().next();
        Ok(mark.map(Doubt::Marked).or(newer_failed.then_some(Doubt::Newer)))
    }

    /// Clears the mark of a checkpoint that the nodes have given back whole, all ranks of it.
    pub(crate) fn dispel(&self, local: &Manifest, back: &mut Back) {
        if back.levels.contains(&Level::Global) {
            return;
        }
        let cleared =
            self.stores.lead(|| Ok(mark::clear(&*self.store, local.version, local.attempt)?));
        back.notes.push(match cleared {
            Ok(_) => "it is whole: its mark is cleared".into(),
            Err(error) => format!("it is whole, but its mark stays: {error}"),
        });
    }
}

/// Whoever tells the next restart that a checkpoint is damaged.
pub(crate) struct Marker {
    store: Arc<dyn Store>,
    version: Version,
    attempt: AttemptId,
    rank: Rank,
}

impl Marker {
    pub(crate) fn new(store: &Arc<dyn Store>, manifest: &Manifest, rank: Rank) -> Self {
        let Manifest { version, attempt, .. } = *manifest;
        Self { store: Arc::clone(store), version, attempt, rank }
    }

    /// Marks the checkpoint, and tells the user what was found and what comes next.
    pub(crate) fn tell(&self, what: &str) {
        let Self { store, version, attempt, rank } = self;
        // First: whoever reads stderr may be slow.
        let marked = mark::put(&**store, *version, *attempt, &format!("rank {rank}: {what}"));
        let place = store.describe();
        eprintln!("standfast: rank {rank}: checkpoint {version} in {place} is damaged: {what}");
        match marked {
            Ok(()) => eprintln!(
                "standfast: it is marked: the next restart reads it as a whole, with the help of \
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
