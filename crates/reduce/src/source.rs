//! Where pages come from: memory that stands still, a snapshot of it, a device.
//!
//! Data: a [`PageSource`] -> [`Scanner::scan`](crate::Scanner::scan): which pages changed -> those
//! that must be stored are brought.
//!
//! A source is asked once a region or once a run of pages where that matters: a page in memory costs
//! no call.
//!
//! # Contract
//! - Pages come as they were when the source was made, until [`PageSource::end`].
//! - Looking and bringing go by ascending regions and pages, in one thread.

use std::ops::Range;

use crate::block::Encoded;

/// A page of a checkpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct PageAt {
    /// Which region.
    pub region: u32,
    /// Which page of it.
    pub page: u32,
}

/// How the pages of a region are looked at.
#[derive(Clone, Copy, Debug)]
pub enum Reach<'s> {
    /// Hashed in memory, which stays as it is.
    Here(&'s [u8]),
    /// The pages that may be dirty, end to end in memory which stays as it is, of a region of so many
    /// bytes.
    Packed(&'s [u8], usize),
    /// So many bytes, read page by page through [`PageSource::read`].
    Read(usize),
    /// So many bytes, hashed where they lie: [`PageSource::hashed`].
    Hashed(usize),
}

/// What a source that hashes pages by itself has found.
#[derive(Clone, Debug, Default)]
pub struct Hashed {
    /// Pages that differ and hold something, ascending.
    pub pages: Vec<u64>,
    /// Their hashes, end to end.
    pub hashes: Vec<u8>,
    /// Pages that differ and hold nothing but zeros.
    pub zeroed: Vec<u64>,
}

/// Pages on their way into blocks, in the order asked for.
#[derive(Clone, Copy, Debug)]
pub enum Brought<'a> {
    /// Pages end to end; the last of a region may be shorter.
    Pages(&'a [u8]),
    /// A block that is ready to be stored.
    Block {
        /// Pages that it holds.
        pages: u32,
        /// What to store.
        encoded: Encoded<'a>,
    },
}

/// Takes what a source brings.
pub type Take<'a, E> = dyn FnMut(Brought<'_>) -> Result<(), E> + 'a;

/// A source of pages.
pub trait PageSource {
    /// Why pages cannot be had.
    type Error;

    /// How a region is looked at; `None`: it is not of this source.
    fn reach(&self, region: usize) -> Option<Reach<'_>>;

    /// Reads one page of a region of [`Reach::Read`].
    fn read(&self, _page: PageAt, _out: &mut [u8]) {}

    /// What has changed in a region of [`Reach::Hashed`].
    fn hashed(&self, _region: usize) -> Result<Hashed, Self::Error> {
        Ok(Hashed::default())
    }

    /// Nothing more of this region is looked at.
    fn looked(&self, _region: usize) {}

    /// Only pages in ranges for which `is_needed` holds are brought; the program may have others.
    fn needed(&self, _region: usize, _is_needed: &dyn Fn(Range<usize>) -> bool) {}

    /// Whether the program may have to wait for pages.
    fn holds_up(&self) -> bool {
        false
    }

    /// Whether somebody waits for pages now.
    fn is_overdue(&self) -> bool {
        false
    }

    /// Shows the pages of each region that somebody waits for, and lets go of them afterwards.
    fn serve(&self, _show: &mut dyn FnMut(usize, Range<usize>)) {}

    /// Sets all these pages aside, so that they can be brought after the program goes on. False if
    /// that cannot be: they are brought while it waits.
    fn keep(&self, _pages: &[PageAt]) -> Result<bool, Self::Error> {
        Ok(false)
    }

    /// Brings pages; `encoded`: as blocks, where the source can make them.
    fn bring(
        &self,
        pages: &[PageAt],
        encoded: bool,
        take: &mut Take<'_, Self::Error>,
    ) -> Result<(), Self::Error>;

    /// Nothing more is brought, and nobody waits any more. Fails if what was brought may not be what
    /// it should.
    fn end(&self) -> Result<(), Self::Error> {
        Ok(())
    }
}
