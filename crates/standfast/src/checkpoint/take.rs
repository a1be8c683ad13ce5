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

use std::time::Instant;

use standfast_capture::{Dirty, Regions, Wanted};
use standfast_comm::{Collective, Step};
use standfast_reduce::Positions;
use standfast_restart::Inventory;

use super::attempt::{Attempt, Captured, Frozen, Next, Taken};
use super::device::{DevicePages, SharedDevice};
use super::draft::{Order, elapsed_ns};
use super::phase::Phase;
use super::place::Place;
use super::remembered::Remembered;
use super::stopped::Stopped;
use crate::config::Capture;
use crate::error::Result;

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
            let why = taken.err().unwrap_or_else(|| "another rank cannot use copy-on-write".into());
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
    let (known, dirty) = (&mut positions, &dirty);
    let mut phase = Phase { env, ledger, writer, regions, order, positions: known, dirty };
    let (stored, device) =
        tracks.arm_beside(regions, || phase.store_stopped(place, team, &here, device));
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
