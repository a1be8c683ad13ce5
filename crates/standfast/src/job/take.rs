//! Taking a checkpoint: all ranks agree on it, make room, capture their regions and hand them to
//! the committer.
//!
//! Data: regions -> [`Core::checkpoint`] -> work for the committer, while the program goes on.
//!
//! Why in this order: what can be refused is refused before memory is touched, by all ranks alike.

use standfast_comm::{Collective, Step};
use standfast_format::{AttemptId, Level, Version};

use super::Job;
use super::core::Core;
use crate::checkpoint::attempt::Taken;
use crate::checkpoint::draft::Order;
use crate::checkpoint::take::{Asked, take};
use crate::error::{Error, Phase, Result};
use crate::identity;
use crate::progress::{Board, Progress};
use crate::room;

impl Job {
    /// Takes a checkpoint and notes how long the program was held up.
    pub(crate) fn take(&self, core: &mut Core, version: Option<Version>) -> Result<Version> {
        let _busy = standfast_checkpoint::busy::hold(&*self.store);
        let begun = self.since_open();
        core.settle();
        self.can_talk()?;
        self.find_agent_again(core)?;
        let ready = self.board.untold().map_or(Ok(()), Err);
        let taken = core.checkpoint(version, ready, &self.board);
        let version = taken.inspect_err(|error| self.board.lose(error))?;
        let held_up = self.since_open();
        if core.team.is_first() {
            self.learn_drains();
        }
        self.pace().taken(version, begun, held_up);
        if let Some(requests) = &self.requests {
            requests.answer();
        }
        if let Some(asked) = &self.asked {
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
        let lost = self.agent_lost();
        let wanted = ready.and_then(|()| self.choose(version));
        let (mut order, agent_lost) = agree_on_attempt(&self.team, wanted, lost.is_some())?;
        if agent_lost {
            order = self.order_without_agent(version, lost)?;
        }
        self.distrust(std::iter::empty())?;
        self.make_room()?;
        let taken = match self.capture(order) {
            Err(error) if self.agent_is_gone(&error)? => {
                let lost = self.agent_lost();
                order = self.order_without_agent(version, lost)?;
                self.capture(order)?
            }
            taken => taken?,
        };
        let version = order.version;
        drop(held);
        board.set(version, Progress::Reached(Level::Memory));
        // Whoever waits for it must not wait for ever.
        let failed = |error: &Error| board.set(version, Progress::Failed(error.clone()));
        self.submit(taken).inspect_err(failed)?;
        Ok(version)
    }

    /// Captures all regions.
    fn capture(&mut self, order: Order) -> Result<Taken> {
        let (memory, inventory) = self.stage.idle()?;
        let (regions, device) = (&self.regions, self.device.as_ref());
        let asked = Asked { regions, device, order, inventory };
        // SAFETY: `protect` obliges raw regions to be left alone during this call, and the cells
        // of safe regions are held for reading. Memory goes only after `unprotect`, which waits.
        unsafe { take(memory, asked, &self.team) }
    }

    /// The version that a call asks for, and its place in the order of commits.
    pub(super) fn choose(&self, version: Option<Version>) -> Result<(Version, u64)> {
        let inventory = self.inventory()?;
        let version = version.unwrap_or_else(|| self.floor.next(inventory.version_max()));
        let newest = inventory.checkpoints.first().map_or(0, |manifest| manifest.sequence);
        let sequence = newest.max(self.floor.sequence).saturating_add(1);
        if version.0 == 0 { Err(Error::VersionZero) } else { Ok((version, sequence)) }
    }

    /// Lets old checkpoints go where the next one may not fit beside them.
    fn make_room(&mut self) -> Phase<()> {
        let (memory, inventory) = self.stage.idle()?;
        let (stores, bytes) = (self.committer.stores(), self.regions.bytes());
        let config = &memory.env.config;
        let made = room::make(&self.team, &*self.store, stores, config, inventory, bytes)?;
        if !made.is_empty() {
            memory.committed(&[], &made, &[]);
        }
        Ok(())
    }
}

/// All ranks must ask for one version; the first one's attempt and clock count. Also tells whether
/// any rank has lost the agent; versions may then differ, for ranks know different things.
pub(super) fn agree_on_attempt(
    team: &Collective,
    wanted: Result<(Version, u64)>,
    agent_lost: bool,
) -> Phase<(Order, bool)> {
    let own = wanted.and_then(|(version, sequence)| {
        let attempt = AttemptId(identity::bytes()?);
        Ok((Order { version, attempt, taken_ns: identity::now_ns(), sequence }, agent_lost))
    });
    let all = team.gather(Step("checkpoint: order"), own)?;
    Ok(all.map(common_order).decide()?.into_inner())
}

fn common_order(all: Vec<(Order, bool)>) -> Result<(Order, bool)> {
    let agent_lost = all.iter().any(|(_, lost)| *lost);
    let versions: Vec<Version> = all.iter().map(|(order, _)| order.version).collect();
    match versions.iter().position(|version| *version != versions[0]) {
        Some(rank) if !agent_lost => Err(Error::Disagree(format!(
            "rank 0 takes checkpoint {}, rank {rank} takes checkpoint {}",
            versions[0], versions[rank]
        ))),
        _ => Ok((all[0].0, agent_lost)),
    }
}
