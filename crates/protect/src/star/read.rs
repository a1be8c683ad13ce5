//! Loads this rank's pieces block by block, each block once however many targets it has.

use std::collections::BTreeMap;

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
    pub(super) fn block(&mut self, link: Link, block: u64) -> Option<(&[u8], u64)> {
        let held = self.held.entry((link.task, link.source)).or_default();
        let loaded = held.loaded.is_some_and(|(loaded, _)| loaded == block);
        if held.failed.is_none() && !loaded {
            let before = held.bytes.capacity();
            let read =
                load(&self.tasks[link.task], link.source, block, self.source, &mut held.bytes);
            self.buffers.recount(before, held.bytes.capacity());
            match read {
                Ok(sum) => held.loaded = Some((block, sum)),
                Err(error) => held.failed = Some(error),
            }
        }
        match (&held.failed, held.loaded) {
            (None, Some((_, sum))) => Some((&held.bytes, sum)),
            _ => None,
        }
    }

    /// The pieces that could not be used, and why.
    pub(super) fn end(self) -> Vec<(Piece, Error)> {
        let piece = |(task, source): Key| self.tasks[task].sources[source].piece;
        self.held.into_iter().filter_map(|(key, held)| Some((piece(key), held.failed?))).collect()
    }
}

/// Reads and checks a block; its checksum.
fn load(
    task: &Task,
    at: usize,
    block: u64,
    source: &mut dyn Source,
    bytes: &mut Vec<u8>,
) -> Result<u64, Error> {
    let part = &task.sources[at];
    bytes.resize(task.block_of(part.bytes, block), 0);
    let offset = part.at + block * u64::from(task.block_bytes);
    source
        .read(part.piece, offset, bytes)
        .map_err(|why| Error::Source { piece: part.piece, why })?;
    let sum = checksum(block, bytes);
    if task.expected(part, block).is_some_and(|expected| expected != sum) {
        return Err(Error::Corrupt { what: "piece", why: "a block does not match its checksum" });
    }
    Ok(sum)
}
