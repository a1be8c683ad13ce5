//! The collector: adds what arrives and hands whole, checked blocks to the sink.

use std::sync::mpsc::Receiver;
use std::time::Duration;

use super::produce::{FAILED, SUM_BYTES};
use super::task::Link;
use super::{Gauge, Sink, Target, Task, thread_time};
use crate::error::Error;
use crate::kernel::add;
use crate::shard::{Shard, Table, checksum};
use crate::topology::Piece;

/// What the collector is told, in order.
pub(super) enum Arrival {
    /// A message, as it came.
    Message(Link, u64, Vec<u8>),
    /// No further message belongs to this block.
    Block(u64),
}

/// What the collector leaves.
#[derive(Default)]
pub(super) struct Collected {
    /// Members that were rebuilt and shards that were made.
    pub(super) made: Vec<Piece>,
    pub(super) shards: Vec<Shard>,
    pub(super) failed: Vec<(Piece, Error)>,
    pub(super) cpu: Duration,
}

/// One piece in the making.
struct Making<'a> {
    place: (usize, usize),
    task: &'a Task,
    target: &'a Target,
    /// The block so far; empty before the first product.
    sum: Vec<u8>,
    /// Checksums of the members' current blocks.
    members: Vec<u64>,
    table: Table,
    failed: Option<Error>,
}

/// Collects until no more is told; `complete` in the end says whether that was all.
pub(super) fn collect(
    tasks: &[Task],
    rank: usize,
    sink: &mut dyn Sink,
    gauge: &Gauge,
    arrivals: &Receiver<Arrival>,
    blocks: u64,
) -> Collected {
    let started = thread_time();
    let mut making: Vec<Making<'_>> = own_targets(tasks, rank).collect();
    making.iter_mut().for_each(|making| making.begin(sink));
    let mut ended = 0;
    for arrival in arrivals {
        match arrival {
            Arrival::Message(link, block, message) => {
                let place = (link.task, link.target);
                let at = making.binary_search_by_key(&place, |making| making.place);
                making[at.expect("messages for own targets")].take(link, block, message, gauge);
            }
            Arrival::Block(block) => {
                making.iter_mut().for_each(|making| making.finish(block, sink, gauge));
                ended = block + 1;
            }
        }
    }
    let mut collected = Collected::default();
    for making in making {
        making.end(ended == blocks, sink, gauge, &mut collected);
    }
    collected.cpu = thread_time() - started;
    collected
}

fn own_targets(tasks: &[Task], rank: usize) -> impl Iterator<Item = Making<'_>> {
    let all = tasks.iter().enumerate().flat_map(|(at, task)| {
        task.targets.iter().enumerate().map(move |(target, of)| ((at, target), task, of))
    });
    let own = all.filter(move |(_, _, target)| target.part.rank == Some(rank));
    own.map(|(place, task, target)| Making {
        place,
        task,
        target,
        sum: Vec::new(),
        members: vec![0; task.k],
        table: Table::new(task.k),
        failed: None,
    })
}

impl Making<'_> {
    fn piece(&self) -> Piece {
        self.target.part.piece
    }

    fn begin(&mut self, sink: &mut dyn Sink) {
        let head = self.target.header.as_ref().map(|header| header.encode()).unwrap_or_default();
        let table = self.target.header.as_ref().map_or(0, |header| header.table_bytes());
        let bytes = head.len() as u64 + self.target.part.bytes + table;
        let begun = sink.begin(self.piece(), bytes, &head);
        self.failed = begun.err().map(|why| Error::Sink { piece: self.piece(), why });
    }

    /// Adds a product. A message that is not one fails the piece, never the star.
    fn take(&mut self, link: Link, block: u64, mut message: Vec<u8>, gauge: &Gauge) {
        let bytes = self.task.product_bytes(link, block);
        let source = &self.task.sources[link.source];
        let from = source.rank.expect("a message has a sender");
        if message.len() != bytes + SUM_BYTES && self.failed.is_none() {
            self.failed = Some(match message == FAILED {
                true => Error::Peer { piece: self.piece(), rank: from },
                false => Error::Message { from, why: "a product of another length" },
            });
        }
        if self.failed.is_some() {
            gauge.give(message.capacity());
            return;
        }
        let (product, sum) = message.split_at(bytes);
        if let Some(member) = self.members.get_mut(source.piece.index as usize) {
            *member = u64::from_le_bytes(sum.try_into().expect("8 bytes"));
        }
        if self.sum.is_empty() {
            message.truncate(bytes);
            self.sum = message;
            return;
        }
        let both = bytes.min(self.sum.len());
        add(&mut self.sum[..both], &product[..both]);
        let before = self.sum.capacity();
        self.sum.extend_from_slice(&product[both..]);
        gauge.take(self.sum.capacity() - before);
        gauge.give(message.capacity());
    }

    /// The block is complete: check it, write it.
    fn finish(&mut self, block: u64, sink: &mut dyn Sink, gauge: &Gauge) {
        let bytes = self.task.block_of(self.target.part.bytes, block);
        let mut sum = std::mem::take(&mut self.sum);
        let held = sum.capacity();
        if bytes > 0 && self.failed.is_none() {
            sum.resize(bytes, 0);
            self.failed = self.write(block, &sum, sink).err();
        }
        gauge.give(held);
    }

    fn write(&mut self, block: u64, bytes: &[u8], sink: &mut dyn Sink) -> Result<(), Error> {
        let (piece, part) = (self.piece(), &self.target.part);
        let sum = checksum(block, bytes);
        if self.target.header.is_some() {
            // A member that is lost sends nothing; its checksum is known from another shard.
            if let Some(known) = &part.sums {
                let members = self.members.iter_mut().enumerate();
                members.for_each(|(at, sum)| *sum = known.member(block as usize, at));
            }
            self.table.push(sum, &self.members);
            self.members.fill(0);
        } else if self.task.expected(part, block).is_some_and(|expected| expected != sum) {
            return Err(Error::Mismatch { piece });
        }
        sink.append(piece, bytes).map_err(|why| Error::Sink { piece, why })
    }

    fn end(mut self, complete: bool, sink: &mut dyn Sink, gauge: &Gauge, to: &mut Collected) {
        let piece = self.piece();
        gauge.give(self.sum.capacity());
        let shard = self.target.header.clone().map(|header| {
            let body_at = header.encode().len() as u64;
            Shard { header, table: self.table, body_at }
        });
        if complete && self.failed.is_none() {
            let tail = shard.as_ref().map(|shard| shard.table.encode()).unwrap_or_default();
            let ended = sink.end(piece, &tail);
            self.failed = ended.err().map(|why| Error::Sink { piece, why });
        }
        match self.failed {
            None if complete => {
                to.made.push(piece);
                to.shards.extend(shard);
            }
            failed => {
                sink.abandon(piece);
                to.failed.extend(failed.map(|error| (piece, error)));
            }
        }
    }
}
