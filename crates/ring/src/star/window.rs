//! Steps that are worked through together: their products are made in one pass over a block and
//! added in one pass over a sum.
//!
//! Why: a product by itself reads and writes a block, and a sum by itself reads two and writes one.
//! Together, `n` products read one block and write `n`, and `n` sums read `n + 1` and write one: half
//! the way through the caches, and half as often does a rank wait for another.

use std::collections::BTreeMap;

use super::arithmetic::{Arithmetic, Block, FACTORS_MAX, Factors};
use super::run::{FAILED, SUM_BYTES};
use super::task::Link;
use super::{Step, Task};

/// Some steps of a rank.
pub(super) struct Window {
    pub(super) steps: Vec<Step>,
    pub(super) columns: Vec<Column>,
    /// What arrives for each piece made here, by (task, target), with the step it comes in.
    pub(super) rows: BTreeMap<(usize, usize), Vec<(usize, Link)>>,
}

/// What one held piece gives in a window.
pub(super) struct Column {
    /// Its messages, with the step each goes in.
    pub(super) links: Vec<(usize, Link)>,
    factors: Factors,
}

/// A rank's steps, cut into windows.
pub(super) fn windows(tasks: &[Task], steps: &[Step]) -> Vec<Window> {
    steps.chunks(FACTORS_MAX).map(|steps| Window::new(tasks, steps)).collect()
}

impl Window {
    fn new(tasks: &[Task], steps: &[Step]) -> Self {
        let mut held: BTreeMap<(usize, usize), Vec<(usize, Link)>> = BTreeMap::new();
        let mut rows: BTreeMap<(usize, usize), Vec<(usize, Link)>> = BTreeMap::new();
        for (at, step) in steps.iter().enumerate() {
            if let Some(link) = step.send {
                held.entry((link.task, link.source)).or_default().push((at, link));
            }
            if let Some(link) = step.receive {
                rows.entry((link.task, link.target)).or_default().push((at, link));
            }
        }
        let columns = held.into_values().map(|links| Column::new(tasks, links)).collect();
        Self { steps: steps.to_vec(), columns, rows }
    }
}

impl Column {
    fn new(tasks: &[Task], links: Vec<(usize, Link)>) -> Self {
        let factor =
            |(_, link): &(usize, Link)| tasks[link.task].matrix.cell(link.target, link.source);
        let factors = Factors::new(links.iter().map(factor).collect());
        Self { links, factors }
    }

    /// Fills the messages: `bytes` of products of the block and its checksum, or the news that there
    /// is none.
    pub(super) fn multiply(
        &self,
        arithmetic: &mut dyn Arithmetic,
        read: Option<(Block<'_>, u64)>,
        bytes: &[usize],
        messages: &mut [Vec<u8>],
    ) {
        let Some((block, sum)) = read else {
            for (at, _) in &self.links {
                messages[*at].clear();
                messages[*at].extend_from_slice(&FAILED);
            }
            return;
        };
        for ((at, _), bytes) in self.links.iter().zip(bytes) {
            messages[*at].resize(bytes + SUM_BYTES, 0);
            messages[*at][*bytes..].copy_from_slice(&sum.to_le_bytes());
        }
        // In the order of their steps, as the links are.
        let steps = |at: usize| self.links.iter().any(|(step, _)| *step == at);
        let own = messages.iter_mut().enumerate().filter(|(at, _)| steps(*at));
        let mut products: Vec<&mut [u8]> =
            own.zip(bytes).map(|((_, message), bytes)| &mut message[..*bytes]).collect();
        arithmetic.multiply(&self.factors, block, &mut products);
    }
}
