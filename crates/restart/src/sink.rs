//! Where rebuilt pages go: memory, or files.
//!
//! # Contract
//! - `page` and `zero` are called from several threads, each page exactly once, in no order.
//! - Only verified bytes arrive; the last page of a region comes at its full length, filled up
//!   with zeros, and the sink takes what it needs.

use std::marker::PhantomData;
use std::ops::Range;

use standfast_capture::Excluded;

/// Takes rebuilt pages.
pub trait Sink: Sync {
    /// What can go wrong.
    type Error: Send;

    /// Takes consecutive pages of a region, from this byte of the region on.
    fn pages(&self, region: usize, offset: u64, bytes: &[u8]) -> Result<(), Self::Error>;

    /// Takes zeros for so many bytes of a region, from this byte on.
    fn zeros(&self, region: usize, offset: u64, bytes: u64) -> Result<(), Self::Error>;
}

/// Puts regions back into memory.
pub struct MemorySink<'a> {
    regions: Vec<Option<(*mut u8, usize)>>,
    /// By region: what stays as it is.
    left: Vec<Excluded>,
    memory: PhantomData<&'a mut [u8]>,
}

// SAFETY: the pointers come from exclusive borrows that live as long as the sink, and the
// contract gives every page to one call only: threads write disjoint bytes.
unsafe impl Sync for MemorySink<'_> {}
// SAFETY: as above; the borrowed bytes may be written from any thread.
unsafe impl Send for MemorySink<'_> {}

impl<'a> MemorySink<'a> {
    /// A destination per region of the image; `None` for regions that are not wanted.
    pub fn new(regions: Vec<Option<&'a mut [u8]>>) -> Self {
        let regions = regions
            .into_iter()
            .map(|region| region.map(|bytes| (bytes.as_mut_ptr(), bytes.len())))
            .collect();
        Self { regions, left: Vec::new(), memory: PhantomData }
    }

    /// Leaves these bytes of each region as they are.
    pub fn leaving(mut self, left: Vec<Excluded>) -> Self {
        self.left = left;
        self
    }

    /// The parts of some bytes that are to be filled.
    fn filled(&self, region: usize, offset: u64, bytes: usize) -> Vec<Range<usize>> {
        match self.left.get(region).filter(|left| !left.is_empty()) {
            None => std::iter::once(0..bytes).collect(),
            Some(left) => left.others(offset as usize, bytes).collect(),
        }
    }

    /// The part of a destination that starts at `offset`, at most `bytes` long.
    #[expect(clippy::mut_from_ref, reason = "the contract keeps callers' parts disjoint")]
    fn part(&self, region: usize, offset: u64, bytes: usize) -> &mut [u8] {
        let (start, len) = self.regions[region].expect("only wanted regions are rebuilt");
        let offset = usize::try_from(offset).map_or(len, |offset| offset.min(len));
        let bytes = bytes.min(len - offset);
        // SAFETY: the range lies inside of the destination, and by the contract no other call
        // has it.
        unsafe { std::slice::from_raw_parts_mut(start.add(offset), bytes) }
    }
}

impl Sink for MemorySink<'_> {
    type Error = std::convert::Infallible;

    fn pages(&self, region: usize, offset: u64, bytes: &[u8]) -> Result<(), Self::Error> {
        let part = self.part(region, offset, bytes.len());
        for range in self.filled(region, offset, part.len()) {
            part[range.clone()].copy_from_slice(&bytes[range]);
        }
        Ok(())
    }

    fn zeros(&self, region: usize, offset: u64, bytes: u64) -> Result<(), Self::Error> {
        let bytes = usize::try_from(bytes).unwrap_or(usize::MAX);
        let part = self.part(region, offset, bytes);
        for range in self.filled(region, offset, part.len()) {
            for part in part[range].chunks_mut(1 << 16) {
                // Fresh memory is zero already: reading it is cheaper than making the system back it.
                if !standfast_reduce::is_zero(part) {
                    part.fill(0);
                }
            }
        }
        Ok(())
    }
}
