//! Pieces in memory: a source and a sink for tests, measurements and small checkpoints.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::error::{Outside, Result};
use crate::shard::Shard;
use crate::star::{Sink, Source};
use crate::topology::Piece;

/// Files of pieces, shared by its clones: one can be read while another is written.
#[derive(Clone, Debug, Default)]
pub struct Memory {
    whole: Arc<Mutex<BTreeMap<Piece, Vec<u8>>>>,
    /// Begun, not yet ended.
    open: Arc<Mutex<BTreeMap<Piece, Vec<u8>>>>,
}

fn lock(pieces: &Mutex<BTreeMap<Piece, Vec<u8>>>) -> MutexGuard<'_, BTreeMap<Piece, Vec<u8>>> {
    // Every change is one call on the map.
    pieces.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Memory {
    /// Puts a whole piece there.
    pub fn put(&self, piece: Piece, bytes: Vec<u8>) {
        lock(&self.whole).insert(piece, bytes);
    }

    /// A whole piece.
    pub fn get(&self, piece: Piece) -> Option<Vec<u8>> {
        lock(&self.whole).get(&piece).cloned()
    }

    /// Removes a piece.
    pub fn remove(&self, piece: Piece) -> Option<Vec<u8>> {
        lock(&self.whole).remove(&piece)
    }

    /// The pieces that are whole.
    pub fn pieces(&self) -> Vec<Piece> {
        lock(&self.whole).keys().copied().collect()
    }

    /// Opens a shard.
    pub fn shard(&self, piece: Piece) -> Result<Shard> {
        let bytes = lock(&self.whole).get(&piece).map_or(0, |bytes| bytes.len() as u64);
        Shard::open(bytes, |at, into| self.clone().read(piece, at, into))
    }
}

impl Source for Memory {
    fn read(&mut self, piece: Piece, at: u64, into: &mut [u8]) -> std::result::Result<(), Outside> {
        let whole = lock(&self.whole);
        let bytes = whole.get(&piece).ok_or("there is no such piece")?;
        let at = usize::try_from(at)?;
        let from = bytes.get(at..).and_then(|rest| rest.get(..into.len()));
        into.copy_from_slice(from.ok_or("the piece is shorter")?);
        Ok(())
    }
}

impl Sink for Memory {
    fn begin(&mut self, piece: Piece, bytes: u64, head: &[u8]) -> std::result::Result<(), Outside> {
        // What there was is void; its memory is not, and new memory costs more than the arithmetic.
        let mut file = self.remove(piece).unwrap_or_default();
        file.clear();
        file.try_reserve_exact(usize::try_from(bytes)?)?;
        file.extend_from_slice(head);
        lock(&self.open).insert(piece, file);
        Ok(())
    }

    fn append(&mut self, piece: Piece, bytes: &[u8]) -> std::result::Result<(), Outside> {
        let mut open = lock(&self.open);
        open.get_mut(&piece).ok_or("the piece was not begun")?.extend_from_slice(bytes);
        Ok(())
    }

    fn end(&mut self, piece: Piece, tail: &[u8]) -> std::result::Result<(), Outside> {
        let mut bytes = lock(&self.open).remove(&piece).ok_or("the piece was not begun")?;
        bytes.extend_from_slice(tail);
        self.put(piece, bytes);
        Ok(())
    }

    fn abandon(&mut self, piece: Piece) {
        lock(&self.open).remove(&piece);
    }

    fn forget(&mut self, piece: Piece) {
        self.remove(piece);
    }
}
