//! Runs a star: read, multiply, exchange, add, write, block by block, in the caller's thread.

use std::collections::BTreeMap;

use standfast_comm::{Comm, Tag};

use super::arithmetic::Arithmetic;
use super::buffers::Buffers;
use super::read::Reader;
use super::sum::Sum;
use super::task::Link;
use super::window::{Window, windows};
use super::write::Written;
use super::{Means, Report, Sink, Task, steps, thread_time};
use crate::error::{Error, Result};
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
pub(crate) fn run(comm: &dyn Comm, tasks: &[Task], means: &mut Means<'_>) -> Result<Outcome> {
    let Means { source, sink, arithmetic } = means;
    let (source, sink, rank) = (&mut **source, &mut **sink, comm.rank());
    let blocks = tasks.iter().map(|task| task.blocks(rank)).max().unwrap_or(0);
    let (started, buffers) = (thread_time(), Buffers::default());
    let mut own: BTreeMap<(usize, usize), Sum<'_>> = BTreeMap::new();
    for (at, task) in tasks.iter().enumerate() {
        let targets = task.targets.iter().enumerate();
        for (target, of) in targets.filter(|(_, target)| target.part.rank == Some(rank)) {
            own.insert((at, target), Sum::begin(task, of, sink));
        }
    }
    let windows = windows(tasks, &steps(tasks, rank));
    let reader = Reader::new(tasks, source, &buffers);
    let mut star = Star::new(comm, tasks, &windows, (reader, &mut **arithmetic), own);
    let talked = star.run(&windows, blocks, sink);
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
    arithmetic: &'a mut dyn Arithmetic,
    /// The pieces made here, by (task, target).
    sums: BTreeMap<(usize, usize), Sum<'a>>,
    /// What leaves and what arrives in each step of a window.
    messages: Vec<Vec<u8>>,
    arrived: Vec<Vec<u8>>,
    report: Report,
}

impl<'a> Star<'a> {
    fn new(
        comm: &'a dyn Comm,
        tasks: &'a [Task],
        windows: &[Window],
        (reader, arithmetic): (Reader<'a>, &'a mut dyn Arithmetic),
        sums: BTreeMap<(usize, usize), Sum<'a>>,
    ) -> Self {
        let steps = windows.iter().map(|window| window.steps.len()).max().unwrap_or(0);
        let (messages, arrived) = (vec![Vec::new(); steps], vec![Vec::new(); steps]);
        let report = Report::default();
        Self { comm, tasks, reader, arithmetic, sums, messages, arrived, report }
    }

    fn run(&mut self, windows: &[Window], blocks: u64, sink: &mut dyn Sink) -> Result<()> {
        for block in 0..blocks {
            for window in windows {
                self.counted(|star| {
                    star.multiply(window, block);
                    Ok(())
                })?;
                self.counted(|star| star.exchange(window, block))?;
                self.add(window, block);
            }
            for sum in self.sums.values_mut() {
                sum.finish(block, sink, self.reader.buffers());
            }
        }
        Ok(())
    }

    /// Does something to the buffers of messages, and counts what they have become.
    fn counted(&mut self, work: impl FnOnce(&mut Self) -> Result<()>) -> Result<()> {
        let room = |star: &Self| -> usize {
            star.messages.iter().chain(&star.arrived).map(Vec::capacity).sum()
        };
        let before = room(self);
        let done = work(self);
        self.reader.buffers().recount(before, room(self));
        done
    }

    /// Makes the products of a window, all those of one block in one pass over it.
    fn multiply(&mut self, window: &Window, block: u64) {
        for column in &window.columns {
            let bytes: Vec<usize> = column
                .links
                .iter()
                .map(|(_, link)| self.tasks[link.task].product_bytes(*link, block))
                .collect();
            if bytes.iter().any(|bytes| *bytes > 0) {
                let read = self.reader.block(column.links[0].1, block);
                column.multiply(&mut *self.arithmetic, read, &bytes, &mut self.messages);
            }
        }
    }

    fn exchange(&mut self, window: &Window, block: u64) -> Result<()> {
        let tasks = self.tasks;
        let exists = |link: &Link| tasks[link.task].product_bytes(*link, block) > 0;
        for (at, step) in window.steps.iter().enumerate() {
            let to = step.send.filter(exists);
            let to = to.map(|link| rank_of(tasks[link.task].targets[link.target].part.rank));
            let from = step.receive.filter(exists);
            let from = from.map(|link| rank_of(tasks[link.task].sources[link.source].rank));
            let (message, arrived) = (&mut self.messages[at], &mut self.arrived[at]);
            if to.is_some() {
                self.report.messages += 1;
                self.report.bytes_sent += message.len() as u64;
            }
            match (to, from) {
                (Some(to), Some(from)) => {
                    self.comm.exchange_into(to, message, from, STAR, arrived)?
                }
                (Some(to), None) => self.comm.send_from(to, STAR, message)?,
                (None, Some(from)) => self.comm.receive_into(from, STAR, arrived)?,
                (None, None) => {}
            }
            if from.is_some() {
                self.report.bytes_received += arrived.len() as u64;
            }
        }
        Ok(())
    }

    /// Adds what has arrived, all products for one piece in one pass over its block.
    fn add(&mut self, window: &Window, block: u64) {
        for (target, links) in &window.rows {
            let sum = self.sums.get_mut(target).expect("messages for own targets");
            sum.add(links, block, &mut self.arrived, self.reader.buffers());
        }
    }
}

fn rank_of(rank: Option<usize>) -> usize {
    rank.expect("both ends of a message are ranks")
}
