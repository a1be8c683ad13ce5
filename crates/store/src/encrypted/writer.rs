//! Writing an encrypted object: chunk by chunk, then the tail.

use std::sync::Arc;

use standfast_format::encrypted::{CHUNK_BYTES, CHUNK_PLAIN_BYTES, EncryptedTail};

use super::key::ObjectKey;
use crate::contract::ObjectWriter;
use crate::error::Result;
use crate::meter::WriteMeter;

pub(super) struct EncryptedWriter {
    below: Box<dyn ObjectWriter>,
    key: ObjectKey,
    tail: EncryptedTail,
    /// Plain bytes of the chunk that is being filled.
    filling: Vec<u8>,
    /// Chunks that the store below has.
    chunks: u64,
}

impl EncryptedWriter {
    pub(super) fn new(below: Box<dyn ObjectWriter>, key: ObjectKey, tail: EncryptedTail) -> Self {
        Self { below, key, tail, filling: Vec::with_capacity(CHUNK_BYTES), chunks: 0 }
    }

    fn pass_on(&mut self) -> Result<()> {
        let tag = self.key.encrypt(self.chunks, &mut self.filling);
        self.filling.extend_from_slice(&tag);
        self.chunks += 1;
        let passed = self.below.append(&self.filling);
        self.filling.clear();
        passed
    }
}

impl ObjectWriter for EncryptedWriter {
    fn append(&mut self, mut bytes: &[u8]) -> Result<()> {
        while !bytes.is_empty() {
            let free = CHUNK_PLAIN_BYTES - self.filling.len();
            let (now, later) = bytes.split_at(bytes.len().min(free));
            self.filling.extend_from_slice(now);
            bytes = later;
            if self.filling.len() == CHUNK_PLAIN_BYTES {
                self.pass_on()?;
            }
        }
        Ok(())
    }

    fn flush(&mut self) -> Result<()> {
        self.below.flush()
    }

    fn written(&self) -> u64 {
        self.chunks * CHUNK_PLAIN_BYTES as u64 + self.filling.len() as u64
    }

    fn settle(&mut self) -> Result<()> {
        self.below.settle()
    }

    fn meter(&self) -> Option<Arc<WriteMeter>> {
        self.below.meter()
    }

    fn seal(mut self: Box<Self>) -> Result<u64> {
        let bytes = self.written();
        if !self.filling.is_empty() {
            self.pass_on()?;
        }
        let tail = self.key.close(self.tail, bytes);
        self.below.append(&tail.encode())?;
        self.below.seal()?;
        Ok(bytes)
    }
}
