//! Regions in device memory, as the engine sees them: [`DeviceMemory`] is a
//! [`Device`].
//!
//! Data: region -> hashed and listed on the device -> changed pages staged on the device -> what
//! the catalog does not know is encoded in pieces, two on their way -> pinned memory -> blocks.
//!
//! When the device cannot (no memory left, no compiler, a kernel refused), but its memory can still
//! be copied, the processor does the same from copies: it hashes pieces of the region, and pages
//! cross to staging in host memory while the program waits. That is said once.
//!
//! Memory: on the device 49 bytes a page of every region, staging (as configured, less where there
//! is none) with 49 bytes a page, and about 100 MiB of buffers for pieces; on the host about 35 MiB
//! of pinned buffers, staging once more when the processor stands in, and 4 MiB for every thread of
//! a restart.
//!
//! Invariants:
//! - The hashes of a region on the device are those that the last scan returned, or are not used.
//! - Nothing is handed out that does not have the hash that the scan found.

mod backend;
mod copies;
mod cuda;
mod drain;
mod fill;
mod open;

use standfast_capture::{
    ChangedPages, Device, DeviceError, DeviceFill, DeviceRegion, DeviceResult, Drained, Scanned,
    Which,
};
use standfast_format::HashKind;
use standfast_reduce::PageHasher;

pub use backend::{Backend, Before, Encoding, Filler, Place};
pub use cuda::Cuda;
pub use fill::CudaFiller;
pub use open::{open, pointer_device};

use crate::error::{Error, Result};
use copies::{Copied, Staging};
use drain::Encoders;
use fill::Filling;

/// What pages of device regions are encoded with before they cross.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Choice {
    /// What makes a sample smallest; nothing where nothing pays.
    #[default]
    Auto,
    /// Nothing: the processor encodes.
    None,
    /// The float codec, by the size of the region's numbers.
    Float,
    /// Deflate.
    Deflate,
}

/// How device regions are followed.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    /// The job's key for page hashes.
    pub key: [u8; 32],
    /// How pages are hashed. Devices know `xxh3`; for others the processor hashes copies.
    pub hash: HashKind,
    /// Length of a page.
    pub page_bytes: usize,
    /// Most bytes of staged pages.
    pub staging_bytes: usize,
    /// What they are encoded with.
    pub choice: Choice,
}

/// The regions of one device.
pub struct DeviceMemory<B: Backend> {
    backend: B,
    settings: Settings,
    hasher: PageHasher,
    /// Whether kernels are tried at all.
    kernels: bool,
    regions: Vec<Option<Entry<B>>>,
    arena: Option<Arena<B>>,
    /// Staged pages in their order.
    staged: Vec<Slot>,
    copies: Staging,
    encoders: Encoders<B>,
    notices: Notices,
}

struct Entry<B: Backend> {
    place: Place,
    tracker: Option<B::Tracker>,
    /// Whether the tracker's hashes are those that the engine knows.
    in_step: bool,
    /// What the device found in the last scan.
    found: Scanned,
    /// What the processor found, where it had to look itself.
    copied: Option<Copied>,
}

struct Arena<B: Backend> {
    memory: B::Arena,
    pages: usize,
    used: usize,
}

/// Where a staged page is.
#[derive(Clone, Copy)]
enum Slot {
    Device(u32),
    Host(u32),
}

impl Slot {
    fn number(self) -> u32 {
        match self {
            Slot::Device(at) | Slot::Host(at) => at,
        }
    }
}

/// What is to be said.
#[derive(Default)]
struct Notices {
    pending: Vec<String>,
    /// Whether a fault was told.
    told: bool,
}

impl Notices {
    /// Something that the processor makes good: told once, for the first tells it all.
    fn takes_over(&mut self, why: impl std::fmt::Display) {
        if !std::mem::replace(&mut self.told, true) {
            self.pending.push(format!("the CPU takes over from the GPU: {why}"));
        }
    }
}

/// Staging smaller than this is not worth the steps.
const STAGING_BYTES_MIN: usize = 4 << 20;

impl<B: Backend> DeviceMemory<B> {
    /// Follows regions on this device. `without` says why no kernel can run there, if none can.
    pub fn new(backend: B, settings: Settings, without: Option<String>) -> Self {
        let mut notices = Notices::default();
        if let Some(why) = &without {
            notices.takes_over(why);
        }
        let known = settings.hash == HashKind::Xxh3;
        if !known {
            notices.takes_over(format_args!("no kernel has the hash {}", settings.hash));
        }
        Self {
            hasher: PageHasher::new(settings.hash, &settings.key),
            kernels: without.is_none() && known,
            regions: Vec::new(),
            arena: None,
            staged: Vec::new(),
            copies: Staging::default(),
            encoders: Encoders::default(),
            backend,
            settings,
            notices,
        }
    }

    fn entry(&mut self, region: DeviceRegion) -> Result<&mut Entry<B>> {
        let found = self.regions.get_mut(region.0 as usize).and_then(Option::as_mut);
        found.ok_or_else(|| Error::invalid(format!("no device region {}", region.0)))
    }

    fn scan_there(&mut self, region: DeviceRegion, before: Option<&[u8]>) -> Result<Scanned> {
        let entry = self.regions[region.0 as usize].as_mut().expect("it was looked up");
        let tracker = match &mut entry.tracker {
            Some(tracker) => tracker,
            none => none.insert(self.backend.tracker(entry.place)?),
        };
        let before = match before {
            None => Before::Nothing,
            Some(_) if entry.in_step => Before::Last,
            Some(hashes) => Before::Hashes(hashes),
        };
        entry.in_step = false;
        let found = self.backend.scan(tracker, before)?;
        (entry.in_step, entry.found, entry.copied) = (true, found, None);
        Ok(found)
    }

    fn scan_any(&mut self, region: DeviceRegion, before: Option<&[u8]>) -> Result<Scanned> {
        let place = self.entry(region)?.place;
        let before = before.filter(|hashes| hashes.len() == place.pages() * self.hasher.bytes());
        self.backend.finish_program()?;
        if self.kernels {
            match self.scan_there(region, before) {
                Err(error) if error.is_made_good() => self.notices.takes_over(&error),
                outcome => return outcome,
            }
        }
        let copied = Copied::scan(&self.backend, &self.hasher, place, before)?;
        let found = copied.found();
        let entry = self.entry(region)?;
        (entry.copied, entry.in_step) = (Some(copied), false);
        Ok(found)
    }

    /// Staging on the device, as large as there is memory for.
    fn make_arena(&mut self) -> Result<()> {
        if self.arena.is_some() {
            return Ok(());
        }
        let page_bytes = self.settings.page_bytes;
        let least = STAGING_BYTES_MIN.min(self.settings.staging_bytes);
        let mut bytes = self.settings.staging_bytes;
        loop {
            let pages = (bytes / page_bytes).max(1);
            match self.backend.arena(pages, page_bytes) {
                Ok(memory) => {
                    self.arena = Some(Arena { memory, pages, used: 0 });
                    return Ok(());
                }
                Err(Error::OutOfMemory { .. }) if bytes / 2 >= least => bytes /= 2,
                Err(error) => return Err(error),
            }
        }
    }

    /// Stages on the device.
    fn stage_there(
        &mut self,
        region: DeviceRegion,
        which: Which<'_>,
        wanted: usize,
    ) -> Result<usize> {
        self.make_arena()?;
        let arena = self.arena.as_mut().expect("it was made");
        let entry = self.regions[region.0 as usize].as_ref().expect("it was looked up");
        let tracker = entry.tracker.as_ref().expect("it was scanned");
        let count = wanted.min(arena.pages - arena.used);
        if count > 0 {
            self.backend.stage(tracker, which, count, &arena.memory, arena.used)?;
            self.staged
                .extend((arena.used..arena.used + count).map(|slot| Slot::Device(slot as u32)));
            arena.used += count;
        }
        Ok(count)
    }

    fn stage_any(&mut self, region: DeviceRegion, which: Which<'_>) -> Result<u64> {
        let entry = self.entry(region)?;
        let (place, scanned_here) =
            (entry.place, entry.copied.is_none() && entry.tracker.is_some());
        let wanted = match which {
            Which::Pages(pages) => pages.len(),
            Which::Changed { first } => (self.changed_count(region)? - first) as usize,
        };
        if wanted == 0 {
            return Ok(0);
        }
        if scanned_here {
            match self.stage_there(region, which, wanted) {
                Err(error) if error.is_made_good() => self.notices.takes_over(&error),
                outcome => return Ok(outcome? as u64),
            }
        }
        let room = self.copies.room(self.settings.staging_bytes, place.page_bytes);
        let count = wanted.min(room);
        let pages = match which {
            Which::Pages(pages) => pages[..count].to_vec(),
            Which::Changed { first } => self.changed_any(region, first, count as u64)?.pages,
        };
        let slots = self.copies.take(&self.backend, place, &pages)?;
        self.staged.extend(slots.map(Slot::Host));
        Ok(count as u64)
    }

    fn changed_count(&mut self, region: DeviceRegion) -> Result<u64> {
        let entry = self.entry(region)?;
        Ok(match &entry.copied {
            Some(copied) => copied.found().changed,
            None => entry.found.changed,
        })
    }

    fn changed_any(
        &mut self,
        region: DeviceRegion,
        first: u64,
        count: u64,
    ) -> Result<ChangedPages> {
        self.entry(region)?;
        let entry = self.regions[region.0 as usize].as_ref().expect("it was looked up");
        match (&entry.copied, &entry.tracker) {
            (Some(copied), _) => Ok(copied.changed(first, count)),
            (None, Some(tracker)) => self.backend.changed(tracker, first, count),
            (None, None) => Err(Error::invalid("a region that was not scanned")),
        }
    }
}

impl<B: Backend> Device for DeviceMemory<B> {
    unsafe fn register(&mut self, at: u64, bytes: usize) -> DeviceResult<DeviceRegion> {
        if !at.is_multiple_of(16) {
            let why = format!("a device region starts at a multiple of 16, not at {at:#x}");
            return Err(Error::invalid(why).into());
        }
        let place = Place { at, bytes, page_bytes: self.settings.page_bytes };
        let found = Scanned::default();
        let entry = Entry { place, tracker: None, in_step: false, found, copied: None };
        let free = self.regions.iter().position(Option::is_none);
        let at = free.unwrap_or_else(|| {
            self.regions.push(None);
            self.regions.len() - 1
        });
        self.regions[at] = Some(entry);
        Ok(DeviceRegion(at as u32))
    }

    fn release(&mut self, region: DeviceRegion) {
        if let Some(entry) = self.regions.get_mut(region.0 as usize) {
            *entry = None;
        }
    }

    fn scan(&mut self, region: DeviceRegion, before: Option<&[u8]>) -> DeviceResult<Scanned> {
        Ok(self.scan_any(region, before)?)
    }

    fn changed(
        &mut self,
        region: DeviceRegion,
        first: u64,
        count: u64,
    ) -> DeviceResult<ChangedPages> {
        Ok(self.changed_any(region, first, count)?)
    }

    fn zeroed(&mut self, region: DeviceRegion) -> DeviceResult<Vec<u64>> {
        self.entry(region)?;
        let entry = self.regions[region.0 as usize].as_ref().expect("it was looked up");
        Ok(match (&entry.copied, &entry.tracker) {
            (Some(copied), _) => copied.zeroed().to_vec(),
            (None, Some(tracker)) => self.backend.zeroed(tracker)?,
            (None, None) => Vec::new(),
        })
    }

    fn stage(&mut self, region: DeviceRegion, which: Which<'_>) -> DeviceResult<u64> {
        Ok(self.stage_any(region, which)?)
    }

    fn drain(
        &mut self,
        staged: &[u32],
        elem: u8,
        encoded: bool,
        take: &mut dyn FnMut(Drained<'_>) -> bool,
    ) -> DeviceResult<()> {
        let choice = if encoded { self.settings.choice } else { Choice::None };
        Ok(self.drain_any(staged, elem, choice, take)?)
    }

    fn clear(&mut self) {
        self.staged.clear();
        self.copies.clear();
        if let Some(arena) = &mut self.arena {
            arena.used = 0;
        }
    }

    fn fill(&mut self) -> DeviceResult<Box<dyn DeviceFill>> {
        // Whatever is known of the regions from now on comes from elsewhere.
        self.regions.iter_mut().flatten().for_each(|entry| entry.in_step = false);
        let places = self.regions.iter().map(|entry| Some(entry.as_ref()?.place)).collect();
        Ok(Box::new(Filling { filler: self.backend.filler()?, places }))
    }

    fn messages(&mut self) -> Vec<String> {
        std::mem::take(&mut self.notices.pending)
    }
}

impl From<Error> for DeviceError {
    fn from(error: Error) -> Self {
        DeviceError { kind: error.kind(), why: error.to_string() }
    }
}
