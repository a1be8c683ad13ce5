//! What goes in, what comes out, and in which order its messages travel.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::matrix::Matrix;
use crate::shard::{Header, Table};
use crate::topology::Piece;

/// A piece and who holds or makes it.
#[derive(Clone, Debug)]
pub(crate) struct Part {
    pub(crate) piece: Piece,
    /// `None` for a member that no rank is.
    pub(crate) rank: Option<usize>,
    /// Bytes of the piece. A target that only others make may be unknown: then the largest number.
    pub(crate) bytes: u64,
    /// Where they start in the file.
    pub(crate) at: u64,
    /// Checksums to hold it against: a source's before it is used, a rebuilt member's after.
    pub(crate) sums: Option<Arc<Table>>,
}

/// A piece that comes out.
#[derive(Clone, Debug)]
pub(crate) struct Target {
    pub(crate) part: Part,
    /// Of a shard; only its own rank needs it.
    pub(crate) header: Option<Header>,
}

/// The targets are the matrix times the sources, all of one group.
#[derive(Clone, Debug)]
pub(crate) struct Task {
    /// Members of the group: pieces below are members, from here on shards.
    pub(crate) k: usize,
    pub(crate) block_bytes: u32,
    pub(crate) sources: Vec<Part>,
    pub(crate) targets: Vec<Target>,
    pub(crate) matrix: Matrix,
    /// Slot of every message: target by target, all sources of each.
    pub(crate) slots: Vec<u32>,
}

/// One message of a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Link {
    pub(crate) task: usize,
    pub(crate) source: usize,
    pub(crate) target: usize,
}

/// What a rank does in one slot of every block.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Step {
    pub(crate) send: Option<Link>,
    pub(crate) receive: Option<Link>,
}

impl Task {
    /// Bytes of a piece of `bytes` in a block.
    pub(crate) fn block_of(&self, bytes: u64, block: u64) -> usize {
        let start = block.saturating_mul(u64::from(self.block_bytes));
        bytes.saturating_sub(start).min(u64::from(self.block_bytes)) as usize
    }

    /// Bytes of a message's product; none where it would be all zeros.
    pub(crate) fn product_bytes(&self, link: Link, block: u64) -> usize {
        if self.matrix.cell(link.target, link.source) == 0 {
            return 0;
        }
        let (source, target) = (&self.sources[link.source], &self.targets[link.target].part);
        self.block_of(source.bytes.min(target.bytes), block)
    }

    /// Blocks that concern a rank: of its messages, and of what it makes.
    pub(crate) fn blocks(&self, rank: usize) -> u64 {
        let held = self.sources.iter().filter(|part| part.rank == Some(rank));
        let made = self.targets.iter().map(|target| &target.part);
        let own = held.chain(made.filter(|part| part.rank == Some(rank)));
        own.map(|part| part.bytes.div_ceil(u64::from(self.block_bytes))).max().unwrap_or(0)
    }

    /// Checksum that a block of a piece must have, where it is known.
    pub(crate) fn expected(&self, part: &Part, block: u64) -> Option<u64> {
        let (table, index) = (part.sums.as_ref()?, part.piece.index as usize);
        let block = block as usize;
        Some(if index < self.k { table.member(block, index) } else { table.shard(block) })
    }
}

/// The steps of a rank in one block, in the order of their slots.
///
/// # Panics
/// If two messages of one slot leave, or reach, the same rank.
pub(crate) fn steps(tasks: &[Task], rank: usize) -> Vec<Step> {
    let mut steps: BTreeMap<u32, Step> = BTreeMap::new();
    for (task, of) in tasks.iter().enumerate() {
        for (target, made) in of.targets.iter().enumerate() {
            for (source, held) in of.sources.iter().enumerate() {
                let (Some(from), Some(to)) = (held.rank, made.part.rank) else { continue };
                if from != rank && to != rank {
                    continue;
                }
                let link = Link { task, source, target };
                let step = steps.entry(of.slots[target * of.sources.len() + source]).or_default();
                if from == rank {
                    assert_eq!(step.send.replace(link), None, "one message leaves in a slot");
                }
                if to == rank {
                    assert_eq!(step.receive.replace(link), None, "one message arrives in a slot");
                }
            }
        }
    }
    steps.into_values().collect()
}
