//! Taking a checkpoint: one sequence for memory that is stopped, frozen or on a device.
//!
//! ```text
//! freeze -> look -> assign -> keep -> bring -> locate
//! ```
//! A variant is a value: who provides the pages ([`PageSource`](standfast_reduce::PageSource)), who
//! stores them ([`Place`]), and after which step the program is let go: after *freeze* where a
//! snapshot or the device's staging memory has everything, after *keep* where ranks have agreed and
//! the device has this rank's share, otherwise after *locate*. What is left is done by
//! [`Attempt::take_in`] on the committer's thread.
//!
//! A job of several ranks freezes on all of them, or stops all of them. What the ranks have to agree
//! on they agree on behind the program, which needs a communicator that any thread may use.
//!
//! Alone, looking and bringing are one pass.

use std::time::Instant;

use standfast_capture::{Dirty, Regions, Wanted};
use standfast_comm::{Collective, Step};
use standfast_reduce::{Positions, Target};
use standfast_restart::Inventory;

use super::attempt::{Attempt, Captured, Frozen, Next, Taken};
use super::bring::{Bringing, Pages};
use super::device::{DevicePages, SharedDevice};
use super::draft::{GivenUp, Order, Stored, elapsed_ns};
use super::ledger::Ledger;
use super::place::Place;
use super::remembered::{Env, Remembered};
use super::stopped::Stopped;
use super::storing::{Storing, expected_bytes};
use super::writer::Writer;
use crate::config::{Capture, Mode};
use crate::error::{Error, Result};

/// What is to be taken.
#[derive(Clone, Copy)]
pub(crate) struct Asked<'a> {
    pub(crate) regions: &'a Regions,
    pub(crate) device: Option<&'a SharedDevice>,
    pub(crate) order: Order,
    pub(crate) inventory: &'a Inventory,
}

/// Takes a checkpoint, as far as the program must wait for it. Collective.
///
/// # Safety
/// The memory of every region is mapped until the checkpoint is taken in, and nobody writes to it
/// until this returns.
pub(crate) unsafe fn take(
    memory: &mut Remembered,
    asked: Asked<'_>,
    team: &Collective,
) -> Result<Taken> {
    // SAFETY: the caller vouches for the memory.
    if let Some(frozen) = unsafe { freeze(memory, asked, team) }? {
        return Ok(Taken::Frozen(Box::new(frozen)));
    }
    // SAFETY: as above.
    unsafe { stop(memory, asked, team) }
}

/// Freezes the state of all regions. `None` where the program must be stopped instead; the
/// report's notes will tell why. Collective.
///
/// # Safety
/// As [`take`].
unsafe fn freeze(
    memory: &mut Remembered,
    asked: Asked<'_>,
    team: &Collective,
) -> Result<Option<Attempt<Frozen>>> {
    let Asked { regions, order, inventory, .. } = asked;
    if memory.env.config.capture == Capture::Stop {
        return Ok(None);
    }
    let started = Instant::now();
    let [none] = *team.all_hold(
        Step("freeze: devices"),
        [regions.iter().all(|region| region.device().is_none())],
    )?;
    if !none {
        memory.note_stop("device memory is staged, and host memory with it");
        return Ok(None);
    }
    // The same on all ranks: they have agreed on the settings it follows from.
    if let Some(why) = memory.place.needs_stop(team) {
        memory.note_stop(why);
        return Ok(None);
    }
    memory.prepare(regions, inventory, team)?;
    let (page_bytes, threads) = (memory.env.scanner.page_bytes(), memory.env.scanner.threads());
    let positions = memory.ledger.take_positions(regions);
    let dirty = memory.tracks.collect(regions, page_bytes);
    let wanted = wanted(regions, &positions, &dirty);
    // SAFETY: the caller vouches for the memory.
    let taken = unsafe { memory.tracks.snapshot(&wanted, page_bytes, threads) };
    let all = team.all_hold(Step("freeze"), [taken.is_ok()]).map(|all| *all);
    match (taken, all) {
        (Ok(snapshot), Ok([true])) => {
            let dirty = wanted.into_iter().map(|wanted| wanted.pages).collect();
            let next = Next::Look { snapshot, dirty };
            let state = Frozen { blocked_ns: elapsed_ns(started), next };
            Ok(Some(Attempt { order, started, regions: regions.clone(), positions, state }))
        }
        (taken, all) => {
            let why = taken.err().unwrap_or_else(|| "another rank cannot do otherwise".into());
            memory.note_stop(&why);
            memory.tracks.keep(regions, dirty);
            memory.ledger.put_positions(regions, positions);
            Ok(all.map(|_| None)?)
        }
    }
}

/// What a snapshot must hold.
fn wanted(regions: &Regions, positions: &[Positions], dirty: &[Dirty]) -> Vec<Wanted> {
    let known =
        positions.iter().zip(dirty).map(|(positions, dirty)| match positions.is_unknown() {
            true => Dirty::All,
            false => dirty.clone(),
        });
    regions.iter().zip(known).map(|(region, pages)| Wanted { span: region.span(), pages }).collect()
}

/// Captures all regions while the program is stopped. Collective.
///
/// # Safety
/// As [`take`].
unsafe fn stop(memory: &mut Remembered, asked: Asked<'_>, team: &Collective) -> Result<Taken> {
    let Asked { regions, device, order, inventory } = asked;
    let started = Instant::now();
    memory.prepare(regions, inventory, team)?;
    let Remembered { env, ledger, place, tracks, writer, notes } = memory;
    let page_bytes = env.scanner.page_bytes();
    let mut positions = ledger.take_positions(regions);
    let dirty = tracks.collect(regions, page_bytes);
    // SAFETY: the caller vouches for the memory.
    let here = unsafe { Stopped::new(regions, page_bytes) };
    let mut phase = Phase { env, ledger, writer, regions, order };
    let (stored, device) = tracks.arm_beside(regions, || {
        let ahead = matches!(place, Place::Alone);
        let scan = |device| DevicePages::scan(regions, device, &positions, (page_bytes, ahead));
        let (ready, device) = match device.map(scan).transpose() {
            Ok(device) => (Ok(()), device.flatten()),
            Err(error) => (Err(error), None),
        };
        let mut scope = Scope { positions: &mut positions, dirty: &dirty };
        let stored = match place {
            Place::Alone => ready
                .map_err(GivenUp::early)
                .and_then(|()| phase.alone(&here, &mut scope, None))
                .and_then(|stored| phase.stage(device.as_ref(), &mut scope, stored)),
            Place::Together(placement) => {
                let mut sources: Vec<&Pages<'_>> = vec![&here];
                sources.extend(device.as_ref().map(|device| -> &Pages<'_> { device }));
                phase.together(&mut **placement, team, &sources, &mut scope, ready)
            }
        };
        (stored, device)
    });
    notes.extend(device.iter().flat_map(DevicePages::messages));
    let begun = match &stored {
        Ok(stored) => stored.own.iter().chain(&stored.foreign).copied().collect(),
        Err(given_up) => given_up.begun.clone(),
    };
    let stored = team.agree(Step("capture"), stored.map_err(|given_up| given_up.error));
    let stored = stored.inspect_err(|_| memory.forget_attempt(&begun))?;
    let attempt = Attempt { order, started, regions: regions.clone(), positions, state: () };
    // Pages may still be on the device: staged before anybody looked, or with places reserved.
    let alone = matches!(memory.place, Place::Alone);
    Ok(match device.filter(|_| alone || !stored.reserved.is_empty()) {
        Some(device) => {
            let stored = Box::new(stored);
            let (blocked_ns, next) = (elapsed_ns(started), Next::Bring { device, stored });
            Taken::Frozen(Box::new(attempt.with(Frozen { blocked_ns, next })))
        }
        None => {
            let captured = attempt.with(Captured { blocked_ns: None, stored });
            Taken::Captured(Box::new(captured.draft(memory)))
        }
    })
}

/// What is known of the regions, and what may have been written since.
pub(super) struct Scope<'a> {
    pub(super) positions: &'a mut [Positions],
    pub(super) dirty: &'a [Dirty],
}

impl Scope<'_> {
    /// The regions as a scan wants them.
    pub(super) fn targets(&mut self, mode: Mode) -> Vec<Target<'_>> {
        let trust_dirty = mode == Mode::Incremental;
        let target = |(positions, dirty)| match dirty {
            &Dirty::All => Target { positions, dirty: None, trust_dirty },
            Dirty::Pages(bits) => Target { positions, dirty: Some(bits.as_slice()), trust_dirty },
        };
        self.positions.iter_mut().zip(self.dirty).map(target).collect()
    }
}

/// What storing the pages of one attempt works on.
pub(super) struct Phase<'a> {
    pub(super) env: &'a Env,
    pub(super) ledger: &'a mut Ledger,
    pub(super) writer: &'a mut Writer,
    pub(super) regions: &'a Regions,
    pub(super) order: Order,
}

impl Phase<'_> {
    pub(super) fn storing(&mut self, expected_bytes: u64) -> Storing<'_> {
        let catalog = &mut self.ledger.catalog;
        self.writer.begin(self.env, catalog, (self.regions, self.order), expected_bytes)
    }

    /// Looks and stores what is new in one pass, by this rank alone. `expected_pages`: how many may
    /// be new, where somebody knows better than the tracker.
    pub(super) fn alone(
        &mut self,
        source: &Pages<'_>,
        scope: &mut Scope<'_>,
        expected_pages: Option<u64>,
    ) -> std::result::Result<Stored, GivenUp> {
        let started = Instant::now();
        let (mode, page_bytes) = (self.env.config.mode, self.env.config.page.0);
        let expected_bytes = expected_pages.map_or_else(
            || expected_bytes(self.regions, scope.positions, scope.dirty, page_bytes),
            |pages| pages * page_bytes,
        );
        if mode.finds_equal() {
            self.ledger.catalog.reserve((expected_bytes / page_bytes) as usize);
        }
        // Where most pages are new, the encoders want a core: one thread less. If that leaves one,
        // it hashes what it copies instead of copying what it hashed.
        let mostly_new = expected_bytes > self.regions.host_bytes() / 2;
        let scanner = &self.env.scanner;
        let scanner = scanner.with_threads(scanner.threads() - usize::from(mostly_new));
        let mut store = self.storing(expected_bytes);
        let mut bringing = Bringing::new(&mut store, source);
        let scanned = scanner
            .scan(source, &mut scope.targets(mode), &mut bringing)
            .and_then(|()| bringing.flush());
        match scanned.and_then(|()| store.close()).and_then(|()| source.end()) {
            Ok(()) => {
                let stored = Stored::of(store.batch.finish(), store.begun);
                Ok(Stored { scan_ns: elapsed_ns(started), ..stored })
            }
            Err(error) => Err(GivenUp { error, begun: store.begun }),
        }
    }

    /// Stages what changed on the device; what does not fit is stored now.
    fn stage(
        &mut self,
        device: Option<&DevicePages>,
        scope: &mut Scope<'_>,
        mut stored: Stored,
    ) -> std::result::Result<Stored, GivenUp> {
        let Some(device) = device else { return Ok(stored) };
        let mut round = || -> std::result::Result<(), GivenUp> {
            while !device.stage().map_err(GivenUp::early)? {
                stored.join(self.alone(device, scope, Some(device.staged_pages()))?);
            }
            Ok(())
        };
        match round() {
            Ok(()) => Ok(stored),
            Err(given_up) => Err(given_up.after(&stored)),
        }
    }

    /// Brings what was set aside to the segments that are reserved for it.
    pub(super) fn bring_reserved(
        &mut self,
        device: &DevicePages,
        stored: &Stored,
    ) -> std::result::Result<Stored, GivenUp> {
        let mut store = self.storing(0);
        let brought = stored.reserved.iter().try_for_each(|segment| {
            store.batch.open_segment(segment.id, None);
            Bringing::fill(&mut store, device, &segment.pages, &segment.hashes)?;
            store.batch.close_segment().map_err(Error::from)
        });
        match brought.and_then(|()| standfast_reduce::PageSource::end(device)) {
            Ok(()) => Ok(Stored::of(store.batch.finish(), Vec::new())),
            Err(error) => Err(GivenUp::early(error)),
        }
    }
}
