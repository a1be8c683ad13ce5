//! Runs a star: read, multiply, exchange, add, write, block by block, in the caller's thread.

use std::collections::BTreeMap;

use standfast_comm::{Comm, Tag};

use super::buffers::Buffers;
use super::read::Reader;
use super::sum::Sum;
use super::task::Link;
use super::write::Written;
use super::{Report, Sink, Source, Step, Task, steps, thread_time};
use crate::error::{Error, Result};
use crate::kernel::Combine;
use crate::shard::Shard;
use crate::topology::Piece;

const STAR: Tag = Tag(0x0601);

/// What a message says instead of a product when its source failed. A product is longer: its
/// checksum alone has 8 bytes.
pub(super) const FAILED: [u8; 1] = [1];
/// Bytes of a checksum at the end of a message.
pub(super) const SUM_BYTES: usize = 8;

/// How a star has ended for this rank.
pub(crate) struct Outcome {
    /// Pieces that were made here.
    pub(crate) made: Vec<Piece>,
    /// The shards among them.
    pub(crate) shards: Vec<Shard>,
    /// Own pieces that could not be used.
    pub(crate) sources_failed: Vec<(Piece, Error)>,
    /// Pieces that could not be made here.
    pub(crate) targets_failed: Vec<(Piece, Error)>,
    pub(crate) report: Report,
}

/// Runs all tasks that this rank has a part in; every other rank of them does the same. Fails only
/// when ranks cannot talk; all else is in the outcome.
pub(crate) fn run(
    comm: &dyn Comm,
    tasks: &[Task],
    source: &mut dyn Source,
    sink: &mut dyn Sink,
) -> Result<Outcome> {
    let rank = comm.rank();
    let steps = steps(tasks, rank);
    let blocks = tasks.iter().map(|task| task.blocks(rank)).max().unwrap_or(0);
    let (started, buffers) = (thread_time(), Buffers::default());
    let mut own: BTreeMap<(usize, usize), Sum<'_>> = BTreeMap::new();
    for (at, task) in tasks.iter().enumerate() {
        let targets = task.targets.iter().enumerate();
        for (target, of) in targets.filter(|(_, target)| target.part.rank == Some(rank)) {
            own.insert((at, target), Sum::begin(task, of, sink));
        }
    }
    let mut star = Star::new(comm, tasks, &steps, Reader::new(tasks, source, &buffers), own);
    let talked = star.run(&steps, blocks, sink);
    let Star { reader, sums, mut report, .. } = star;
    let mut written = Written::default();
    sums.into_values().for_each(|sum| sum.end(talked.is_ok(), sink, &mut written));
    let sources_failed = reader.end();
    talked?;
    report.buffer_bytes_max = buffers.most();
    report.cpu = thread_time() - started;
    let Written { made, shards, failed: targets_failed } = written;
    Ok(Outcome { made, shards, sources_failed, targets_failed, report })
}

/// One rank's part of a star.
struct Star<'a> {
    comm: &'a dyn Comm,
    tasks: &'a [Task],
    reader: Reader<'a>,
    /// What each of this rank's messages is multiplied by, by (task, target, source).
    factors: BTreeMap<(usize, usize, usize), Combine>,
    /// The pieces made here, by (task, target).
    sums: BTreeMap<(usize, usize), Sum<'a>>,
    message: Vec<u8>,
    arrived: Vec<u8>,
    report: Report,
}

impl<'a> Star<'a> {
    fn new(
        comm: &'a dyn Comm,
        tasks: &'a [Task],
        steps: &[Step],
        reader: Reader<'a>,
        sums: BTreeMap<(usize, usize), Sum<'a>>,
    ) -> Self {
        let factor = |link: Link| {
            let factor = tasks[link.task].matrix.cell(link.target, link.source);
            ((link.task, link.target, link.source), Combine::factor(factor))
        };
        let factors = steps.iter().filter_map(|step| step.send).map(factor).collect();
        let longest = tasks.iter().map(|task| task.block_bytes as usize).max().unwrap_or(0);
        let buffer = || reader.buffers().take(longest + SUM_BYTES);
        let (message, arrived) = (buffer(), buffer());
        let report = Report::default();
        Self { comm, tasks, reader, factors, sums, message, arrived, report }
    }

    fn run(&mut self, steps: &[Step], blocks: u64, sink: &mut dyn Sink) -> Result<()> {
        for block in 0..blocks {
            for step in steps {
                let exists = |link: &Link| self.tasks[link.task].product_bytes(*link, block) > 0;
                let (send, receive) = (step.send.filter(exists), step.receive.filter(exists));
                self.step(send, receive, block)?;
            }
            for sum in self.sums.values_mut() {
                sum.finish(block, sink, self.reader.buffers());
            }
        }
        Ok(())
    }

    fn step(&mut self, send: Option<Link>, receive: Option<Link>, block: u64) -> Result<()> {
        let to = send.map(|link| rank_of(self.tasks[link.task].targets[link.target].part.rank));
        let from = receive.map(|link| rank_of(self.tasks[link.task].sources[link.source].rank));
        if let Some(link) = send {
            self.multiply(link, block);
            self.report.messages += 1;
            self.report.bytes_sent += self.message.len() as u64;
        }
        let (message, arrived) = (&mut self.message, &mut self.arrived);
        let before = message.capacity() + arrived.capacity();
        match (to, from) {
            (Some(to), Some(from)) => self.comm.exchange_into(to, message, from, STAR, arrived)?,
            (Some(to), None) => self.comm.send_from(to, STAR, message)?,
            (None, Some(from)) => self.comm.receive_into(from, STAR, arrived)?,
            (None, None) => {}
        }
        let after = message.capacity() + arrived.capacity();
        self.reader.buffers().recount(before, after);
        if let Some(link) = receive {
            self.report.bytes_received += self.arrived.len() as u64;
            let sum =
                self.sums.get_mut(&(link.task, link.target)).expect("messages for own targets");
            sum.add(link, block, &mut self.arrived, self.reader.buffers());
        }
        Ok(())
    }

    /// The product and the block's checksum, or the news that there is none.
    fn multiply(&mut self, link: Link, block: u64) {
        let bytes = self.tasks[link.task].product_bytes(link, block);
        let (buffers, before) = (self.reader.buffers(), self.message.capacity());
        match self.reader.block(link, block) {
            Some((held, sum)) => {
                self.message.resize(bytes + SUM_BYTES, 0);
                buffers.recount(before, self.message.capacity());
                let (product, end) = self.message.split_at_mut(bytes);
                let factor = &self.factors[&(link.task, link.target, link.source)];
                factor.set(&mut [product], &[&held[..bytes]]);
                end.copy_from_slice(&sum.to_le_bytes());
            }
            None => {
                self.message.clear();
                self.message.extend_from_slice(&FAILED);
            }
        }
    }
}

fn rank_of(rank: Option<usize>) -> usize {
    rank.expect("both ends of a message are ranks")
}
