//! The sum of the products that arrive for one piece, block by block.

use super::buffers::Buffers;
use super::run::{FAILED, SUM_BYTES};
use super::task::Link;
use super::write::{Making, Written};
use super::{Sink, Target, Task};
use crate::error::Error;
use crate::kernel::add;

/// A piece and its block in the making.
pub(super) struct Sum<'a> {
    task: &'a Task,
    target: &'a Target,
    making: Making<'a>,
    /// The block so far; `None` before the first product.
    bytes: Option<Vec<u8>>,
    /// Checksums of the members' current blocks.
    members: Vec<u64>,
}

impl<'a> Sum<'a> {
    pub(super) fn begin(task: &'a Task, target: &'a Target, sink: &mut dyn Sink) -> Self {
        let making = Making::begin(task, target, sink);
        Self { task, target, making, bytes: None, members: vec![0; task.k] }
    }

    /// Adds a product, or takes it over if it is the first. A message that is not one fails the
    /// piece, never the star.
    pub(super) fn add(&mut self, link: Link, block: u64, message: &mut Vec<u8>, buffers: &Buffers) {
        if self.making.has_failed() {
            return;
        }
        let bytes = self.task.product_bytes(link, block);
        let source = &self.task.sources[link.source];
        if message.len() != bytes + SUM_BYTES {
            let from = source.rank.expect("a message has a sender");
            self.making.fail(match *message == FAILED {
                true => Error::Peer { piece: self.target.part.piece, rank: from },
                false => Error::Message { from, why: "a product of another length" },
            });
            return;
        }
        let (product, sum) = message.split_at(bytes);
        if let Some(member) = self.members.get_mut(source.piece.index as usize) {
            *member = u64::from_le_bytes(sum.try_into().expect("8 bytes"));
        }
        match &mut self.bytes {
            None => {
                message.truncate(bytes);
                let spare = buffers.take(self.task.block_bytes as usize + SUM_BYTES);
                self.bytes = Some(std::mem::replace(message, spare));
            }
            Some(sum) => {
                let both = bytes.min(sum.len());
                add(&mut sum[..both], &product[..both]);
                let before = sum.capacity();
                sum.extend_from_slice(&product[both..]);
                buffers.recount(before, sum.capacity());
            }
        }
    }

    /// The block has had all its products: check it, write it.
    pub(super) fn finish(&mut self, block: u64, sink: &mut dyn Sink, buffers: &Buffers) {
        let length = self.task.block_of(self.target.part.bytes, block);
        let bytes = self.bytes.take();
        if length == 0 {
            return;
        }
        let mut bytes = bytes.unwrap_or_else(|| buffers.take(length));
        let before = bytes.capacity();
        bytes.resize(length, 0);
        buffers.recount(before, bytes.capacity());
        self.making.append(block, &bytes, &self.members, sink);
        self.members.fill(0);
        buffers.give(bytes);
    }

    pub(super) fn end(self, complete: bool, sink: &mut dyn Sink, to: &mut Written) {
        self.making.end(complete, sink, to);
    }
}
