//! The producer: reads this rank's pieces block by block and makes the products to send.

use std::collections::BTreeMap;
use std::sync::mpsc::{Receiver, SyncSender};
use std::time::Duration;

use super::task::Link;
use super::{Gauge, Source, Step, Task, thread_time};
use crate::error::Error;
use crate::kernel::Combine;
use crate::shard::checksum;
use crate::topology::Piece;

/// What a message says instead of a product when its source failed. A product is longer: its
/// checksum alone has 8 bytes.
pub(super) const FAILED: [u8; 1] = [1];
/// Bytes of a checksum at the end of a message.
pub(super) const SUM_BYTES: usize = 8;

/// A held piece: its current block, or why it cannot be used.
struct Held {
    bytes: Vec<u8>,
    /// The block that is loaded, and its checksum.
    loaded: Option<(u64, u64)>,
    failed: Option<Error>,
}

pub(super) struct Producer<'a> {
    pub(super) tasks: &'a [Task],
    pub(super) steps: &'a [Step],
    pub(super) blocks: u64,
    pub(super) source: &'a mut dyn Source,
    pub(super) gauge: &'a Gauge,
}

/// What the producer leaves: pieces that could not be used, and why.
#[derive(Default)]
pub(super) struct Produced {
    pub(super) failed: Vec<(Piece, Error)>,
    pub(super) cpu: Duration,
}

impl Producer<'_> {
    /// Makes all products in the order in which they are sent; ends early when nobody takes them.
    pub(super) fn run(self, ready: SyncSender<Vec<u8>>, used: Receiver<Vec<u8>>) -> Produced {
        let started = thread_time();
        let Self { tasks, steps, blocks, source, gauge } = self;
        let sends: Vec<(Link, Combine)> = steps
            .iter()
            .filter_map(|step| step.send)
            .map(|link| {
                (link, Combine::factor(tasks[link.task].matrix.cell(link.target, link.source)))
            })
            .collect();
        let mut held: BTreeMap<(usize, usize), Held> = BTreeMap::new();
        'all: for block in 0..blocks {
            for (link, factor) in &sends {
                let task = &tasks[link.task];
                let bytes = task.product_bytes(*link, block);
                if bytes == 0 {
                    continue;
                }
                let piece =
                    held.entry((link.task, link.source)).or_insert_with(|| Held::new(gauge, task));
                piece.load(task, link.source, block, source);
                let mut message = used.try_recv().unwrap_or_default();
                let before = message.capacity();
                piece.message(factor, bytes, &mut message);
                gauge.take(message.capacity() - before);
                if ready.send(message).is_err() {
                    break 'all;
                }
            }
        }
        let mut produced = Produced::default();
        for ((task, source), held) in held {
            gauge.give(held.bytes.capacity());
            let piece = tasks[task].sources[source].piece;
            produced.failed.extend(held.failed.map(|error| (piece, error)));
        }
        produced.cpu = thread_time() - started;
        produced
    }
}

impl Held {
    fn new(gauge: &Gauge, task: &Task) -> Self {
        let bytes = Vec::with_capacity(task.block_bytes as usize);
        gauge.take(bytes.capacity());
        Self { bytes, loaded: None, failed: None }
    }

    /// Reads and checks a block once, however many targets it has.
    fn load(&mut self, task: &Task, at: usize, block: u64, source: &mut dyn Source) {
        if self.failed.is_some() || self.loaded.is_some_and(|(loaded, _)| loaded == block) {
            return;
        }
        let part = &task.sources[at];
        self.bytes.resize(task.block_of(part.bytes, block), 0);
        let offset = part.at + block * u64::from(task.block_bytes);
        if let Err(why) = source.read(part.piece, offset, &mut self.bytes) {
            self.failed = Some(Error::Source { piece: part.piece, why });
            return;
        }
        let sum = checksum(block, &self.bytes);
        if task.expected(part, block).is_some_and(|expected| expected != sum) {
            let why = "a block does not match its checksum";
            self.failed = Some(Error::Corrupt { what: "piece", why });
        }
        self.loaded = Some((block, sum));
    }

    /// The product and the block's checksum, or the news that there is none.
    fn message(&self, factor: &Combine, bytes: usize, message: &mut Vec<u8>) {
        match (&self.failed, self.loaded) {
            (None, Some((_, sum))) => {
                message.resize(bytes + SUM_BYTES, 0);
                let (product, end) = message.split_at_mut(bytes);
                factor.set(&mut [product], &[&self.bytes[..bytes]]);
                end.copy_from_slice(&sum.to_le_bytes());
            }
            _ => {
                message.clear();
                message.extend_from_slice(&FAILED);
            }
        }
    }
}
