//! Pieces made here: whole blocks are checked and handed to the sink.

use super::{Sink, Target, Task};
use crate::error::Error;
use crate::shard::{Shard, Table, checksum};
use crate::topology::Piece;

/// What becomes of the pieces made here.
#[derive(Default)]
pub(super) struct Written {
    /// Members that were rebuilt and shards that were made.
    pub(super) made: Vec<Piece>,
    pub(super) shards: Vec<Shard>,
    pub(super) failed: Vec<(Piece, Error)>,
}

/// One piece in the making.
pub(super) struct Making<'a> {
    task: &'a Task,
    target: &'a Target,
    table: Table,
    failed: Option<Error>,
}

impl<'a> Making<'a> {
    pub(super) fn begin(task: &'a Task, target: &'a Target, sink: &mut dyn Sink) -> Self {
        let head = target.header.as_ref().map(|header| header.encode()).unwrap_or_default();
        let table = target.header.as_ref().map_or(0, |header| header.table_bytes());
        let bytes = head.len() as u64 + target.part.bytes + table;
        let piece = target.part.piece;
        let begun = sink.begin(piece, bytes, &head);
        let failed = begun.err().map(|why| Error::Sink { piece, why });
        Self { task, target, table: Table::new(task.k), failed }
    }

    /// The first failure counts; nothing more is written.
    pub(super) fn fail(&mut self, error: Error) {
        self.failed.get_or_insert(error);
    }

    pub(super) fn has_failed(&self) -> bool {
        self.failed.is_some()
    }

    fn piece(&self) -> Piece {
        self.target.part.piece
    }

    /// Takes a whole block and the checksums of the members' blocks.
    pub(super) fn append(
        &mut self,
        block: u64,
        bytes: &[u8],
        members: &[u64],
        sink: &mut dyn Sink,
    ) {
        if self.failed.is_none() {
            self.failed = self.try_append(block, bytes, members, sink).err();
        }
    }

    fn try_append(
        &mut self,
        block: u64,
        bytes: &[u8],
        members: &[u64],
        sink: &mut dyn Sink,
    ) -> Result<(), Error> {
        let (piece, part) = (self.piece(), &self.target.part);
        let sum = checksum(block, bytes);
        if self.target.header.is_some() {
            // A member that is lost sends nothing; its checksum is known from another shard.
            match &part.sums {
                Some(known) => {
                    let of = |at| known.member(block as usize, at);
                    self.table.push(sum, &(0..self.task.k).map(of).collect::<Vec<_>>());
                }
                None => self.table.push(sum, members),
            }
        } else if self.task.expected(part, block).is_some_and(|expected| expected != sum) {
            return Err(Error::Mismatch { piece });
        }
        sink.append(piece, bytes).map_err(|why| Error::Sink { piece, why })
    }

    /// Only what is complete is ended.
    pub(super) fn end(mut self, complete: bool, sink: &mut dyn Sink, to: &mut Written) {
        let piece = self.piece();
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
