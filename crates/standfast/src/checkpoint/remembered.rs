//! What capturing remembers between checkpoints, in parts that a phase borrows apart.
//!
//! Data: a checkpoint that is committed, failed or read back -> [`Remembered`] -> the next one.

use std::sync::Arc;

use standfast_agent::StreamPlace;
use standfast_capture::Regions;
use standfast_comm::{Agreed, Collective};
use standfast_format::{Rank, SegmentId, SegmentRef, StoreHeader};
use standfast_reduce::{PageHasher, Scanner};
use standfast_restart::Inventory;
use standfast_store::Store;

use super::ledger::Ledger;
use super::place::Place;
use super::tracks::Tracks;
use super::writer::Writer;
use crate::config::Config;
use crate::error::Result;

/// What does not change while a job is open.
pub(crate) struct Env {
    pub(crate) config: Config,
    pub(super) rank: Rank,
    pub(super) store: Arc<dyn Store>,
    pub(super) header: StoreHeader,
    pub(super) scanner: Scanner,
    pub(super) hasher: PageHasher,
}

/// What capturing remembers between checkpoints.
pub(crate) struct Remembered {
    pub(crate) env: Env,
    pub(crate) ledger: Ledger,
    pub(super) place: Place,
    pub(crate) tracks: Tracks,
    pub(crate) writer: Writer,
    /// What the reader of the next report should know.
    pub(super) notes: Vec<String>,
}

impl Remembered {
    pub(crate) fn new(
        config: &Config,
        store: Arc<dyn Store>,
        header: &StoreHeader,
        team: &Collective,
    ) -> Self {
        let hasher = PageHasher::new(config.hash, &header.key);
        let page_bytes = config.page.0 as usize;
        Self {
            ledger: Ledger::new(config),
            place: Place::new(config, team),
            tracks: Tracks::new(config),
            writer: Writer::default(),
            notes: Vec::new(),
            env: Env {
                config: config.clone(),
                rank: team.rank(),
                store,
                header: header.clone(),
                scanner: Scanner::new(hasher.clone(), page_bytes, config.threads()),
                hasher,
            },
        }
    }

    /// Takes in what a committed checkpoint of all ranks needs, what pruning removed, and where
    /// the agent has put the streams of all ranks.
    pub(crate) fn committed(
        &mut self,
        segments: &[SegmentRef],
        removed: &[SegmentId],
        places: &[StreamPlace],
    ) {
        self.ledger.refer(segments);
        let agency = &mut self.writer.agency;
        agency.learn(places);
        let removed_streams = agency.with_streams(removed);
        agency.forget(removed);
        self.place.committed(&removed_streams);
        self.ledger.removed(&removed_streams);
    }

    /// Loads the catalog again with the next checkpoint.
    #[cfg(test)]
    pub(crate) fn lose_catalog(&mut self) {
        self.ledger.reset(self.env.config.mode);
    }

    /// Drops everything that refers to the pages of a failed checkpoint.
    pub(crate) fn forget_attempt(&mut self, segments: &[SegmentId]) {
        self.place.failed(segments);
        self.ledger.forget_attempt(segments);
    }

    /// Stores pages again rather than referring to these segments.
    pub(crate) fn distrust(&mut self, segments: &Agreed<Vec<SegmentId>>) {
        let segments = self.writer.agency.with_streams(segments);
        self.place.forget(&segments);
        self.ledger.distrust(segments);
    }

    /// Memory held between checkpoints, in bytes, pool excluded.
    pub(crate) fn bytes(&self) -> usize {
        self.ledger.bytes() + self.place.bytes()
    }

    /// Makes ready for a checkpoint. Collective.
    pub(super) fn prepare(
        &mut self,
        regions: &Regions,
        inventory: &Inventory,
        team: &Collective,
    ) -> Result<()> {
        self.writer.prepare(&self.env);
        let bytes = regions.bytes();
        self.ledger.prepare(&self.env, bytes, &mut self.place, (inventory, team))
    }

    /// Notes why the program is stopped although it should not be.
    pub(super) fn note_stop(&mut self, why: &str) {
        self.notes.push(format!("captured with the program stopped: {why}"));
    }
}
