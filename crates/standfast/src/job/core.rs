//! What checkpoints and restarts of a job work on, one at a time.
//!
//! Data: regions and what is remembered of their pages -> a checkpoint -> committer, which brings
//! back what it was lent with what became of it.
//!
//! Invariants:
//! - What a checkpoint under way was lent is not here ([`Stage`]): every call that needs it settles
//!   first, and gets an error where a panic has kept it from coming back.
//! - Memory may go only when nobody reads or fills it any more ([`Core::wait_taken`]).

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use standfast_capture::{Memory, Region, Regions};
use standfast_comm::{Collective, Concurrency, Lost, Step};
use standfast_format::SegmentId;
use standfast_restart::{Inventory, Rebuild};
use standfast_store::Store;

use super::agent_lost::Search;
use crate::checkpoint::attempt::Taken;
use crate::checkpoint::commit::Committed;
use crate::checkpoint::committer::{Committer, Work};
use crate::checkpoint::device::{SharedDevice, lock_device};
use crate::checkpoint::remembered::Remembered;
use crate::checkpoint::under_way::UnderWay;
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
    pub(super) stage: Stage,
    /// Set where an agent was lost.
    pub(super) search: Option<Search>,
    pub(super) committer: Committer,
    /// A restart whose pages are still arriving.
    pub(crate) lazy: Option<Lazy>,
    /// Memory that the job owns, by region, with its alignment. Goes after the committer, which may
    /// still be reading it.
    pub(crate) allocations: Vec<(String, Memory, usize)>,
    /// Segments that this rank alone could not read. The others are told before the next
    /// checkpoint, which must not lean on them.
    pub(crate) suspects: Vec<SegmentId>,
    /// What levels beyond the stores of the nodes have seen.
    pub(crate) floor: Floor,
    pub(super) reports: Vec<Report>,
}

/// How far the newest checkpoint has come, and what is here meanwhile.
pub(crate) enum Stage {
    /// Nothing is under way.
    Idle(Box<Remembered>, Inventory),
    /// It was captured in the call; the committer has the inventory.
    Committing(Box<Remembered>),
    /// Its pages are taken in behind the program; the committer has everything.
    Behind(UnderWay),
    /// Something is on its way from one stage to another; met elsewhere, a panic has lost it.
    Moving,
}

impl Stage {
    /// What a checkpoint or restart works on.
    pub(super) fn idle(&mut self) -> Kept<(&mut Remembered, &mut Inventory)> {
        match self {
            Stage::Idle(memory, inventory) => Ok((memory, inventory)),
            _ => Err(broken()),
        }
    }

    /// What capturing remembers, if it is here.
    pub(super) fn memory(&mut self) -> Option<&mut Remembered> {
        match self {
            Stage::Idle(memory, _) | Stage::Committing(memory) => Some(memory),
            Stage::Behind(_) | Stage::Moving => None,
        }
    }

    /// The same, once the committer has settled.
    fn into_memory(self) -> Option<Box<Remembered>> {
        match self {
            Stage::Idle(memory, _) | Stage::Committing(memory) => Some(memory),
            Stage::Behind(under_way) => under_way.memory(),
            Stage::Moving => None,
        }
    }

    fn is_under_way(&self) -> bool {
        matches!(self, Stage::Committing(_) | Stage::Behind(_))
    }
}

/// What a panic may have lost: then this rank takes no part in anything any more. The others learn
/// it by the first agreement of each call.
type Kept<T> = std::result::Result<T, Lost>;

fn broken() -> Lost {
    standfast_comm::Error::Broken { what: "an earlier checkpoint" }.into()
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
        if let Some(memory) = self.stage.memory() {
            memory.writer.warm(&memory.env, bytes);
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
        if let Stage::Behind(under_way) = &self.stage {
            under_way.wait_taken();
        }
    }

    /// Waits for the checkpoint under way, if any, and takes in what became of it; the progress
    /// board tells it to the program.
    pub(crate) fn settle(&mut self) {
        self.finish_arrival();
        if !self.stage.is_under_way() {
            return;
        }
        let stage = std::mem::replace(&mut self.stage, Stage::Moving);
        let Some((settled, inventory)) = self.committer.settle(&self.team) else { return };
        let Some(mut memory) = stage.into_memory() else { return };
        match settled.outcome {
            Ok(Committed { segments, removed, places, report }) => {
                memory.committed(&segments, &removed, &places);
                self.reports.push(report);
                if self.reports.len() > REPORTS {
                    self.reports.remove(0);
                }
            }
            Err(_) => memory.forget_attempt(&settled.begun),
        }
        self.stage = Stage::Idle(memory, inventory);
    }

    /// Hands what was taken to the committer, with what it needs.
    pub(super) fn submit(&mut self, taken: Taken) -> Result<()> {
        let Stage::Idle(memory, inventory) = std::mem::replace(&mut self.stage, Stage::Moving)
        else {
            return Err(broken().into());
        };
        let (work, stage) = match taken {
            Taken::Captured(draft) => (Work::Draft(draft), Stage::Committing(memory)),
            Taken::Frozen(frozen) => {
                let (work, under_way) = UnderWay::start(*frozen, memory);
                (work, Stage::Behind(under_way))
            }
        };
        self.stage = stage;
        self.committer.submit(work, inventory)
    }

    /// Later checkpoints lean neither on these segments nor on what any rank suspects.
    pub(crate) fn distrust(&mut self, segments: impl Iterator<Item = SegmentId>) -> Phase<()> {
        let mut own = std::mem::take(&mut self.suspects);
        own.extend(segments);
        let all = self.team.collect(Step("distrust"), own)?;
        let all = all.map(|all| all.concat());
        if let Some(memory) = self.stage.memory().filter(|_| !all.is_empty()) {
            memory.distrust(&all);
        }
        Ok(())
    }

    /// Remembers what a restart has put into memory.
    pub(crate) fn restored(&mut self, rebuild: Rebuild) {
        if let Some(memory) = self.stage.memory() {
            memory.ledger.restored(&memory.env.config, rebuild);
        }
    }

    /// Prepares for memory being overwritten as a whole.
    pub(crate) fn rest_tracking(&mut self) {
        if let Some(memory) = self.stage.memory() {
            memory.tracks.rest();
        }
    }

    /// What capturing remembers, after the checkpoint that has it, if any.
    pub(super) fn settled_memory(&mut self) -> Kept<&mut Remembered> {
        if let Stage::Behind(_) = self.stage {
            self.settle();
        }
        self.stage.memory().ok_or_else(broken)
    }

    /// The checkpoints of the store, after a settlement.
    pub(crate) fn inventory(&self) -> Kept<&Inventory> {
        match &self.stage {
            Stage::Idle(_, inventory) => Ok(inventory),
            _ => Err(broken()),
        }
    }

    /// Whether a checkpoint is finished inside of the program's calls only.
    pub(super) fn finishes_in_calls(&self) -> bool {
        self.team.size() > 1 && self.team.concurrency() == Concurrency::CallerOnly
    }

    /// Settles if this rank can do that by itself; false if all ranks must come together for it.
    pub(crate) fn settle_alone(&mut self) -> bool {
        let together = self.finishes_in_calls() && self.stage.is_under_way();
        if !together {
            self.settle();
        }
        !together
    }

    /// Whether a checkpoint waits for a call of the program to be finished in.
    pub(crate) fn can_settle(&self) -> bool {
        self.finishes_in_calls() && self.stage.is_under_way() && self.committer.is_ready()
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
                let loaded = Loaded::load(&[("lab.page".into(), "1KiB".into())]).unwrap();
                let job = Job::open_store_comm(loaded, Arc::clone(&store), &comm).unwrap();
                let field = job.alloc::<u64>("field", 4096).unwrap();
                for step in 0..3 {
                    field.write().iter_mut().zip(step..).for_each(|(word, at)| *word = at);
                    job.checkpoint(None).unwrap();
                    job.finish().unwrap();
                    if job.rank().0.0 == 1 {
                        job.core().settled_memory().unwrap().lose_catalog();
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
