//! A checkpoint in the making: what its pages became, before anything of it is durable.

use std::collections::HashSet;
use std::time::Instant;

use standfast_capture::Regions;
use standfast_format::{Reference, RegionImage, SegmentId, SegmentRef, Stats};
use standfast_reduce::Positions;

use super::capture::Capturer;
use super::describe::{Table, Writer, count, describe};
use super::share::Reserved;
use super::sink::Pending;
use crate::error::Error;

pub(crate) use standfast_checkpoint::Order;

/// Pages that were taken.
pub(super) struct Taken {
    pub(super) pending: standfast_write::Pending,
    /// New segments of this rank.
    pub(super) own: Vec<SegmentId>,
    /// New segments of other ranks that this one refers to.
    pub(super) foreign: Vec<SegmentId>,
    /// New segments of this rank whose pages are still on a device.
    pub(super) reserved: Vec<Reserved>,
    pub(super) scan_ns: u64,
    pub(super) agree_ns: u64,
    pub(super) copy_ns: u64,
}

impl Taken {
    pub(super) fn of(pending: standfast_write::Pending, own: Vec<SegmentId>) -> Self {
        let (foreign, reserved) = (Vec::new(), Vec::new());
        Self { pending, own, foreign, reserved, scan_ns: 0, agree_ns: 0, copy_ns: 0 }
    }

    /// Takes in another part of the same checkpoint.
    pub(super) fn join(&mut self, other: Taken) {
        self.pending.join(other.pending);
        self.own.extend(other.own);
    }
}

/// Why pages could not be taken, and which segments were begun.
pub(super) struct GivenUp {
    pub(super) error: Error,
    pub(super) begun: Vec<SegmentId>,
}

impl GivenUp {
    /// Before any segment was begun.
    pub(super) fn early(error: impl Into<Error>) -> Self {
        Self { error: error.into(), begun: Vec::new() }
    }
}

/// A checkpoint whose pages are captured and whose files are not yet durable.
pub(crate) struct Draft {
    pub(crate) order: Order,
    pub(crate) started: Instant,
    pub(crate) pending: Pending,
    /// New segments of other ranks that this one refers to.
    pub(crate) foreign: Vec<SegmentId>,
    pub(crate) regions: Vec<RegionImage>,
    /// The image's segment table; the references of new segments are known once sealed.
    pub(crate) table: Vec<(SegmentId, Option<SegmentRef>)>,
    /// The pages that other ranks store, where the strategy has them written down.
    pub(crate) references: Option<Vec<Reference>>,
    pub(crate) stats: Stats,
    /// What its reader should know.
    pub(crate) notes: Vec<String>,
}

impl Capturer {
    /// Describes what was taken, and remembers it.
    pub(super) fn draft(
        &mut self,
        regions: &Regions,
        order: Order,
        started: Instant,
        positions: Vec<Positions>,
        taken: Taken,
    ) -> Draft {
        let mut table = Table::default();
        let images = describe(regions, &positions, &mut table);
        let stats = self.count(regions, &positions, &taken);
        let references = self.refer_by_hash(&positions, &taken.own);
        self.put_positions(regions, positions);
        let table = table.order.into_iter().map(|number| self.table_entry(number)).collect();
        let Taken { pending, foreign, .. } = taken;
        self.note_gpu();
        Draft {
            order,
            started,
            pending: self.pending(order, pending),
            foreign,
            regions: images,
            table,
            references,
            stats,
            notes: std::mem::take(&mut self.notes),
        }
    }

    fn count(&self, regions: &Regions, positions: &[Positions], taken: &Taken) -> Stats {
        let numbers = |ids: &[SegmentId]| -> HashSet<u32> {
            ids.iter().filter_map(|id| self.catalog.number_of(*id)).collect()
        };
        let (own, foreign) = (numbers(&taken.own), numbers(&taken.foreign));
        let stats = count(regions, positions, taken.pending.pages(), |number| {
            match (own.contains(&number), foreign.contains(&number)) {
                (true, _) => Writer::Own,
                (_, true) => Writer::Other,
                _ => Writer::Earlier,
            }
        });
        let Taken { scan_ns, agree_ns, copy_ns, .. } = *taken;
        Stats { scan_ns, agree_ns, copy_ns, ..stats }
    }
}

pub(crate) fn elapsed_ns(since: Instant) -> u64 {
    u64::try_from(since.elapsed().as_nanos()).unwrap_or(u64::MAX)
}
