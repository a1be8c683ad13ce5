//! Taking a checkpoint: all ranks agree on it, free space, capture their regions and hand them to
//! the committer.
//!
//! Data: regions -> [`Core::checkpoint`] -> work for the committer, while the program goes on.
//!
//! Why in this order: what can be refused is refused before memory is touched, by all ranks alike.

use standfast_capture::Access;
use standfast_checkpoint::{Inventory, Order};
use standfast_comm::{Collective, Step};
use standfast_format::{Abandoned, AttemptId, Level, Version};
use standfast_take::Taken;

use super::Job;
use super::core::Core;
use crate::error::{Cause, Error, Phase, Result};
use crate::identity;
use crate::progress::{Board, Progress};
use crate::space;

impl Job {
    /// Takes a checkpoint and notes how long the program was held up.
    pub(crate) fn take(&self, core: &mut Core, version: Option<Version>) -> Result<Version> {
        let _busy = standfast_checkpoint::busy::hold(&*self.store);
        let begun = self.since_open();
        core.settle();
        self.can_talk()?;
        self.find_agent_again(core)?;
        let ready = self.board.untold().map_or(Ok(()), Err);
        let entered = self.enter(core).map_err(Error::from);
        let ready = entered
            .and(ready)
            .and_then(|()| self.spare_finished(core, version))
            .and_then(|()| Ok(core.regions.check_mapped(Access::Read)?));
        let taken = core.checkpoint(version, ready, &self.board);
        self.starts().failed = taken.is_err();
        let version = taken.inspect_err(|error| self.board.lose(error))?;
        let held_up = self.since_open();
        if core.team.is_first() {
            self.learn_drains();
        }
        self.pace().taken(version, begun, held_up);
        if let Some(requests) = &self.asked.signal {
            requests.answer();
        }
        if let Some(asked) = &self.asked.run {
            asked.answer(version.0);
        }
        Ok(version)
    }
}

impl Core {
    /// `ready`: whether this rank may take one at all.
    fn checkpoint(
        &mut self,
        version: Option<Version>,
        ready: Result<()>,
        board: &Board,
    ) -> Result<Version> {
        let cells = self.cells.clone();
        let held = ready.and_then(|()| crate::protected::hold_all(&cells));
        let (held, ready) = match held {
            Ok(held) => (Some(held), Ok(())),
            Err(error) => (None, Err(error)),
        };
        let (version, taken, inventory) = self.order_and_capture(version, ready)?;
        drop(held);
        board.set(version, Progress::Reached(Level::Memory));
        // Whoever waits for it must not wait for ever.
        let failed = |error: &Error| board.set(version, Progress::Failed(error.clone()));
        self.committer.submit(taken, inventory).inspect_err(failed)?;
        Ok(version)
    }

    /// All that the ranks do together before the program goes on.
    fn order_and_capture(
        &mut self,
        version: Option<Version>,
        ready: Result<()>,
    ) -> Phase<(Version, Taken, Inventory)> {
        let lost = self.agent_lost();
        let wanted = ready.and_then(|()| self.choose(version));
        let (mut order, agent_lost) = agree_on_attempt(&self.team, wanted, lost.is_some())?;
        if agent_lost {
            order = self.order_without_agent(version, lost)?;
        }
        // An attempt that fails may leave a pledge: what is tried after it must be the newer one.
        self.floor.sequence = order.sequence;
        self.distrust(std::iter::empty())?;
        self.make_space()?;
        self.compact()?;
        self.regions.find_undumped();
        let (taken, inventory) = match self.capture(order) {
            Err(stop) if self.agent_is_gone(&stop)? => {
                let lost = self.agent_lost();
                order = self.order_without_agent(version, lost)?;
                self.capture(order)?
            }
            taken => taken?,
        };
        Ok((order.version, taken, inventory))
    }

    /// The version that a call asks for, and its place in the order of commits.
    pub(super) fn choose(&self, version: Option<Version>) -> Result<Wanted> {
        let inventory = self.inventory()?;
        let version = version.unwrap_or_else(|| self.floor.next(inventory.version_max()));
        let newest = inventory.checkpoints.first().map_or(0, |manifest| manifest.sequence);
        let abandons = self.floor.abandons;
        let left = abandons.map_or(0, |left| left.last);
        let sequence = newest.max(self.floor.sequence).max(left).saturating_add(1);
        if version.0 == 0 {
            Err(Cause::VersionZero.into())
        } else {
            Ok(Wanted { version, sequence, abandons })
        }
    }

    /// Chooses what this checkpoint stores again, so that the store stays small.
    fn compact(&mut self) -> Phase<()> {
        let (memory, inventory) = self.stage.idle()?;
        Ok(memory.compact(inventory, &self.team)?)
    }

    /// Lets old checkpoints go where the next one may not fit beside them.
    fn make_space(&mut self) -> Phase<()> {
        let (memory, inventory) = self.stage.idle()?;
        let (stores, bytes) = (self.committer.stores(), self.regions.bytes());
        let (store, limit) = (self.committer.store(), self.committer.limit());
        let made = space::make(&self.team, store, stores, limit, inventory, bytes)?;
        if !made.is_empty() {
            memory.committed(&[], &made, &[]);
        }
        Ok(())
    }
}

/// What a rank wants of a checkpoint.
pub(super) struct Wanted {
    version: Version,
    sequence: u64,
    abandons: Option<Abandoned>,
}

/// All ranks must ask for one version; the first one's attempt and clock count. Also tells whether
/// any rank has lost the agent; versions may then differ, for ranks know different things.
pub(super) fn agree_on_attempt(
    team: &Collective,
    wanted: Result<Wanted>,
    agent_lost: bool,
) -> Phase<(Order, bool)> {
    let own = wanted.and_then(|Wanted { version, sequence, abandons }| {
        let (attempt, taken_ns) = (AttemptId(identity::bytes()?), identity::now_ns());
        Ok((Order { version, attempt, taken_ns, sequence, abandons }, agent_lost))
    });
    let all = team.gather(Step("checkpoint: order"), own)?;
    Ok(all.map(common_order).decide()?.into_inner())
}

fn common_order(all: Vec<(Order, bool)>) -> Result<(Order, bool)> {
    let agent_lost = all.iter().any(|(_, lost)| *lost);
    let versions: Vec<Version> = all.iter().map(|(order, _)| order.version).collect();
    match versions.iter().position(|version| *version != versions[0]) {
        Some(rank) if !agent_lost => Err(Error::disagree(format!(
            "rank 0 takes checkpoint {}, rank {rank} takes checkpoint {}",
            versions[0], versions[rank]
        ))),
        _ => Ok((all[0].0, agent_lost)),
    }
}
