//! What became of a draft that was handed to the agent, which has committed it or not.

use standfast_checkpoint::refresh;
use standfast_format::{Level, SegmentId};
use standfast_restart::Inventory;

use super::commit::{CommitSettings, Committed, Settled};
use super::draft::Order;
use super::sink::Ticket;
use super::told::Holdings;
use crate::error::{Error, Result};
use crate::report::Report;

impl CommitSettings {
    /// What the agent made of a draft that was handed to it, and the news for whoever waits.
    pub(super) fn conclude_handed(
        &self,
        order: Order,
        mut ticket: Ticket,
        foreign: Vec<SegmentId>,
        notes: Vec<String>,
        inventory: &mut Inventory,
    ) -> Settled {
        let begun = ticket.streams().iter().copied().chain(foreign).collect();
        let outcome = match ticket.settled() {
            Ok(settled) => self.take_settled(order, settled, notes, inventory),
            Err(error) => self.look_for(order, error, inventory),
        };
        self.settled(order.version, begun, Level::Local, outcome)
    }

    fn take_settled(
        &self,
        order: Order,
        settled: standfast_agent::Settled,
        notes: Vec<String>,
        inventory: &mut Inventory,
    ) -> Result<Committed> {
        let standfast_agent::Settled { outcome, places, removed, manifests, damaged, .. } = settled;
        Holdings::told(manifests, damaged).take_in(inventory);
        outcome.map_err(standfast_agent::Failure::into_error)?;
        let manifest = inventory.checkpoint(order.version)?;
        let mut report = Report::of(manifest, self.publisher.page_bytes);
        report.notes = notes.into_iter().chain(settled.notes).collect();
        Ok(Committed { segments: manifest.segments.clone(), removed, places, report })
    }

    /// The agent is gone: the store knows whether the checkpoint exists. Nobody writes there now.
    fn look_for(&self, order: Order, error: Error, inventory: &mut Inventory) -> Result<Committed> {
        refresh(&*self.publisher.store, inventory);
        let found = inventory.checkpoints.iter().find(|found| found.attempt == order.attempt);
        let manifest = found.ok_or(error)?;
        Ok(Committed {
            segments: manifest.segments.clone(),
            removed: Vec::new(),
            places: Vec::new(),
            report: Report::of(manifest, self.publisher.page_bytes),
        })
    }
}
