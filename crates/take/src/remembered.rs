//! What capturing remembers between checkpoints, in parts that a phase borrows apart.
//!
//! Data: a checkpoint that is committed, failed or read back -> [`Remembered`] -> the next one.

use std::sync::Arc;

use standfast_capture::{Regions, Tracker};
use standfast_checkpoint::StreamPlace;
use standfast_comm::{Agreed, Collective};
use standfast_format::{Kind, Rank, SegmentId, SegmentRef, StoreHeader};
use standfast_reduce::{PageHasher, Scanner};
use standfast_restart::{Inventory, Rebuild};
use standfast_store::Store;

use crate::choose::Costs;
use crate::compact::Compaction;
use crate::error::Phase;
use crate::ledger::Ledger;
use crate::place::Place;
use crate::settings::{Capture, TakeSettings};
use crate::tracks::Tracks;
use crate::writer::PageWriter;

/// Less than this is taken so fast that nothing needs to be ready for it.
pub(crate) const WARM_BYTES_MIN: u64 = 16 << 20;
/// So much memory for blocks is made ready where nobody waits for them.
const BEHIND_BYTES: u64 = 32 << 20;

/// What does not change while a job is open.
pub(crate) struct Env {
    pub(crate) settings: TakeSettings,
    pub(crate) rank: Rank,
    /// How many there are.
    pub(crate) ranks: usize,
    pub(crate) store: Arc<dyn Store>,
    pub(crate) header: StoreHeader,
    pub(crate) scanner: Scanner,
    pub(crate) hasher: PageHasher,
}

/// What capturing remembers between checkpoints.
pub struct Remembered {
    pub(crate) env: Env,
    pub(crate) ledger: Ledger,
    pub(crate) place: Place,
    pub(crate) tracks: Tracks,
    pub(crate) writer: PageWriter,
    /// What the reader of the next report should know.
    pub(crate) notes: Vec<String>,
    pub(crate) compaction: Compaction,
    /// What each way to capture has cost.
    pub(crate) costs: Costs,
    /// How long writers were held up for the last checkpoint.
    pub(crate) slowed_ns: u64,
}

impl Remembered {
    /// Before the first checkpoint. `tracker` tells which pages were written; without one every
    /// page is hashed.
    pub fn new(
        settings: TakeSettings,
        tracker: Option<Box<dyn Tracker>>,
        store: Arc<dyn Store>,
        header: &StoreHeader,
        team: &Collective,
    ) -> Self {
        let hasher = PageHasher::new(settings.hash, &header.key);
        let (page_bytes, threads) = (settings.pack.page_bytes, settings.pack.threads);
        Self {
            ledger: Ledger::new(&settings),
            place: Place::new(&settings, team.size()),
            tracks: Tracks::new(&settings, tracker),
            writer: PageWriter::default(),
            notes: Vec::new(),
            compaction: Compaction::default(),
            costs: Costs::default(),
            slowed_ns: 0,
            env: Env {
                rank: team.rank(),
                ranks: team.size(),
                store,
                header: header.clone(),
                scanner: Scanner::new(hasher.clone(), page_bytes, threads),
                hasher,
                settings,
            },
        }
    }

    /// Takes in what a committed checkpoint of all ranks needs, what pruning removed, and where
    /// the agent has put the streams of all ranks.
    pub fn committed(
        &mut self,
        segments: &[SegmentRef],
        removed: &[SegmentId],
        places: &[StreamPlace],
    ) {
        self.ledger.refer(segments);
        let agent = &mut self.writer.agent;
        agent.learn(places);
        let removed_streams = agent.with_streams(removed);
        agent.forget(removed);
        self.place.committed(&removed_streams);
        self.ledger.removed(&removed_streams);
    }

    /// Drops everything that refers to the pages of a failed checkpoint.
    pub(crate) fn failed(&mut self, segments: &[SegmentId], kind: Kind) {
        self.place.failed(segments);
        self.ledger.forget_attempt(segments);
        if kind == Kind::Bug {
            // Nobody knows what a panic has left behind.
            self.forget_all();
        }
    }

    /// Forgets all pages; the next checkpoint reads them back from the store, on all ranks.
    pub fn forget_all(&mut self) {
        self.ledger.reset(&self.env.settings);
        self.place = Place::new(&self.env.settings, self.env.ranks);
    }

    /// Makes ready what the first checkpoint of these regions needs.
    pub fn warm(&mut self, regions: &Regions) {
        if regions.host_bytes() < WARM_BYTES_MIN {
            return;
        }
        let behind = self.env.settings.capture != Capture::Stop;
        let bytes = if behind { BEHIND_BYTES } else { u64::MAX };
        self.writer.warm(&self.env, regions.bytes().min(bytes));
        self.tracks.warm(regions);
    }

    /// How long writers were held up for the last checkpoint, all of them together.
    pub fn slowed_ns(&self) -> u64 {
        self.slowed_ns
    }

    /// Remembers what a restart has put into memory.
    pub fn restored(&mut self, rebuild: Rebuild) {
        self.ledger.restored(&self.env.settings, rebuild);
    }

    /// Prepares for memory being overwritten as a whole.
    pub fn rest_tracking(&mut self) {
        self.tracks.rest();
        self.tracks.stop_warming();
    }

    /// How changed pages are found.
    pub fn tracker(&self) -> &'static str {
        self.tracks.name()
    }

    /// Stores pages again rather than referring to these segments.
    pub fn distrust(&mut self, segments: &Agreed<Vec<SegmentId>>) {
        let segments = self.writer.agent.with_streams(segments);
        self.place.forget(&segments);
        self.ledger.distrust(segments);
    }

    /// Memory held between checkpoints, in bytes, pool excluded.
    pub fn bytes(&self) -> usize {
        self.ledger.bytes() + self.place.bytes()
    }

    /// Makes ready for a checkpoint. Collective.
    pub(crate) fn prepare(
        &mut self,
        regions: &Regions,
        inventory: &Inventory,
        team: &Collective,
    ) -> Phase<()> {
        self.writer.prepare(&self.env);
        let bytes = regions.bytes();
        let prepared = self.ledger.prepare(&self.env, bytes, &mut self.place, (inventory, team));
        prepared.inspect_err(|_| self.forget_all())
    }

    /// Notes why the program is stopped although it should not be.
    pub(crate) fn note_stop(&mut self, why: &str) {
        self.notes.push(format!("captured with the program stopped: {why}"));
    }

    /// Notes why everything is copied although it should not be.
    pub(crate) fn note_staged(&mut self, why: &str) {
        self.notes.push(format!("captured by copying what changed: {why}"));
    }
}
