//! The ends of a star that is measured: members that lie in memory already, shards that go nowhere.

use standfast_ring::Outside;
use standfast_ring::topology::Piece;
use standfast_ring::{Sink, Source};

/// A member where it lies in memory.
pub struct Lent<'a>(pub &'a [u8]);

impl Source for Lent<'_> {
    fn read(&mut self, piece: Piece, at: u64, into: &mut [u8]) -> Result<(), Outside> {
        into.copy_from_slice(self.lend(piece, at, into.len()).ok_or("the member is shorter")?);
        Ok(())
    }

    fn lend(&self, _: Piece, at: u64, bytes: usize) -> Option<&[u8]> {
        self.0.get(usize::try_from(at).ok()?..)?.get(..bytes)
    }
}

/// Takes everything and keeps nothing.
pub struct Nowhere;

impl Sink for Nowhere {
    fn begin(&mut self, _: Piece, _: u64, _: &[u8]) -> Result<(), Outside> {
        Ok(())
    }
    fn append(&mut self, _: Piece, _: &[u8]) -> Result<(), Outside> {
        Ok(())
    }
    fn end(&mut self, _: Piece, _: &[u8]) -> Result<(), Outside> {
        Ok(())
    }
    fn abandon(&mut self, _: Piece) {}
}
