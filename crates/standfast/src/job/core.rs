//! What checkpoints and restarts of a job work on, one at a time.
//!
//! Data: regions and what is remembered of their pages -> a checkpoint -> committer, which brings
//! back what it was lent with what became of it.
//!
//! Invariants:
//! - What a checkpoint under way was lent is not here ([`Stage`]): every call that needs it settles
//!   first, and gets an error where a panic has kept it from coming back.
//! - Memory may go only when nobody reads or fills it any more ([`Core::wait_taken`]).

use std::convert::Infallible;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crossbeam_channel::{Receiver, bounded};
use standfast_capture::{Memory, Region, Regions};
use standfast_checkpoint::Order;
use standfast_comm::{Collective, Concurrency, Lost, Step};
use standfast_format::SegmentId;
use standfast_restart::{Inventory, Lazy, Rebuild};
use standfast_take::{Ended, Remembered, SharedDevice, TakeRequest, Taken, lock_device, take};

use super::agent_lost::Search;
use crate::checkpoint::committer::Committer;
use crate::checkpoint::settings::stop;
use crate::error::{Phase, Result};
use crate::global::Floor;
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
    /// The device on which regions lie, once there is one.
    pub(crate) device: Option<SharedDevice>,
    pub(super) stage: Stage,
    /// Set where an agent was lost.
    pub(super) search: Option<Search>,
    pub(super) committer: Committer,
    /// A restart whose pages are still being loaded.
    pub(crate) lazy: Option<Lazy>,
    /// Memory that the job owns, by region, with its alignment. Goes after the committer, which may
    /// still be reading it.
    pub(crate) allocations: Vec<(String, Memory, usize)>,
    /// Segments that this rank alone could not read. The others are told before the next
    /// checkpoint, which must not lean on them.
    pub(crate) suspects: Vec<SegmentId>,
    /// What levels beyond the stores of the nodes have seen, and what this run has abandoned.
    pub(crate) floor: Floor,
    pub(super) reports: Vec<Report>,
}

/// Whether a checkpoint is under way, and what is here.
pub(crate) enum Stage {
    /// Nothing is under way.
    Idle(Box<Remembered>, Inventory),
    /// The attempt has everything; closed when it reads no memory any more.
    UnderWay(Receiver<Infallible>),
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
        self.idle().ok().map(|(memory, _)| memory)
    }

    fn is_under_way(&self) -> bool {
        matches!(self, Stage::UnderWay(_))
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
        let Self { stage, regions, .. } = self;
        if let Some(memory) = stage.memory() {
            memory.warm(regions);
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
        if let Stage::UnderWay(reading) = &self.stage {
            // Nothing is ever sent.
            let _ = reading.recv();
        }
    }

    /// Waits for the checkpoint under way, if any, and takes in what became of it; the progress
    /// board tells it to the program.
    pub(crate) fn settle(&mut self) {
        self.finish_arrival();
        while self.stage.is_under_way() {
            self.step();
        }
    }

    /// Brings the checkpoint under way a step further: to its end, or back to the committer.
    pub(crate) fn step(&mut self) {
        let under_way = std::mem::replace(&mut self.stage, Stage::Moving);
        let (published, inventory) = match self.committer.step(&self.team) {
            None => return,
            Some(None) => {
                self.stage = under_way;
                return;
            }
            Some(Some(done)) => done,
        };
        let version = published.order.version;
        let (memory, outcome, notes) = published.settle();
        if let (Ok(committed), Ok(manifest)) = (outcome, inventory.checkpoint(version)) {
            let report = Report::of(manifest, self.committer.page_bytes());
            let slowed_ns = Some(memory.slowed_ns());
            self.reports.push(Report { level: committed.level, notes, slowed_ns, ..report });
            if self.reports.len() > REPORTS {
                self.reports.remove(0);
            }
        }
        self.stage = Stage::Idle(memory, inventory);
    }

    /// Captures all regions; then the attempt has what capturing remembers, and goes with the
    /// inventory to the committer ([`Core::submit`]).
    pub(super) fn capture(&mut self, order: Order) -> Phase<(Taken, Inventory)> {
        let Stage::Idle(memory, inventory) = std::mem::replace(&mut self.stage, Stage::Moving)
        else {
            return Err(broken().into());
        };
        let (reading, read) = bounded(0);
        let asked = TakeRequest {
            regions: &self.regions,
            device: self.device.as_ref(),
            order,
            inventory: &inventory,
            reading: &reading,
        };
        // SAFETY: `protect` obliges raw regions to be left alone during this call, and the cells
        // of safe regions are held for reading. Memory goes only after `unprotect`, which waits.
        match unsafe { take(memory, asked, &self.team) } {
            Ok(taken) => {
                self.stage = Stage::UnderWay(read);
                Ok((taken, inventory))
            }
            Err(Ended { memory, why }) => {
                self.stage = Stage::Idle(memory, inventory);
                Err(stop(why))
            }
        }
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
            memory.restored(rebuild);
        }
    }

    /// Prepares for memory being overwritten as a whole.
    pub(crate) fn rest_tracking(&mut self) {
        if let Some(memory) = self.stage.memory() {
            memory.rest_tracking();
        }
    }

    /// What capturing remembers, after the checkpoint that has it, unless all ranks must come together
    /// for that.
    pub(super) fn settled_memory(&mut self) -> Kept<&mut Remembered> {
        self.settle_alone();
        Ok(self.stage.idle()?.0)
    }

    /// The checkpoints of the store, after a settlement.
    pub(crate) fn inventory(&self) -> Kept<&Inventory> {
        match &self.stage {
            Stage::Idle(_, inventory) => Ok(inventory),
            _ => Err(broken()),
        }
    }

    /// Takes in what the stores hold now.
    pub(crate) fn replace_inventory(&mut self, fresh: Inventory) {
        if let Stage::Idle(_, inventory) = &mut self.stage {
            *inventory = fresh;
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

    /// Whether a checkpoint waits for a call of the program to be brought further in.
    pub(crate) fn can_step(&self) -> bool {
        self.finishes_in_calls() && self.stage.is_under_way() && self.committer.is_ready()
    }
}

#[cfg(test)]
mod tests;
