//! The star: every source multiplies its block for every target, every target adds what arrives.
//!
//! ```text
//! source -> read, check -> multiply -> exchange -> add -> check -> sink
//! ```
//! Encoding, rebuilding and re-encoding are the same work with other matrices: a [`Task`] names
//! the pieces that go in, those that come out, and who has them.
//!
//! Why slots: a communicator may let a sender wait until its message is received. All messages of
//! all tasks are ordered by (block, slot); in one slot a rank sends one message at most and
//! receives one at most, both at once. The least message that is not yet through always has both
//! its ends waiting for it, so the star cannot lock up, on any transport.
//!
//! Why one thread: a block is read, checked, multiplied, sent, added and written while it is in
//! the cache; handing it to other threads costs more than the arithmetic. Sources and sinks that
//! wait for a disk do so behind the caller's back: they read ahead and write behind.
//!
//! Invariants:
//! - Memory is bounded by blocks: up to eight sent, as many received, one for each piece that this
//!   rank holds or makes, whatever their lengths.
//! - Whoever cannot give its part says so in its place, and the star goes on to its end: a failed
//!   source never leaves others waiting.
//! - Nothing reaches a sink as a whole piece that was not checked where a checksum is known.

mod arithmetic;
mod buffers;
mod read;
mod run;
mod sum;
mod task;
mod window;
mod write;

pub use arithmetic::{Arithmetic, Block, Cpu, FACTORS_MAX, Factors};
pub(crate) use run::{Outcome, run};
pub(crate) use task::{Part, Step, Target, Task, steps};

use std::time::Duration;

use crate::error::Outside;
use crate::topology::Piece;

/// Where bytes of pieces are read: a member's as they are, a shard's with its header in front.
/// Also what this rank's sink has completed. A piece is read in order, block by block: a source
/// on a slow medium should read ahead.
pub trait Source: Send {
    /// Fills `into` from the piece's file, from an offset on.
    fn read(&mut self, piece: Piece, at: u64, into: &mut [u8]) -> Result<(), Outside>;

    /// The same bytes where they lie in memory, so that nobody has to copy them. They do not
    /// change while the star runs. `None`: they must be read.
    fn lend(&self, piece: Piece, at: u64, bytes: usize) -> Option<&[u8]> {
        let _ = (piece, at, bytes);
        None
    }
}

/// Where pieces go that are made here. What is written for one piece, in order, is its file. A
/// sink on a slow medium should write behind.
pub trait Sink: Send {
    /// A piece begins, of so many bytes in all; anything there was of it before is void.
    fn begin(&mut self, piece: Piece, bytes: u64, head: &[u8]) -> Result<(), Outside>;

    /// Further bytes.
    fn append(&mut self, piece: Piece, bytes: &[u8]) -> Result<(), Outside>;

    /// The piece is complete and right.
    fn end(&mut self, piece: Piece, tail: &[u8]) -> Result<(), Outside>;

    /// The piece will not be completed.
    fn abandon(&mut self, piece: Piece);

    /// A piece that was completed has gone on to another rank and is not needed here.
    fn forget(&mut self, piece: Piece) {
        let _ = piece;
    }
}

/// With what a rank takes part in a star.
pub struct Means<'a> {
    /// Where the pieces are that it holds.
    pub source: &'a mut dyn Source,
    /// Where those go that it makes.
    pub sink: &'a mut dyn Sink,
    /// Who multiplies; any is as good as another.
    pub arithmetic: &'a mut dyn Arithmetic,
}

/// What a star has cost this rank.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// Messages sent.
    pub messages: u64,
    /// Their bytes.
    pub bytes_sent: u64,
    /// Bytes of the messages received.
    pub bytes_received: u64,
    /// Most bytes of blocks that were held at once.
    pub buffer_bytes_max: u64,
    /// Processor time.
    pub cpu: Duration,
}

impl Report {
    /// Both, one after the other.
    pub(crate) fn plus(self, other: Self) -> Self {
        Self {
            messages: self.messages + other.messages,
            bytes_sent: self.bytes_sent + other.bytes_sent,
            bytes_received: self.bytes_received + other.bytes_received,
            buffer_bytes_max: self.buffer_bytes_max.max(other.buffer_bytes_max),
            cpu: self.cpu + other.cpu,
        }
    }
}

/// Processor time of the calling thread.
fn thread_time() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

#[cfg(test)]
mod tests;
