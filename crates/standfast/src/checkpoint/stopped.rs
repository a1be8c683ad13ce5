//! Memory of a stopped program as a source of pages: they are read where they lie.

use standfast_capture::Regions;
use standfast_reduce::{Brought, PageAt, PageSource, Reach, Take};

use crate::error::{Error, Result};

/// The regions in this process's memory, which nobody writes to.
pub(super) struct Stopped<'m> {
    /// By region; `None`: it lies elsewhere.
    memory: Vec<Option<&'m [u8]>>,
    page_bytes: usize,
}

impl<'m> Stopped<'m> {
    /// # Safety
    /// The memory of every region is mapped, and nobody writes to it for `'m`.
    pub(super) unsafe fn new(regions: &'m Regions, page_bytes: usize) -> Self {
        // SAFETY: the caller vouches for the memory.
        let memory = |region: &'m standfast_capture::Region| unsafe { region.memory() };
        let here = regions.iter().map(|region| match region.device() {
            Some(_) => None,
            None => Some(memory(region)),
        });
        Self { memory: here.collect(), page_bytes }
    }
}

impl PageSource for Stopped<'_> {
    type Error = Error;

    fn reach(&self, region: usize) -> Option<Reach<'_>> {
        self.memory.get(region).copied().flatten().map(Reach::Here)
    }

    fn bring(&self, pages: &[PageAt], _encoded: bool, take: &mut Take<'_, Error>) -> Result<()> {
        for at in pages {
            let memory = self.memory[at.region as usize].unwrap_or_default();
            let from = at.page as usize * self.page_bytes;
            take(Brought::Pages(&memory[from..memory.len().min(from + self.page_bytes)]))?;
        }
        Ok(())
    }
}
