//! Who stores a page: each rank its own, or one of those that hold it.
//!
//! Data: settings and ranks -> [`Place`], which a checkpoint of several ranks asks about its
//! candidates ([`together`](super::together)).

use standfast_comm::{Collective, Comm, Concurrency};
use standfast_format::{SegmentId, SegmentIndex};
use standfast_share::{Exact, HomeIndex, Strategy, Threshold, TopK};

use super::owners::Owners;
use crate::config::{self, Config, Mode};
use crate::error::Result;

/// Least room for one rank's part of the index over all ranks and checkpoints.
const INDEX_BYTES_MIN: usize = 8 << 20;
/// The index may take one byte of so many protected ones: at 4 KiB pages there is room for a
/// quarter more pages than are protected.
const INDEX_SHARE: u64 = 80;
/// What storing a byte is taken to cost where nothing was measured yet: a disk of 1 GB/s.
const BYTE_S: f64 = 1e-9;
/// A reduction may take this share of the time of storing everything.
const REDUCTION_SHARE: f64 = 0.1;
/// Bounds of the adaptive threshold, in pages.
const THRESHOLD_PAGES: (u32, u32) = (1 << 10, 1 << 20);

/// Who stores a page.
pub(super) enum Place {
    /// Every rank what is new to it.
    Alone,
    /// The ranks agree on it.
    Together(Box<dyn Placement>),
}

/// A way to agree on who stores what, and what it remembers between checkpoints.
pub(super) trait Placement: Send {
    fn strategy(&mut self) -> &mut dyn Strategy;

    /// Who stores which pages, where that is written down.
    fn owners(&mut self) -> Option<&mut Owners> {
        None
    }

    /// Fits what is remembered to so many protected bytes.
    fn fit(&mut self, _protected_bytes: u64) {}

    /// Memory held between checkpoints, in bytes.
    fn bytes(&self) -> usize {
        0
    }

    /// Enters segments of earlier checkpoints, oldest first. Collective.
    fn load(&mut self, _comm: &dyn Comm, _indexes: &[SegmentIndex]) -> Result<()> {
        Ok(())
    }
}

impl Placement for Exact {
    fn strategy(&mut self) -> &mut dyn Strategy {
        self
    }

    fn fit(&mut self, protected_bytes: u64) {
        let share = usize::try_from(protected_bytes / INDEX_SHARE).unwrap_or(usize::MAX);
        self.set_index_bytes_max(share.max(INDEX_BYTES_MIN));
    }

    fn bytes(&self) -> usize {
        self.index().map_or(0, HomeIndex::bytes)
    }

    fn load(&mut self, comm: &dyn Comm, indexes: &[SegmentIndex]) -> Result<()> {
        let segments: Vec<(SegmentId, &[u8])> =
            indexes.iter().map(|index| (index.id, index.hashes.as_slice())).collect();
        Ok(Exact::load(self, comm, &segments)?)
    }
}

/// The paper's way: with the owners of pages, which are written down.
struct WrittenDown {
    top_k: TopK,
    owners: Owners,
}

impl Placement for WrittenDown {
    fn strategy(&mut self) -> &mut dyn Strategy {
        &mut self.top_k
    }

    fn owners(&mut self) -> Option<&mut Owners> {
        Some(&mut self.owners)
    }
}

impl Place {
    pub(super) fn new(config: &Config, team: &Collective) -> Self {
        if team.size() == 1 || !config.mode.looks_around() {
            return Place::Alone;
        }
        Place::Together(match config.strategy {
            config::Strategy::Exact if config.mode == Mode::All => {
                Box::new(Exact::with_index(config.hash, INDEX_BYTES_MIN))
            }
            config::Strategy::Exact => Box::new(Exact::new(config.hash)),
            config::Strategy::TopK => {
                let top_k = TopK::new(config.hash, threshold(config));
                Box::new(WrittenDown { top_k, owners: Owners::default() })
            }
        })
    }

    /// Why pages can only be captured while the program is stopped, if that is so.
    pub(super) fn needs_stop(&self, team: &Collective) -> Option<&'static str> {
        let beside = team.raw().concurrency() == Concurrency::AnyThread;
        (matches!(self, Place::Together(_)) && !beside).then_some(
            "the ranks share pages, and only the program's own thread may talk to other ranks",
        )
    }

    /// How the ranks agree, if they do.
    pub(super) fn placement(&mut self) -> Option<&mut dyn Placement> {
        match self {
            Place::Alone => None,
            Place::Together(placement) => Some(&mut **placement),
        }
    }

    /// Memory held between checkpoints, in bytes.
    pub(super) fn bytes(&self) -> usize {
        match self {
            Place::Alone => 0,
            Place::Together(placement) => placement.bytes(),
        }
    }

    pub(super) fn committed(&mut self, removed: &[SegmentId]) {
        if let Some(placement) = self.placement() {
            placement.strategy().commit();
        }
        self.forget(removed);
    }

    /// An attempt with these segments has failed.
    pub(super) fn failed(&mut self, segments: &[SegmentId]) {
        let Some(placement) = self.placement() else { return };
        placement.strategy().abort();
        if let Some(owners) = placement.owners() {
            owners.forget(segments);
        }
    }

    /// Refers to these segments no more. Every rank names the same ones.
    pub(super) fn forget(&mut self, segments: &[SegmentId]) {
        let Some(placement) = self.placement() else { return };
        placement.strategy().forget(segments);
        if let Some(owners) = placement.owners() {
            owners.forget(segments);
        }
    }
}

fn threshold(config: &Config) -> Threshold {
    let (least, most) = THRESHOLD_PAGES;
    match config.threshold {
        config::Threshold::Pages(pages) => Threshold::fixed(pages),
        config::Threshold::Auto => {
            Threshold::adaptive(least, most, config.page.0 as f64 * BYTE_S, REDUCTION_SHARE)
        }
    }
}
