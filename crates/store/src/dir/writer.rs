//! Writing one object: any appends in, large aligned writes out.
//!
//! Data: `append` -> the chunk being filled -> [`IoThreads`], whole or, while the medium waits, in
//! part ([`WriteSizes`]); `seal` writes the rest padded to
//! the alignment, cuts the file to its length, and publishes it. `append_owned` gathers aligned
//! buffers and writes them from where they are: one pass over memory less.
//!
//! Invariant: bytes wait either in the chunk or in the gathering, never in both.
//!
//! Why space is reserved ahead: a direct write that extends a file locks it against the others
//! and allocates block by block; into reserved space several go in parallel.

use std::sync::Arc;
use std::time::Instant;

use standfast_format::Kind;

use super::io_threads::{Data, Flight, IoThreads};
use super::part::{IfExists, Part};
use crate::contract::{HELD_BYTES_MAX, ObjectWriter, OwnedBytes};
use crate::error::{Error, Object, Result};
use crate::meter::WriteMeter;
use crate::sizes::WriteSizes;
use standfast_sys::{ALIGN, AlignedBuf};

/// Space reserved first where nobody says how much will come.
const RESERVE_BYTES_MIN: u64 = 16 << 20;
/// Space reserved at most in one step.
const RESERVE_BYTES_MAX: u64 = 4 << 30;

pub(super) struct DirWriter {
    part: Option<Part>,
    object: Object,
    threads: Arc<IoThreads>,
    flight: Arc<Flight>,
    filling: Filling,
    gathered: Gathered,
    submitted: u64,
    sizes: WriteSizes,
    reserve: Reserve,
    failed: Option<(Kind, String)>,
}

/// The chunk that is being filled.
#[derive(Default)]
struct Filling {
    chunk: Option<AlignedBuf>,
    bytes: usize,
    /// Since when its bytes wait.
    since: Option<Instant>,
}

/// Buffers of somebody else that wait for company.
#[derive(Default)]
struct Gathered {
    buffers: Vec<OwnedBytes>,
    bytes: usize,
}

impl DirWriter {
    pub(super) fn new(part: Part, threads: Arc<IoThreads>, size_hint: Option<u64>) -> DirWriter {
        DirWriter {
            object: part.tree().object_at(part.name()),
            part: Some(part),
            sizes: WriteSizes::new(threads.chunk_bytes()),
            threads,
            flight: Arc::default(),
            filling: Filling::default(),
            gathered: Gathered::default(),
            submitted: 0,
            reserve: Reserve::new(size_hint),
            failed: None,
        }
    }

    fn part(&self) -> Result<&Part> {
        self.part.as_ref().ok_or_else(|| {
            let (kind, first) = self.failed.clone().unwrap_or((Kind::Bug, "its end".to_owned()));
            Error::GivenUp { object: self.object.clone(), kind, first }
        })
    }

    /// Reports the first failure and gives everything back.
    fn give_up(&mut self, error: Error) -> Error {
        self.failed = Some((error.kind(), error.to_string()));
        let _ = self.flight.wait();
        self.part = None;
        self.gathered.buffers.clear();
        self.give_back_chunk();
        error
    }

    fn give_back_chunk(&mut self) {
        if let Some(chunk) = self.filling.chunk.take() {
            self.threads.give_back(chunk);
        }
    }

    fn fill(&mut self, mut bytes: &[u8]) -> Result<()> {
        self.submit_gathered();
        while !bytes.is_empty() {
            if self.flight.has_failed() {
                self.landed()?;
            }
            let limit = self.next_write();
            let Filling { chunk, bytes: filled, .. } = &mut self.filling;
            let chunk = chunk.get_or_insert_with(|| self.threads.chunk());
            let count = bytes.len().min(limit.saturating_sub(*filled));
            let (now, later) = bytes.split_at(count);
            chunk[*filled..*filled + count].copy_from_slice(now);
            *filled += count;
            bytes = later;
            if *filled >= limit {
                self.submit_filled();
            }
        }
        Ok(())
    }

    /// How long the chunk's write is to be.
    fn next_write(&mut self) -> usize {
        let waited = self.filling.since.get_or_insert_with(Instant::now).elapsed();
        self.sizes.after(self.submitted, waited, || self.flight.meter().under_way())
    }

    /// Submits what the chunk has of whole sectors; the rest moves to the next chunk.
    fn submit_filled(&mut self) {
        let Filling { chunk, bytes: filled, .. } = &mut self.filling;
        let whole = *filled - *filled % ALIGN;
        let Some(full) = chunk.take() else { return };
        let rest = *filled - whole;
        if rest > 0 {
            let mut next = self.threads.chunk();
            next[..rest].copy_from_slice(&full[whole..*filled]);
            *chunk = Some(next);
        }
        *filled = rest;
        self.submit(Data::Chunk(full, whole), whole, whole);
    }

    /// Whether owned bytes can be written from where they are. A chunk that ends aligned goes
    /// out first.
    fn can_gather(&mut self, bytes: &[u8]) -> bool {
        let aligned = |number: usize| number.is_multiple_of(ALIGN);
        if !aligned(bytes.as_ptr() as usize)
            || !aligned(bytes.len())
            || !aligned(self.filling.bytes)
        {
            return false;
        }
        if self.filling.bytes > 0 {
            self.submit_chunk(self.filling.bytes);
        }
        true
    }

    fn gather(&mut self, bytes: OwnedBytes) -> Result<()> {
        if self.flight.has_failed() {
            self.landed()?;
        }
        self.gathered.bytes += (*bytes).as_ref().len();
        self.gathered.buffers.push(bytes);
        if self.gathered.bytes >= self.sizes.now().min(HELD_BYTES_MAX) {
            self.submit_gathered();
        }
        Ok(())
    }

    fn submit_gathered(&mut self) {
        let Gathered { buffers, bytes } = std::mem::take(&mut self.gathered);
        if !buffers.is_empty() {
            self.submit(Data::Gathered(buffers), bytes, bytes);
        }
    }

    /// Submits the chunk, of which so many bytes go to the file, padding included.
    fn submit_chunk(&mut self, bytes: usize) {
        let Some(chunk) = self.filling.chunk.take() else { return };
        let filled = std::mem::take(&mut self.filling.bytes);
        self.submit(Data::Chunk(chunk, bytes), bytes, filled);
    }

    fn submit(&mut self, data: Data, bytes: usize, counted: usize) {
        let offset = self.submitted;
        let part = self.part.as_ref().expect("checked by the caller");
        self.reserve.ahead(part, offset, bytes as u64);
        self.threads.submit(part.file(), data, offset, &self.flight);
        self.submitted += counted as u64;
        self.filling.since = None;
        self.sizes.grow();
    }

    fn landed(&self) -> Result<()> {
        let part = self.part()?;
        self.flight.wait().map_err(part.os("write"))
    }

    /// The last chunk, padded with zeros as direct I/O wants; the padding is cut off again.
    fn finish(&mut self) -> Result<()> {
        let bytes = self.written();
        self.submit_gathered();
        let Filling { chunk, bytes: filled, .. } = &mut self.filling;
        if let Some(chunk) = chunk {
            let padded = filled.next_multiple_of(ALIGN);
            chunk[*filled..padded].fill(0);
            self.submit_chunk(padded);
        }
        self.landed()?;
        let part = self.part()?;
        part.file().as_file().set_len(bytes).map_err(part.os("trim"))
    }

    fn publish(&mut self, if_exists: IfExists) -> Result<u64> {
        self.part()?;
        self.finish().map_err(|error| self.give_up(error))?;
        let part = self.part.take().expect("checked above");
        part.publish(if_exists)?;
        Ok(self.written())
    }
}

impl ObjectWriter for DirWriter {
    fn append(&mut self, bytes: &[u8]) -> Result<()> {
        self.part()?;
        self.fill(bytes).map_err(|error| self.give_up(error))
    }

    fn append_owned(&mut self, bytes: OwnedBytes) -> Result<()> {
        self.part()?;
        let outcome = match self.can_gather((*bytes).as_ref()) {
            true => self.gather(bytes),
            false => self.fill((*bytes).as_ref()),
        };
        outcome.map_err(|error| self.give_up(error))
    }

    fn flush(&mut self) -> Result<()> {
        self.part()?;
        self.submit_gathered();
        // What ends in the middle of a sector waits for the rest of it.
        if self.filling.bytes.is_multiple_of(ALIGN) {
            self.submit_chunk(self.filling.bytes);
        }
        self.landed().map_err(|error| self.give_up(error))
    }

    fn written(&self) -> u64 {
        self.submitted + (self.filling.bytes + self.gathered.bytes) as u64
    }

    fn settle(&mut self) -> Result<()> {
        self.landed().map_err(|error| self.give_up(error))
    }

    fn meter(&self) -> Option<Arc<WriteMeter>> {
        Some(self.flight.meter().clone())
    }

    fn seal(mut self: Box<Self>) -> Result<u64> {
        self.publish(IfExists::Replace)
    }

    fn seal_new(mut self: Box<Self>) -> Result<u64> {
        self.publish(IfExists::Refuse)
    }
}

impl Drop for DirWriter {
    fn drop(&mut self) {
        let _ = self.flight.wait();
        self.give_back_chunk();
    }
}

/// Space taken ahead of the writes. Every step waits for the writes in flight, so steps are few:
/// the whole hint, or doubling. What is too much is cut off when the object is sealed.
struct Reserve {
    done: u64,
    hint: Option<u64>,
    refused: bool,
}

impl Reserve {
    fn new(hint: Option<u64>) -> Reserve {
        Reserve { done: 0, hint, refused: false }
    }

    /// Only an optimisation: when it fails the writes themselves will tell.
    fn ahead(&mut self, part: &Part, offset: u64, bytes: u64) {
        let needed = offset + bytes;
        if self.refused || needed <= self.done {
            return;
        }
        let step = self.step(needed, part.tree().free_bytes().unwrap_or(0));
        let flags = rustix::fs::FallocateFlags::empty();
        match rustix::fs::fallocate(part.file().as_file(), flags, self.done, step) {
            Ok(()) => self.done += step,
            Err(_) => self.refused = true,
        }
    }

    /// Never so much that others would find the disk full because of a guess.
    fn step(&self, needed: u64, free: u64) -> u64 {
        let guess = match self.hint {
            Some(hint) if hint > self.done => hint - self.done,
            _ => self.done.max(RESERVE_BYTES_MIN),
        };
        let most = (free / 4).min(RESERVE_BYTES_MAX);
        guess.min(most).max(needed - self.done).next_multiple_of(ALIGN as u64)
    }
}

#[cfg(test)]
mod tests;
