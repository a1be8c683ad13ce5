//! A checkpoint whose agent is gone goes on without it, and a later one finds another.
//!
//! Where one rank has lost its agent, all leave theirs: ranks of one checkpoint write the same way.
//! So do they come back: the next checkpoint looks for an agent, starts one if there is none, and
//! where that fails the second next, then the fourth: an agent that dies again and again costs
//! little, and drains that wait for one do not wait for the job's end.

use standfast_checkpoint::{Holdings, Order, refresh};
use standfast_comm::Step;
use standfast_format::Version;

use super::Job;
use super::core::Core;
use super::take::agree_on_attempt;
use crate::agent;
use crate::error::{Error, Phase, Stop};
use crate::stores;

/// When a job that has lost its agent looks for one again. The same on all ranks.
pub(crate) struct Search {
    /// Checkpoints until then, and from then to the next time.
    left: u32,
    pause: u32,
}

/// Checkpoints between two looks, at most.
const PAUSE_MAX: u32 = 64;

impl Search {
    fn new() -> Self {
        Self { left: 1, pause: 1 }
    }

    /// Counts a checkpoint; whether to look now.
    fn is_due(&mut self) -> bool {
        self.left -= 1;
        if self.left > 0 {
            return false;
        }
        self.pause = (2 * self.pause).min(PAUSE_MAX);
        self.left = self.pause;
        true
    }
}

impl Job {
    /// Finds an agent anew, where one was lost before this checkpoint.
    pub(super) fn find_agent_again(&self, core: &mut Core) -> Phase<()> {
        if !core.search.as_mut().is_some_and(Search::is_due) {
            return Ok(());
        }
        let lock = self.lock.as_ref();
        let (team, stores) = (&core.team, &self.stores);
        match agent::connect(&self.loaded, &self.store, &self.header, lock, team, stores, None)? {
            Ok(link) => {
                core.search = None;
                if let Some(memory) = core.stage.memory() {
                    memory.use_agent(link, stores.own_ranks().len());
                    memory.note("written through the node's agent again");
                }
            }
            Err(Some(why)) => {
                if let Some(memory) = core.stage.memory() {
                    memory.note_no_agent(&why);
                }
            }
            Err(None) => {}
        }
        Ok(())
    }
}

impl Core {
    /// Why the agent is of no more use to this rank, if that is so.
    pub(super) fn agent_lost(&mut self) -> Option<Error> {
        Some(self.stage.memory()?.agent_lost()?.into())
    }

    /// Whether a capture that failed on all ranks did so where one has lost its agent: without
    /// agents it may succeed, and memory is still as it was.
    pub(super) fn agent_is_gone(&mut self, stop: &Stop) -> Phase<bool> {
        if let Stop::Lost(_) = stop {
            return Ok(false);
        }
        let has_agent = self.agent_lost().is_none();
        let [all_have] = *self.team.all_hold(Step("agent: lost"), [has_agent])?;
        Ok(!all_have)
    }

    /// Goes on without the agent, and orders anew: the store may hold more than this rank knew.
    pub(super) fn order_without_agent(
        &mut self,
        version: Option<Version>,
        lost: Option<Error>,
    ) -> Phase<Order> {
        self.dismiss_agent(lost)?;
        let wanted = self.choose(version);
        Ok(agree_on_attempt(&self.team, wanted, false)?.0)
    }

    /// Goes on without the agent, which this or another rank has lost.
    fn dismiss_agent(&mut self, lost: Option<Error>) -> Phase<()> {
        let (memory, inventory) = self.stage.idle()?;
        // What the agent did last, the store knows, and the first rank asks for all.
        let held = self.team.tell(Step("agent: holdings"), || {
            refresh(self.committer.store(), inventory);
            Ok::<_, Error>(Holdings::of(inventory))
        });
        held?.take_in(inventory);
        let why = lost.map_or_else(|| "another rank has lost it".into(), |lost| lost.to_string());
        memory.dismiss_agent(&why);
        self.search = Some(Search::new());
        // No agent writes for this job any more, once all ranks have left theirs.
        self.team.meet(Step("agent: left"))?;
        let cleaned = self.committer.stores().lead(|| {
            let store = self.committer.store();
            let _ = store.discard_unsealed();
            stores::discard_orphans(store, inventory)
        });
        // What stays goes with the next opening.
        drop(cleaned);
        Ok(self.team.meet(Step("agent: left-overs"))?)
    }
}

#[cfg(test)]
mod tests;
