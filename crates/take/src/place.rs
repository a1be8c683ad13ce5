//! Who stores a page: each rank its own, or one of those that hold it.
//!
//! Data: settings and ranks -> [`Place`], which a checkpoint of several ranks asks about its
//! candidates ([`together`](super::together)).

use standfast_comm::{Collective, Comm, Concurrency, Failure};
use standfast_format::{Kind, SegmentId, SegmentIndex};
use standfast_share::{Exact, HomeIndex, Strategy, TopK};

use crate::error::{Error, Result};
use crate::owners::Owners;
use crate::settings::{Sharing, TakeSettings};

/// Least room for one rank's part of the index over all ranks and checkpoints.
const INDEX_BYTES_MIN: usize = 8 << 20;
/// The index may take one byte of so many protected ones: at 4 KiB pages there is room for a
/// quarter more pages than are protected.
const INDEX_SHARE: u64 = 80;

/// Who stores a page.
pub(crate) enum Place {
    /// Every rank what is new to it.
    Alone,
    /// The ranks agree on it.
    Together(Box<dyn Placement>),
}

/// A way to agree on who stores what, and what it remembers between checkpoints.
pub(crate) trait Placement: Send {
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
    fn load(&mut self, _: &dyn Comm, _: &[SegmentIndex]) -> standfast_comm::Result<()> {
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

    fn load(&mut self, comm: &dyn Comm, indexes: &[SegmentIndex]) -> standfast_comm::Result<()> {
        let segments: Vec<(SegmentId, &[u8])> =
            indexes.iter().map(|index| (index.id, index.hashes.as_slice())).collect();
        Exact::load(self, comm, &segments)
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
    pub(crate) fn new(settings: &TakeSettings, ranks: usize) -> Self {
        if ranks == 1 || !settings.compare.around {
            return Place::Alone;
        }
        Place::Together(match &settings.sharing {
            Sharing::Exact if settings.compare.needs_catalog() => {
                Box::new(Exact::with_index(settings.hash, INDEX_BYTES_MIN))
            }
            Sharing::Exact => Box::new(Exact::new(settings.hash)),
            Sharing::TopK(threshold) => {
                let top_k = TopK::new(settings.hash, threshold.clone());
                Box::new(WrittenDown { top_k, owners: Owners::default() })
            }
        })
    }

    /// Whether pages are taken in within the program's calls: the ranks share them, and only the
    /// program's own thread may talk to other ranks.
    pub(crate) fn needs_calls(&self, team: &Collective) -> bool {
        let beside = team.raw().concurrency() == Concurrency::AnyThread;
        self.is_shared() && !beside
    }

    /// Whether the ranks agree on who stores a page.
    pub(crate) fn is_shared(&self) -> bool {
        matches!(self, Place::Together(_))
    }

    /// How the ranks agree, if they do.
    pub(crate) fn placement(&mut self) -> Option<&mut dyn Placement> {
        match self {
            Place::Alone => None,
            Place::Together(placement) => Some(&mut **placement),
        }
    }

    /// Memory held between checkpoints, in bytes.
    pub(crate) fn bytes(&self) -> usize {
        match self {
            Place::Alone => 0,
            Place::Together(placement) => placement.bytes(),
        }
    }

    pub(crate) fn committed(&mut self, removed: &[SegmentId]) {
        if let Some(placement) = self.placement() {
            placement.strategy().commit();
        }
        self.forget(removed);
    }

    /// An attempt with these segments has failed.
    pub(crate) fn failed(&mut self, segments: &[SegmentId]) {
        let Some(placement) = self.placement() else { return };
        placement.strategy().abort();
        if let Some(owners) = placement.owners() {
            owners.forget(segments);
        }
    }

    /// Refers to these segments no more. Every rank names the same ones.
    pub(crate) fn forget(&mut self, segments: &[SegmentId]) {
        let Some(placement) = self.placement() else { return };
        placement.strategy().forget(segments);
        if let Some(owners) = placement.owners() {
            owners.forget(segments);
        }
    }
}

/// A conversation of all ranks about pages. A panic in it is a failure of which all hear.
pub(crate) fn converse<T>(
    comm: &dyn Comm,
    talk: impl FnOnce(&dyn Comm) -> standfast_comm::Result<T>,
) -> Result<T> {
    standfast_comm::converse(comm, talk).map_err(|error| match error {
        standfast_comm::Error::Panicked { rank } if rank == comm.rank() => {
            Error::Broken { what: "sharing pages of" }
        }
        error @ standfast_comm::Error::Panicked { rank } => {
            Error::OtherRank(Failure::new(rank as u32, Kind::Bug, &error.to_string()))
        }
        error => error.into(),
    })
}
