//! The sinks of a process that writes for itself.
//!
//! ```text
//! Behind  full blocks go to the encoder threads, while the program goes on
//! InTurn  blocks are written in the caller's time: what aggregation and overlap are compared with
//!   serial   each block is compressed, then stored
//!   direct   each piece (consecutive new pages of a region) is a write of its own, as it comes
//!   wag      pieces below a threshold are held back and written when half of the pool is full and
//!            at the end; larger ones are written as they come
//! ```
//! Direct and wag store blocks as they are. A piece grows while it is captured: what came of it before
//! it reached the threshold is held back with the small ones.
//!
//! Invariant: at most the pool's units are in flight; [`SegmentSink::unit`] waits for a free one.

use std::sync::{Arc, Mutex, PoisonError};

use standfast_reduce::Encoded;

use crate::encode::Encoder;
use crate::error::Result;
use crate::pool::Pool;
use crate::segment::OpenSegment;
use crate::segments::Segments;
use crate::sink::{Filled, Head, SegmentSink, Unsealed};
use crate::unit::Unit;

/// So many full blocks wake the encoders together: woken for every single one, they would change
/// places with the thread that fills the next. Less than this, where the pool is small.
const TOGETHER: usize = 4;

/// When blocks are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Writing {
    /// By other threads, after the program went on.
    Behind,
    /// Piece by piece, before the program goes on.
    Direct,
    /// Pieces of at least so many bytes as they come, the others at the end, before the program
    /// goes on.
    Wag {
        /// The threshold.
        threshold_bytes: usize,
    },
}

/// Hands blocks to the encoder threads.
pub(crate) struct Behind {
    pub(crate) segments: Segments,
    pub(crate) pool: Pool,
    /// Full blocks that wait for company.
    pub(crate) full: Vec<Filled>,
}

impl Behind {
    fn send_full(&mut self) -> Result<()> {
        self.full.drain(..).try_for_each(|block| self.segments.push(block))
    }
}

impl SegmentSink for Behind {
    /// Before it waits for a unit, every full block is on its way: they are what it waits for.
    fn unit(&mut self) -> Result<Unit> {
        if let Some(unit) = self.pool.try_take() {
            return Ok(unit);
        }
        self.send_full()?;
        Ok(self.pool.take())
    }

    fn put(&mut self, block: Filled, _: bool) -> Result<()> {
        self.full.push(block);
        match self.full.len() < TOGETHER.min(self.pool.buffers() / 8) {
            true => Ok(()),
            false => self.send_full(),
        }
    }

    fn takes_encoded(&self) -> bool {
        true
    }

    fn put_encoded(&mut self, head: Head, block: Encoded<'_>) -> Result<()> {
        self.segments.append(head, block)
    }

    fn end_stream(&mut self) -> Result<()> {
        self.send_full()
    }

    fn hand_over(self: Box<Self>) -> Box<dyn Unsealed> {
        Box::new(self.segments)
    }
}

/// Writes blocks in the caller's thread.
pub(crate) struct InTurn {
    pub(crate) segments: Segments,
    pub(crate) pool: Pool,
    pub(crate) encoder: Arc<Mutex<Encoder>>,
    /// Smaller pieces are held back; `None`: every block is written and waited for.
    pub(crate) piece_bytes_min: Option<usize>,
    pub(crate) held: Vec<Filled>,
    /// Where the last block went.
    pub(crate) file: Option<Arc<OpenSegment>>,
}

impl InTurn {
    fn write(&mut self, block: Filled) -> Result<()> {
        let mut encoder = self.encoder.lock().unwrap_or_else(PoisonError::into_inner);
        self.file = Some(self.segments.store(&mut encoder, block)?);
        Ok(())
    }

    fn write_held(&mut self) -> Result<()> {
        let held = std::mem::take(&mut self.held);
        held.into_iter().try_for_each(|block| self.write(block))?;
        self.end_piece()
    }
}

impl SegmentSink for InTurn {
    fn unit(&mut self) -> Result<Unit> {
        Ok(self.pool.take())
    }

    fn put(&mut self, block: Filled, at_once: bool) -> Result<()> {
        if self.piece_bytes_min.is_none() {
            self.write(block)?;
            // Nothing is collected or compressed while something is on its way to the medium.
            return self.file.as_ref().map_or(Ok(()), |file| file.settle());
        }
        if at_once {
            return self.write(block);
        }
        self.held.push(block);
        match self.held.len() < (self.pool.buffers() / 2).max(1) {
            true => Ok(()),
            false => self.write_held(),
        }
    }

    fn takes_encoded(&self) -> bool {
        true
    }

    fn put_encoded(&mut self, head: Head, block: Encoded<'_>) -> Result<()> {
        self.segments.append(head, block)
    }

    fn piece_bytes_min(&self) -> Option<usize> {
        self.piece_bytes_min
    }

    fn end_piece(&mut self) -> Result<()> {
        self.file.as_ref().map_or(Ok(()), |file| file.flush())
    }

    fn end_stream(&mut self) -> Result<()> {
        match self.piece_bytes_min {
            Some(_) => self.write_held(),
            None => Ok(()),
        }
    }

    fn hand_over(self: Box<Self>) -> Box<dyn Unsealed> {
        Box::new(self.segments)
    }
}

#[cfg(test)]
mod tests;
