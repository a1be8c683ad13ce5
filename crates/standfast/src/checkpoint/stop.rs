//! Capturing while the program is stopped: pages are read where they lie.
//!
//! Data: regions -> scan -> changed pages -> catalog: known ones become references, new ones are
//! copied into blocks -> [`Draft`] for the committer.

use std::sync::Arc;
use std::time::Instant;

use standfast_capture::{Dirty, Region, Regions, Span};
use standfast_comm::{Collective, Step};
use standfast_reduce::{Consume, Positions, Target};
use standfast_restart::Inventory;

use super::capture::Capturer;
use super::device::{SharedDevice, Staged, Staging};
use super::draft::{Draft, GivenUp, Order, Taken, elapsed_ns};
use super::storing::expected_bytes;
use crate::config::Mode;
use crate::error::Result;

/// What a call has captured.
pub(crate) enum Captured {
    /// All of it.
    Draft(Box<Draft>),
    /// All but pages that are staged on a device; the program may go on.
    Staged(Box<Staged>),
}

impl Capturer {
    /// Captures all regions.
    ///
    /// # Safety
    /// The memory of every region is mapped, and nobody writes to it until this returns.
    pub(crate) unsafe fn capture(
        &mut self,
        regions: &Regions,
        order: Order,
        inventory: &Inventory,
        team: &Collective,
        device: Option<&SharedDevice>,
    ) -> Result<Captured> {
        let started = Instant::now();
        self.prepare(regions, inventory, team)?;
        let mut positions = self.take_positions(regions);
        let staging = Staging { regions, device, order };
        let mut parts = Vec::new();
        let alone = staging.has_regions() && !self.sharing.is_on();
        let taken = match self.sharing.is_on() {
            // SAFETY: the caller vouches for the memory.
            true => unsafe { self.take_together(staging, &mut positions, team) },
            false => {
                // SAFETY: as above.
                let here = unsafe { self.take_alone(regions, &mut positions, order) };
                here.and_then(|taken| {
                    self.take_devices(staging, &mut positions, taken, &mut parts, alone)
                })
            }
        };
        let begun = match &taken {
            Ok(taken) => taken.own.iter().chain(&taken.foreign).copied().collect(),
            Err(given_up) => given_up.begun.clone(),
        };
        let taken = team.agree(Step("capture"), taken.map_err(|given_up| given_up.error));
        let taken = taken.inspect_err(|_| self.forget_attempt(&begun))?;
        // Ranks that share pages have agreed on them; some may still be on the device.
        let later = alone || !taken.reserved.is_empty();
        if let Some(device) = device.filter(|_| later) {
            let (regions, device) = (regions.clone(), Arc::clone(device));
            let blocked_ns = elapsed_ns(started);
            let staged =
                Staged { regions, order, started, blocked_ns, positions, taken, parts, device };
            return Ok(Captured::Staged(Box::new(staged)));
        }
        let mut draft = self.draft(regions, order, started, positions, taken);
        draft.stats.blocked_ns = elapsed_ns(started);
        self.hand_over(&mut draft);
        Ok(Captured::Draft(Box::new(draft)))
    }

    /// Asks what was written, lets `scan` look at it, and starts watching new regions beside that:
    /// the program is stopped, so nothing is written in between.
    pub(super) fn with_dirty<T>(
        &mut self,
        regions: &Regions,
        scan: impl FnOnce(&mut Self, &[Dirty]) -> T,
    ) -> T {
        let spans: Vec<Span> = regions.iter().map(|region| region.span()).collect();
        let dirty = self.collect_dirty(regions);
        let Some(mut watch) = self.watch.take() else { return scan(self, &dirty) };
        let new = watch.to_arm(&spans);
        let scanned = std::thread::scope(|scope| {
            let watch = &mut watch;
            let arming = scope.spawn(move || {
                watch.part();
                new.iter().for_each(|span| watch.start(*span));
            });
            let scanned = scan(self, &dirty);
            arming.join().expect("arming does not panic");
            scanned
        });
        self.watch = Some(watch);
        scanned
    }

    /// Scans, finds and copies, all by this rank alone.
    ///
    /// # Safety
    /// As [`Capturer::capture`]: mapped, and nobody writes to it until this returns.
    unsafe fn take_alone(
        &mut self,
        regions: &Regions,
        positions: &mut [Positions],
        order: Order,
    ) -> std::result::Result<Taken, GivenUp> {
        let started = Instant::now();
        let taken = self.with_dirty(regions, |this, dirty| {
            // SAFETY: the caller vouches for the memory.
            unsafe { this.scan_and_store(regions, positions, dirty, order) }
        });
        taken.map(|taken| Taken { scan_ns: elapsed_ns(started), ..taken })
    }

    unsafe fn scan_and_store(
        &mut self,
        regions: &Regions,
        positions: &mut [Positions],
        dirty: &[Dirty],
        order: Order,
    ) -> std::result::Result<Taken, GivenUp> {
        let expected_bytes = expected_bytes(regions, positions, dirty, self.config.page.0);
        if self.config.mode.finds_equal() {
            self.catalog.reserve((expected_bytes / self.config.page.0) as usize);
        }
        let (mut elsewhere, mode) = (elsewhere(regions), self.config.mode);
        // SAFETY: the caller vouches for the memory.
        let mut targets = unsafe { targets(regions, positions, &mut elsewhere, dirty, mode) };
        let scanner = self.scanner.clone();
        let mut store = self.storing(regions, order, expected_bytes);
        // Where most pages are new, the encoders want a core: one thread less. If that leaves one,
        // it hashes what it copies instead of copying what it hashed.
        let mostly_new = expected_bytes > regions.host_bytes() / 2;
        let scanned = match scanner.threads() - usize::from(mostly_new) {
            0 | 1 => scanner.walk(&mut targets, &mut store),
            threads => {
                let scanner = scanner.with_threads(threads);
                scanner.scan(&mut targets, |page| store.changed(page))
            }
        };
        match scanned.and_then(|()| store.close()) {
            Ok(()) => Ok(Taken::of(store.batch.finish(), store.begun)),
            Err(error) => Err(GivenUp { error, begun: store.begun }),
        }
    }
}

/// Stand-ins for what is known of regions that are scanned elsewhere.
pub(super) fn elsewhere(regions: &Regions) -> Vec<Positions> {
    regions.iter().map(|_| Positions::default()).collect()
}

/// What to scan here; a region on a device is empty here.
///
/// # Safety
/// The memory of every region is mapped, and nobody writes to it while the targets are used.
pub(super) unsafe fn targets<'a>(
    regions: &'a Regions,
    positions: &'a mut [Positions],
    elsewhere: &'a mut [Positions],
    dirty: &'a [Dirty],
    mode: Mode,
) -> Vec<Target<'a>> {
    let known = positions.iter_mut().zip(elsewhere).zip(regions.iter());
    let known = known.map(|((here, elsewhere), region)| match region.device() {
        Some(_) => elsewhere,
        None => here,
    });
    let target = |((region, positions), dirty): ((&'a Region, &'a mut Positions), &'a Dirty)| {
        let dirty = match dirty {
            Dirty::All => None,
            Dirty::Pages(bits) => Some(bits.as_slice()),
        };
        // SAFETY: the caller vouches for the memory.
        let bytes = unsafe { region.memory() };
        Target { bytes, positions, dirty, trust_dirty: mode == Mode::Incremental }
    };
    regions.iter().zip(known).zip(dirty).map(target).collect()
}
