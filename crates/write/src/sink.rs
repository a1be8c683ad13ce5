//! Where blocks go: the seam between a batch of pages and whoever writes them.
//!
//! Data: [`Filled`] units from a [`Batch`](crate::Batch) -> a [`SegmentSink`]: in this process
//! ([`crate::Packer`]) or through the node's agent -> [`Unsealed`].

use standfast_format::{Rank, SegmentId};
use standfast_reduce::Encoded;

use crate::error::{Error, Result};
use crate::segment::SealedSegment;
use crate::unit::Unit;

/// What is known of a block beside its bytes.
#[derive(Clone, Debug)]
pub struct Head {
    /// The stream it belongs to: pages of one rank whose slots are dense.
    pub stream: SegmentId,
    /// Whose stream that is.
    pub rank: Rank,
    /// Its number in the stream.
    pub number: u32,
    /// Its pages.
    pub pages: u32,
    /// Size of their elements, where known.
    pub elem: u8,
    /// Their hashes, end to end.
    pub hashes: Vec<u8>,
    /// About how long the stream becomes, where known: a hint for the file system.
    pub size_hint: Option<u64>,
}

/// A block whose pages lie at the beginning of a unit.
pub struct Filled {
    /// Which block it is.
    pub head: Head,
    /// Its memory.
    pub unit: Unit,
}

/// Where blocks go. Dropped before it is handed over, everything it took is given up.
pub trait SegmentSink: Send {
    /// Memory for the next block; waits until there is some.
    fn unit(&mut self) -> Result<Unit>;

    /// Takes a block. `at_once`: it ends a piece that is to be written now; matters only to sinks
    /// that tell of pieces.
    fn put(&mut self, block: Filled, at_once: bool) -> Result<()>;

    /// Whether blocks that were encoded elsewhere are taken.
    fn takes_encoded(&self) -> bool {
        false
    }

    /// Takes a block that was encoded elsewhere, where such blocks are taken.
    fn put_encoded(&mut self, _: Head, _: Encoded<'_>) -> Result<()> {
        Err(Error::Misused { what: "pages that are encoded already are not taken here" })
    }

    /// Pieces (consecutive pages of memory) of at least so many bytes are written as they come;
    /// `None`: pieces of all sizes share blocks.
    fn piece_bytes_min(&self) -> Option<usize> {
        None
    }

    /// A piece of at least that size has come to its end.
    fn end_piece(&mut self) -> Result<()> {
        Ok(())
    }

    /// The stream is complete: all of it goes on its way.
    fn end_stream(&mut self) -> Result<()>;

    /// All streams are complete.
    fn hand_over(self: Box<Self>) -> Box<dyn Unsealed>;
}

/// What a sink has taken, still to be made durable. Dropped, it is given up.
pub trait Unsealed: Send {
    /// Makes durable what is to be made durable in this process: those segments. From now on it is
    /// not given up any more.
    fn seal(self: Box<Self>) -> Result<Vec<SealedSegment>>;
}
