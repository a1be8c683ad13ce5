//! The sum of the products that arrive for one piece, block by block.

use super::buffers::Buffers;
use super::run::{FAILED, SUM_BYTES};
use super::task::Link;
use super::write::{Making, Written};
use super::{Sink, Target, Task};
use crate::error::Error;
use crate::kernel::add_all;

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

    /// Adds the products that have arrived in these steps, or takes the first over. A message that
    /// is not one fails the piece, never the star.
    pub(super) fn add(
        &mut self,
        links: &[(usize, Link)],
        block: u64,
        arrived: &mut [Vec<u8>],
        buffers: &Buffers,
    ) {
        let mut products = Vec::with_capacity(links.len());
        for (at, link) in links {
            let bytes = self.task.product_bytes(*link, block);
            if bytes > 0 && !self.making.has_failed() {
                self.check(*link, bytes, &mut arrived[*at]);
                products.push(*at);
            }
        }
        if self.making.has_failed() || products.is_empty() {
            return;
        }
        // The longest first: the others are added to it.
        products.sort_by_key(|at| std::cmp::Reverse(arrived[*at].len()));
        let longest = arrived[products[0]].len();
        let sum = match &mut self.bytes {
            Some(sum) => sum,
            None => {
                let spare = buffers.take(self.task.block_bytes as usize + SUM_BYTES);
                let first = std::mem::replace(&mut arrived[products.remove(0)], spare);
                self.bytes.insert(first)
            }
        };
        let before = sum.capacity();
        sum.resize(sum.len().max(longest), 0);
        buffers.recount(before, sum.capacity());
        for same in products.chunk_by(|one, other| arrived[*one].len() == arrived[*other].len()) {
            let parts: Vec<&[u8]> = same.iter().map(|at| arrived[*at].as_slice()).collect();
            add_all(&mut sum[..parts[0].len()], &parts);
        }
    }

    /// Takes a product's checksum off, or fails the piece.
    fn check(&mut self, link: Link, bytes: usize, message: &mut Vec<u8>) {
        let source = &self.task.sources[link.source];
        if message.len() != bytes + SUM_BYTES {
            let from = source.rank.expect("a message has a sender");
            self.making.fail(match *message == FAILED {
                true => Error::Peer { piece: self.target.part.piece, rank: from },
                false => Error::Message { from, why: "a product of another length" },
            });
            return;
        }
        let (_, sum) = message.split_at(bytes);
        if let Some(member) = self.members.get_mut(source.piece.index as usize) {
            *member = u64::from_le_bytes(sum.try_into().expect("8 bytes"));
        }
        message.truncate(bytes);
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
