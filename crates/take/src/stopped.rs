//! Memory of a stopped program as a source of pages: they are read where they lie.

use standfast_capture::{Excluded, Regions};
use standfast_reduce::{Brought, PageAt, PageSource, Reach, Take};

use crate::error::{Error, Result};

/// The regions in this process's memory, which nobody writes to.
pub(crate) struct Stopped<'m> {
    /// By region; `None`: it lies elsewhere.
    memory: Vec<Option<&'m [u8]>>,
    /// By region: what is not stored of it.
    excluded: Vec<Excluded>,
    page_bytes: usize,
}

impl<'m> Stopped<'m> {
    /// # Safety
    /// The memory of every region is mapped, and nobody writes to it for `'m`.
    pub(crate) unsafe fn new(regions: &'m Regions, page_bytes: usize) -> Self {
        // SAFETY: the caller vouches for the memory.
        let memory = |region: &'m standfast_capture::Region| unsafe { region.memory() };
        let here = regions.iter().map(|region| match region.device() {
            Some(_) => None,
            None => Some(memory(region)),
        });
        let excluded = regions.iter().map(|region| regions.excluded(region)).collect();
        Self { memory: here.collect(), excluded, page_bytes }
    }

    /// A page as it lies in memory.
    fn page(&self, at: PageAt) -> &'m [u8] {
        let memory = self.memory[at.region as usize].unwrap_or_default();
        let from = at.page as usize * self.page_bytes;
        &memory[from..memory.len().min(from + self.page_bytes)]
    }
}

impl PageSource for Stopped<'_> {
    type Error = Error;

    fn reach(&self, region: usize) -> Option<Reach<'_>> {
        let memory = self.memory.get(region).copied().flatten()?;
        Some(match self.excluded[region].is_empty() {
            true => Reach::Here(memory),
            false => Reach::Read(memory.len()),
        })
    }

    fn read(&self, at: PageAt, out: &mut [u8]) {
        out.copy_from_slice(self.page(at));
        self.excluded[at.region as usize].blank(at.page as usize * self.page_bytes, out);
    }

    fn bring(&self, pages: &[PageAt], _encoded: bool, take: &mut Take<'_, Error>) -> Result<()> {
        let mut copy = Vec::new();
        for at in pages {
            let mut page = self.page(*at);
            if !self.excluded[at.region as usize].is_empty() {
                copy.resize(page.len(), 0);
                self.read(*at, &mut copy);
                page = &copy;
            }
            take(Brought::Pages(page))?;
        }
        Ok(())
    }
}
