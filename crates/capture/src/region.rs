//! The table of protected regions.
//!
//! A region is a name, an address and a length; any alignment is allowed, for pages are cut from
//! the region's own start. Regions keep the order in which they were protected: that is the order
//! of pages in a checkpoint, and a stable order makes checkpoints of equal ranks equal.
//!
//! Invariants:
//! - Names are distinct and valid; lengths fit the address space.
//! - Regions do not overlap: a byte restored twice could come from two places.

use standfast_format::{Kind, name};

use crate::device::DeviceRegion;
use crate::excluded::{self, Excluded};
use crate::tracker::Span;

/// Result of changing the table.
pub type Result<T> = std::result::Result<T, Error>;

/// Why memory cannot be protected.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The name breaks the naming rules.
    #[error(transparent)]
    Name(#[from] standfast_format::Error),
    /// The name is taken.
    #[error("region {name:?} is protected already: unprotect it first, or use another name")]
    Taken {
        /// The name.
        name: String,
    },
    /// There is no region of that name.
    #[error("no region {name:?} is protected")]
    Unknown {
        /// The name.
        name: String,
    },
    /// The address is null, or the length runs past the end of the address space.
    #[error("region {name:?} does not lie in memory: address {address:#x}, {bytes} bytes")]
    Address {
        /// The name.
        name: String,
        /// The address given.
        address: usize,
        /// The length given.
        bytes: usize,
    },
    /// Another region has some of these bytes.
    #[error("region {name:?} overlaps region {other:?}")]
    Overlap {
        /// The name given.
        name: String,
        /// The region that was there first.
        other: String,
    },
    /// Its memory was freed, unmapped or moved.
    #[error(
        "region {name:?} has no memory any more: some of its {bytes} bytes from {address:#x} on cannot be used (was it freed, or has a vector grown?); unprotect it, and protect it where it is now"
    )]
    Gone {
        /// The name.
        name: String,
        /// Where it was.
        address: usize,
        /// How long.
        bytes: usize,
    },
    /// Alignments are powers of two.
    #[error("alignment {alignment} is not a power of two")]
    Alignment {
        /// The alignment asked for.
        alignment: usize,
    },
    /// The system has not that much memory.
    #[error("there is no memory for {bytes} bytes")]
    NoMemory {
        /// The bytes asked for.
        bytes: usize,
    },
    /// Element sizes are 0 (unknown), 1, 2, 4, 8 or 16.
    #[error("region {name:?}: element size {elem} is none of 0 (unknown), 1, 2, 4, 8, 16")]
    Element {
        /// The name.
        name: String,
        /// The size given.
        elem: u8,
    },
}

impl Error {
    /// The kind of this failure.
    pub fn kind(&self) -> Kind {
        match self {
            Error::Unknown { .. } => Kind::Missing,
            Error::NoMemory { .. } => Kind::Full,
            _ => Kind::Invalid,
        }
    }
}

/// One protected stretch of memory.
#[derive(Clone, Debug)]
pub struct Region {
    name: String,
    start: *mut u8,
    bytes: usize,
    elem: u8,
    /// Set where it lies in the memory of a device: `start` is an address there.
    device: Option<DeviceRegion>,
}

// SAFETY: a region is an address; using it is unsafe and bound to the promise given to `protect`.
unsafe impl Send for Region {}
// SAFETY: as above.
unsafe impl Sync for Region {}

impl Region {
    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Its length in bytes.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Size of its elements; 0 if unknown.
    pub fn elem(&self) -> u8 {
        self.elem
    }

    /// The region as its device knows it, if it lies in the memory of one.
    pub fn device(&self) -> Option<DeviceRegion> {
        self.device
    }

    /// Its memory, to be read; nothing of a region that lies on a device.
    ///
    /// # Safety
    /// The memory must still be mapped, and nobody may write to it while the slice lives.
    pub unsafe fn memory<'a>(&self) -> &'a [u8] {
        // SAFETY: the caller vouches for the range, which was checked to lie in memory.
        unsafe { std::slice::from_raw_parts(self.host_start(), self.span().bytes) }
    }

    /// Its memory, to be filled; nothing of a region that lies on a device.
    ///
    /// # Safety
    /// The memory must still be mapped and writable, and nobody else may use it while the slice
    /// lives.
    pub unsafe fn memory_mut<'a>(&self) -> &'a mut [u8] {
        // SAFETY: as for `memory`, with the caller's promise of exclusive use.
        unsafe { std::slice::from_raw_parts_mut(self.host_start(), self.span().bytes) }
    }

    /// Its place in memory that the processor reads; empty if it lies on a device.
    pub fn span(&self) -> Span {
        let bytes = if self.device.is_some() { 0 } else { self.bytes };
        Span { start: self.host_start() as usize, bytes }
    }

    fn host_start(&self) -> *mut u8 {
        match self.device {
            Some(_) => std::ptr::NonNull::dangling().as_ptr(),
            None => self.start,
        }
    }
}

/// The protected regions of a rank, in the order of their protection.
#[derive(Clone, Debug, Default)]
pub struct Regions {
    all: Vec<Region>,
    /// What the program has excluded.
    excluded: Excluded,
    /// What it keeps out of core dumps, and where regions lay when that was asked for.
    undumped: (Vec<Span>, Excluded),
}

impl Regions {
    /// Adds a region.
    ///
    /// # Safety
    /// From now until [`Regions::unprotect`] the memory must stay mapped, readable and writable.
    pub unsafe fn protect(
        &mut self,
        name: &str,
        start: *mut u8,
        bytes: usize,
        elem: u8,
    ) -> Result<()> {
        self.add(Region { name: name.into(), start, bytes, elem, device: None })
    }

    /// Adds a region that lies in the memory of a device, which keeps it alive.
    pub fn protect_device(
        &mut self,
        name: &str,
        at: u64,
        bytes: usize,
        elem: u8,
        device: DeviceRegion,
    ) -> Result<()> {
        let start = std::ptr::without_provenance_mut(at as usize);
        self.add(Region { name: name.into(), start, bytes, elem, device: Some(device) })
    }

    fn add(&mut self, region: Region) -> Result<()> {
        let Region { name, start, bytes, elem, .. } = &region;
        let (name, bytes, elem) = (name.as_str(), *bytes, *elem);
        name::check_region(name)?;
        if self.get(name).is_some() {
            return Err(Error::Taken { name: name.into() });
        }
        if ![0, 1, 2, 4, 8, 16].contains(&elem) {
            return Err(Error::Element { name: name.into(), elem });
        }
        let address = *start as usize;
        let fits = bytes <= isize::MAX as usize && address.checked_add(bytes).is_some();
        if start.is_null() || !fits {
            return Err(Error::Address { name: name.into(), address, bytes });
        }
        if let Some(other) = self.all.iter().find(|other| overlap(other, &region)) {
            return Err(Error::Overlap { name: name.into(), other: other.name.clone() });
        }
        self.all.push(region);
        Ok(())
    }

    /// Removes a region; its memory is the program's own again.
    pub fn unprotect(&mut self, name: &str) -> Result<()> {
        let at = self.all.iter().position(|region| region.name == name);
        let at = at.ok_or_else(|| Error::Unknown { name: name.into() })?;
        self.all.remove(at);
        Ok(())
    }

    /// Gives a region other memory; it keeps its place in the order.
    ///
    /// # Safety
    /// As [`Regions::protect`].
    pub unsafe fn replace(&mut self, name: &str, start: *mut u8, bytes: usize) -> Result<()> {
        let at = self.all.iter().position(|region| region.name == name);
        let at = at.ok_or_else(|| Error::Unknown { name: name.into() })?;
        let old = self.all.remove(at);
        // SAFETY: the caller vouches for the memory.
        let protected = unsafe { self.protect(name, start, bytes, old.elem) };
        let region = match protected {
            Ok(()) => self.all.pop().expect("it was just added"),
            Err(_) => old,
        };
        self.all.insert(at, region);
        protected
    }

    /// From now on no checkpoint holds these bytes, in whichever region they lie.
    pub fn exclude(&mut self, start: usize, bytes: usize) {
        self.excluded.add(start, bytes);
    }

    /// Takes back what was excluded.
    pub fn include(&mut self, start: usize, bytes: usize) {
        self.excluded.remove(start, bytes);
    }

    /// Asks the kernel what is kept out of core dumps. That looks at every mapping of the process, so
    /// it is done only where regions have come, gone or moved since the last time.
    pub fn find_undumped(&mut self) {
        let spans: Vec<Span> = self.all.iter().map(Region::span).collect();
        if self.undumped.0 != spans {
            self.undumped = (spans, excluded::undumped());
        }
    }

    /// What no checkpoint holds of a region, counted from its start.
    pub fn excluded(&self, region: &Region) -> Excluded {
        let span = region.span();
        let mut found = self.excluded.within(span);
        found.join(&self.undumped.1.within(span));
        found
    }

    /// The region of this name.
    pub fn get(&self, name: &str) -> Option<&Region> {
        self.all.iter().find(|region| region.name == name)
    }

    /// All regions, in the order of their protection.
    pub fn iter(&self) -> std::slice::Iter<'_, Region> {
        self.all.iter()
    }

    /// Bytes of the regions that the processor reads.
    pub fn host_bytes(&self) -> u64 {
        self.all.iter().map(|region| region.span().bytes as u64).sum()
    }

    /// Bytes of all regions together.
    pub fn bytes(&self) -> u64 {
        self.all.iter().map(|region| region.bytes as u64).sum()
    }
}

fn overlap(a: &Region, b: &Region) -> bool {
    let place = |region: &Region| Span { start: region.start as usize, bytes: region.bytes };
    let same = a.device.is_some() == b.device.is_some();
    let (a, b) = (place(a), place(b));
    same && a.bytes > 0 && b.bytes > 0 && a.start < b.end() && b.start < a.end()
}

#[cfg(test)]
mod tests;
