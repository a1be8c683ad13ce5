//! Loads this rank's pieces block by block, each block once however many targets it has.

use std::collections::BTreeMap;

use super::arithmetic::Block;
use super::buffers::Buffers;
use super::task::Link;
use super::{Source, Task};
use crate::error::Error;
use crate::shard::checksum;
use crate::topology::Piece;

/// A held piece, as (task, source).
type Key = (usize, usize);

/// A held piece: its current block, or why it cannot be used.
#[derive(Default)]
struct Held {
    bytes: Vec<u8>,
    /// The block that is loaded, and its checksum.
    loaded: Option<(u64, u64)>,
    failed: Option<Error>,
}

/// The current block of every held piece.
pub(super) struct Reader<'a> {
    tasks: &'a [Task],
    source: &'a mut dyn Source,
    buffers: &'a Buffers,
    held: BTreeMap<Key, Held>,
}

impl<'a> Reader<'a> {
    pub(super) fn new(tasks: &'a [Task], source: &'a mut dyn Source, buffers: &'a Buffers) -> Self {
        Self { tasks, source, buffers, held: BTreeMap::new() }
    }

    pub(super) fn buffers(&self) -> &'a Buffers {
        self.buffers
    }

    /// The block that goes into a message, and its checksum; `None` if the piece has failed.
    pub(super) fn block(&mut self, link: Link, block: u64) -> Option<(Block<'_>, u64)> {
        let held = self.held.entry((link.task, link.source)).or_default();
        let task = &self.tasks[link.task];
        let part = &task.sources[link.source];
        let length = task.block_of(part.bytes, block);
        let at = part.at + block * u64::from(task.block_bytes);
        let loaded = held.loaded.is_some_and(|(loaded, _)| loaded == block);
        if held.failed.is_none() && !loaded {
            let before = held.bytes.capacity();
            match load(task, link.source, block, &mut *self.source, (at, length), &mut held.bytes) {
                Ok(sum) => held.loaded = Some((block, sum)),
                Err(error) => held.failed = Some(error),
            }
            self.buffers.recount(before, held.bytes.capacity());
        }
        let (None, Some((_, sum))) = (&held.failed, held.loaded) else { return None };
        // What was lent is not held.
        let bytes = match held.bytes.len() == length {
            true => &held.bytes,
            false => self.source.lend(part.piece, at, length)?,
        };
        Some((Block { piece: part.piece, at, bytes }, sum))
    }

    /// The pieces that could not be used, and why.
    pub(super) fn end(self) -> Vec<(Piece, Error)> {
        let piece = |(task, source): Key| self.tasks[task].sources[source].piece;
        self.held.into_iter().filter_map(|(key, held)| Some((piece(key), held.failed?))).collect()
    }
}

/// Has and checks a block, lent or read; its checksum.
fn load(
    task: &Task,
    at: usize,
    block: u64,
    source: &mut dyn Source,
    (offset, length): (u64, usize),
    held: &mut Vec<u8>,
) -> Result<u64, Error> {
    let part = &task.sources[at];
    let sum = match source.lend(part.piece, offset, length) {
        Some(bytes) => {
            held.clear();
            checksum(block, bytes)
        }
        None => {
            held.resize(length, 0);
            source
                .read(part.piece, offset, held)
                .map_err(|why| Error::Source { piece: part.piece, why })?;
            checksum(block, held)
        }
    };
    if task.expected(part, block).is_some_and(|expected| expected != sum) {
        return Err(Error::Corrupt { what: "piece", why: "a block does not match its checksum" });
    }
    Ok(sum)
}
