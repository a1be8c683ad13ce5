//! What checkpoints and restarts of a job work on, one at a time.
//!
//! Data: regions and what is known of their pages -> capturer -> committer, which brings them back
//! with what became of them.
//!
//! Invariants:
//! - Capturer and inventory travel with a checkpoint that is under way: they are here again when it
//!   is settled, and every call that needs them settles first.
//! - Memory may go only when nobody reads or fills it any more ([`Core::wait_taken`]).

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use standfast_capture::{Memory, Region, Regions};
use standfast_comm::{Collective, Concurrency, Step};
use standfast_format::SegmentId;
use standfast_restart::{Inventory, Rebuild};
use standfast_store::Store;

use super::agent_lost::Search;
use crate::checkpoint::capture::Capturer;
use crate::checkpoint::commit::Committed;
use crate::checkpoint::committer::Committer;
use crate::checkpoint::device::{SharedDevice, lock_device};
use crate::checkpoint::snapshot::UnderWay;
use crate::error::{Phase, Result};
use crate::global::Floor;
use crate::lazy::Lazy;
use crate::protected::Cell;
use crate::report::Report;

/// How many reports of this process are kept.
const REPORTS: usize = 64;

/// What checkpoints and restarts work on, one at a time.
pub(crate) struct Core {
    pub(crate) regions: Regions,
    /// Memory that safe code may be using: asked before it is read or filled.
    pub(crate) cells: Vec<(String, Arc<dyn Cell>)>,
    pub(crate) team: Collective,
    pub(super) store: Arc<dyn Store>,
    /// The device on which regions lie, once there is one.
    pub(crate) device: Option<SharedDevice>,
    /// `None` while a snapshot is being taken in: it travels with the snapshot.
    pub(super) capturer: Option<Capturer>,
    /// Set where an agent was lost.
    pub(super) search: Option<Search>,
    pub(super) under_way: Option<UnderWay>,
    pub(super) committer: Committer,
    /// A restart whose pages are still arriving.
    pub(crate) lazy: Option<Lazy>,
    /// Memory that the job owns, by region, with its alignment. Goes after the committer, which may
    /// still be reading it.
    pub(crate) allocations: Vec<(String, Memory, usize)>,
    /// `None` while a draft is being committed: it travels with the draft.
    pub(super) inventory: Option<Inventory>,
    /// Segments that this rank alone could not read. The others are told before the next
    /// checkpoint, which must not lean on them.
    pub(crate) suspects: Vec<SegmentId>,
    /// What levels beyond the stores of the nodes have seen.
    pub(crate) floor: Floor,
    pub(super) reports: Vec<Report>,
}

pub(crate) fn lock(core: &Mutex<Core>) -> MutexGuard<'_, Core> {
    // A panic elsewhere leaves the table of regions whole; a checkpoint cut short by it is
    // simply not there.
    core.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Core {
    /// Makes ready what the first checkpoint of what is protected now needs.
    pub(crate) fn warm(&mut self) {
        let bytes = self.regions.bytes();
        if let Some(capturer) = &mut self.capturer {
            capturer.warm(bytes);
        }
    }

    pub(crate) fn unprotect(&mut self, name: &str) -> Result<()> {
        self.wait_taken();
        let region = self.regions.get(name).and_then(Region::device);
        self.regions.unprotect(name)?;
        if let (Some(region), Some(device)) = (region, &self.device) {
            lock_device(device).release(region);
        }
        self.cells.retain(|(of, _)| of != name);
        Ok(())
    }

    /// Whether a region lies on pages of its own.
    pub(crate) fn owns_pages(&self, name: &str) -> bool {
        self.cells.iter().any(|(of, _)| of == name)
            || self.allocations.iter().any(|(of, ..)| of == name)
    }

    /// Waits until everything of a lazy restart has arrived, and takes it in.
    fn finish_arrival(&mut self) {
        if let Some(lazy) = self.lazy.take() {
            let rebuild = lazy.finish();
            self.restored(rebuild);
        }
    }

    /// Waits until nobody reads or fills memory any more: it may be gone right after this.
    pub(crate) fn wait_taken(&mut self) {
        self.finish_arrival();
        if let Some(under_way) = &self.under_way {
            under_way.wait_taken();
        }
    }

    /// Waits for the checkpoint under way, if any, and takes in what became of it; the progress
    /// board tells it to the program.
    pub(crate) fn settle(&mut self) {
        self.finish_arrival();
        if self.inventory.is_some() {
            return;
        }
        let (settled, inventory) = self.committer.settle(&self.team);
        self.inventory = Some(inventory);
        if let Some(under_way) = self.under_way.take() {
            self.capturer = Some(under_way.capturer());
        }
        match settled.outcome {
            Ok(Committed { segments, removed, places, report }) => {
                self.capturer().committed(&segments, &removed, &places);
                self.reports.push(report);
                if self.reports.len() > REPORTS {
                    self.reports.remove(0);
                }
            }
            Err(_) => self.capturer().forget_attempt(&settled.begun),
        }
    }

    /// Later checkpoints lean neither on these segments nor on what any rank suspects.
    pub(crate) fn distrust(&mut self, segments: impl Iterator<Item = SegmentId>) -> Phase<()> {
        let mut own = std::mem::take(&mut self.suspects);
        own.extend(segments);
        let all = self.team.collect(Step("distrust"), own)?;
        let all = all.map(|all| all.concat());
        if !all.is_empty() {
            self.capturer().distrust(&all);
        }
        Ok(())
    }

    /// Remembers what a restart has put into memory.
    pub(crate) fn restored(&mut self, rebuild: Rebuild) {
        self.capturer().restored(rebuild);
    }

    /// Prepares for memory being overwritten as a whole.
    pub(crate) fn rest_tracking(&mut self) {
        self.capturer().rest();
    }

    pub(super) fn capturer(&mut self) -> &mut Capturer {
        self.capturer.as_mut().expect("settled")
    }

    pub(super) fn settled_capturer(&mut self) -> &Capturer {
        if self.capturer.is_none() {
            self.settle();
        }
        self.capturer()
    }

    pub(crate) fn inventory(&self) -> &Inventory {
        self.inventory.as_ref().expect("settled")
    }

    /// Whether a checkpoint is finished inside of the program's calls only.
    pub(super) fn finishes_in_calls(&self) -> bool {
        self.team.size() > 1 && self.team.concurrency() == Concurrency::CallerOnly
    }

    /// Settles if this rank can do that by itself; false if all ranks must come together for it.
    pub(crate) fn settle_alone(&mut self) -> bool {
        let together = self.finishes_in_calls() && self.inventory.is_none();
        if !together {
            self.settle();
        }
        !together
    }

    /// Whether a checkpoint waits for a call of the program to be finished in.
    pub(crate) fn can_settle(&self) -> bool {
        self.finishes_in_calls() && self.inventory.is_none() && self.committer.is_ready()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::channel;
    use std::time::Duration;

    use standfast_comm::run_threads;
    use standfast_store::MemoryStore;

    use super::*;
    use crate::Job;
    use crate::config::Loaded;

    #[test]
    fn a_catalog_that_one_rank_has_to_load_is_loaded_by_all() {
        let (end, ended) = channel();
        std::thread::spawn(move || {
            let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
            run_threads(3, |comm| {
                let loaded = Loaded::load(&[("page".into(), "1KiB".into())]).unwrap();
                let job = Job::open_store_comm(loaded, Arc::clone(&store), &comm).unwrap();
                let field = job.alloc::<u64>("field", 4096).unwrap();
                for step in 0..3 {
                    field.write().iter_mut().zip(step..).for_each(|(word, at)| *word = at);
                    job.checkpoint(None).unwrap();
                    job.finish().unwrap();
                    if job.rank().0.0 == 1 {
                        job.core().capturer().lose_catalog();
                    }
                }
                field.write().fill(0);
                job.restart(None).unwrap();
                assert!(field.read().iter().copied().eq(2..2 + 4096));
            });
            end.send(()).unwrap();
        });
        ended.recv_timeout(Duration::from_secs(60)).expect("the ranks do not wait for each other");
    }
}
