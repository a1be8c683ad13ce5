//! Regions in the memory of a device as a source of pages.
//!
//! ```text
//! alone:    hashed there -> what changed is staged there -> return
//!           thread: their hashes -> catalog -> new ones encoded there -> cross -> blocks
//! together: hashed there -> the ranks agree by the hashes -> this rank's share is staged -> return
//!           thread: the share is encoded there -> crosses -> places reserved for it
//! ```
//! What does not fit the staging memory is stored while the program waits.
//!
//! Invariants:
//! - What is staged is cleared before anything is staged for another checkpoint.
//! - Staged pages are ascending: a page is found among them by its region and number.

use std::cell::RefCell;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use standfast_capture::{Device, DeviceRegion, Drained, Regions, Which};
use standfast_reduce::{Brought, Encoded, Hashed, PageAt, PageSource, PageTable, Reach, Take};

use crate::error::{Error, Result};

/// A device that the program's thread and the committer's use in turn.
pub type SharedDevice = Arc<Mutex<Box<dyn Device>>>;

/// The device, for one user at a time.
pub fn lock_device(device: &SharedDevice) -> MutexGuard<'_, Box<dyn Device>> {
    // Whatever a panic left behind, the next scan begins anew.
    device.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The regions on the device at one call.
pub(crate) struct DevicePages {
    device: SharedDevice,
    /// By region; `None`: it lies elsewhere.
    regions: Vec<Option<OnDevice>>,
    /// Whether what changed is staged before anybody looks at it.
    ahead: bool,
    staged: RefCell<Staged>,
}

/// A region on the device, and what its scan found.
#[derive(Clone)]
struct OnDevice {
    region: DeviceRegion,
    bytes: usize,
    elem: u8,
    changed: u64,
    zeroed: Vec<u64>,
}

/// What is staged.
#[derive(Default)]
struct Staged {
    /// The region to go on with, and how many of its changed pages were staged.
    next: (usize, u64),
    runs: Vec<StagedRun>,
    /// The pages in the order of their staging, as far as they are known.
    pages: Vec<PageAt>,
}

/// Changed pages of a region: `count` of them, from the `first` on.
#[derive(Clone, Copy)]
struct StagedRun {
    at: usize,
    first: u64,
    count: u64,
}

impl DevicePages {
    /// Hashes the regions on a device and finds what differs from `positions`; `None` if there are
    /// none. `ahead`: what changed will be staged before it is looked at.
    pub(crate) fn scan(
        regions: &Regions,
        device: &SharedDevice,
        positions: &[PageTable],
        (page_bytes, ahead): (usize, bool),
    ) -> Result<Option<Self>> {
        let mut on_device = Vec::new();
        let mut held = lock_device(device);
        for (region, positions) in regions.iter().zip(positions) {
            let Some(of) = region.device() else {
                on_device.push(None);
                continue;
            };
            let pages = region.bytes().div_ceil(page_bytes);
            let found = held.scan(of, positions.known_hashes(pages))?;
            let zeroed = if found.zeroed > 0 { held.zeroed(of)? } else { Vec::new() };
            let (bytes, elem, changed) = (region.bytes(), region.elem(), found.changed);
            on_device.push(Some(OnDevice { region: of, bytes, elem, changed, zeroed }));
        }
        if on_device.iter().all(Option::is_none) {
            return Ok(None);
        }
        // What a failed attempt may have left.
        held.clear();
        let (device, staged) = (Arc::clone(device), RefCell::default());
        Ok(Some(Self { device, regions: on_device, ahead, staged }))
    }

    /// Stages changed pages until all are staged, or no more fit; true if all are.
    pub(crate) fn stage(&self) -> Result<bool> {
        let mut staged = self.staged.borrow_mut();
        while let Some(region) = self.regions.get(staged.next.0) {
            let (at, first) = staged.next;
            let Some(region) = region.as_ref().filter(|region| first < region.changed) else {
                staged.next = (at + 1, 0);
                continue;
            };
            match self.device().stage(region.region, Which::Changed { first })? {
                0 if staged.runs.is_empty() => return Err(Error::Broken { what: "staging" }),
                0 => return Ok(false),
                count => {
                    staged.runs.push(StagedRun { at, first, count });
                    staged.next.1 += count;
                }
            }
        }
        Ok(true)
    }

    /// How many pages are staged and were not looked at.
    pub(crate) fn staged_pages(&self) -> u64 {
        self.staged.borrow().runs.iter().map(|part| part.count).sum()
    }

    /// What the program should know of the device.
    pub(crate) fn messages(&self) -> Vec<String> {
        self.device().messages()
    }

    fn device(&self) -> MutexGuard<'_, Box<dyn Device>> {
        lock_device(&self.device)
    }

    fn of(&self, at: PageAt) -> Result<&OnDevice> {
        let region = self.regions.get(at.region as usize).and_then(Option::as_ref);
        region.ok_or(Error::Broken { what: "looking for a page on the device" })
    }

    /// Stages pages of one region, as many as fit.
    fn stage_pages(&self, device: &mut dyn Device, run: &[PageAt]) -> Result<usize> {
        let pages: Vec<u64> = run.iter().map(|at| u64::from(at.page)).collect();
        Ok(device.stage(self.of(run[0])?.region, Which::Pages(&pages))? as usize)
    }
}

impl PageSource for DevicePages {
    type Error = Error;

    fn reach(&self, region: usize) -> Option<Reach<'_>> {
        self.regions.get(region)?.as_ref().map(|region| Reach::Hashed(region.bytes))
    }

    fn hashed(&self, region: usize) -> Result<Hashed> {
        let Some(Some(of)) = self.regions.get(region) else { return Ok(Hashed::default()) };
        let mut staged = self.staged.borrow_mut();
        let runs: Vec<StagedRun> = match self.ahead {
            true => staged.runs.iter().filter(|part| part.at == region).copied().collect(),
            false => vec![StagedRun { at: region, first: 0, count: of.changed }],
        };
        let mut found = Hashed { zeroed: of.zeroed.clone(), ..Hashed::default() };
        for part in runs {
            let changed = self.device().changed(of.region, part.first, part.count)?;
            if self.ahead {
                let at = |page: &u64| PageAt { region: region as u32, page: *page as u32 };
                staged.pages.extend(changed.pages.iter().map(at));
            }
            found.pages.extend(changed.pages);
            found.hashes.extend(changed.hashes);
        }
        Ok(found)
    }

    fn keep(&self, pages: &[PageAt]) -> Result<bool> {
        let mut device = self.device();
        device.clear();
        for run in pages.chunk_by(|a, b| a.region == b.region) {
            if self.stage_pages(&mut **device, run)? < run.len() {
                device.clear();
                return Ok(false);
            }
        }
        self.staged.borrow_mut().pages = pages.to_vec();
        Ok(!pages.is_empty())
    }

    fn bring(&self, pages: &[PageAt], encoded: bool, take: &mut Take<'_, Error>) -> Result<()> {
        let staged = self.staged.borrow();
        let number = |at: &PageAt| staged.pages.binary_search(at).ok().map(|number| number as u32);
        let mut device = self.device();
        for run in pages.chunk_by(|a, b| a.region == b.region) {
            let elem = self.of(run[0])?.elem;
            if let Some(numbers) = run.iter().map(number).collect::<Option<Vec<u32>>>() {
                drain(&mut **device, &numbers, (elem, encoded), take)?;
                continue;
            }
            let mut rest = run;
            while !rest.is_empty() {
                device.clear();
                let count = self.stage_pages(&mut **device, rest)?;
                if count == 0 {
                    return Err(Error::Broken { what: "staging" });
                }
                let numbers: Vec<u32> = (0..count as u32).collect();
                drain(&mut **device, &numbers, (elem, encoded), take)?;
                rest = &rest[count..];
            }
        }
        Ok(())
    }

    fn end(&self) -> Result<()> {
        let mut staged = self.staged.borrow_mut();
        staged.runs.clear();
        staged.pages.clear();
        self.device().clear();
        Ok(())
    }
}

/// Brings staged pages over.
fn drain(
    device: &mut dyn Device,
    numbers: &[u32],
    (elem, encoded): (u8, bool),
    take: &mut Take<'_, Error>,
) -> Result<()> {
    let mut outcome = Ok(());
    device.drain(numbers, elem, encoded, &mut |drained| {
        outcome = take(match drained {
            Drained::Block { pages, codec, filter, bytes } => {
                Brought::Block { pages, encoded: Encoded { codec, filter, bytes } }
            }
            Drained::Pages(bytes) => Brought::Pages(bytes),
        });
        outcome.is_ok()
    })?;
    outcome
}
