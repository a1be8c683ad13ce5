//! Taking a checkpoint: one sequence for memory that is stopped, frozen or on a device.
//!
//! ```text
//! freeze -> look -> assign -> keep -> bring -> locate
//! ```
//! A variant is a value: who provides the pages ([`PageSource`](standfast_reduce::PageSource)), who
//! stores them ([`Place`]), and after which step the program is let go: after *freeze* where a
//! snapshot or the device's staging memory has everything, after *keep* where ranks have agreed and
//! the device has this rank's share, otherwise after *locate*. What is left is done by
//! [`Attempt::ingest`] on the committer's thread, or in a later call where only the program's thread
//! may talk to the other ranks.
//!
//! All ranks capture in the same way, which [`choose`] tells from what each of them can do.

use std::convert::Infallible;

use crossbeam_channel::Sender;
use standfast_capture::{Dirty, Region, Regions, Snapshots, Wanted};
use standfast_checkpoint::Order;
use standfast_comm::{Collective, Step};
use standfast_reduce::PageTable;
use standfast_restart::Inventory;
use standfast_sys::Stopwatch;

use crate::attempt::{Attempt, Ended, Frozen, Next, Taken, View};
use crate::choose::{Offer, Way, choose};
use crate::device::{DevicePages, SharedDevice};
use crate::error::Phase;
use crate::ingest::Ingest;
use crate::remembered::{Remembered, WARM_BYTES_MIN};
use crate::settings::Capture;
use crate::stopped::Stopped;
use crate::stored::{Aborted, Stored};

/// What is to be taken.
#[derive(Clone, Copy)]
pub struct TakeRequest<'a> {
    /// The regions.
    pub regions: &'a Regions,
    /// The device on which some of them lie, if there is one.
    pub device: Option<&'a SharedDevice>,
    /// What all ranks have in common.
    pub order: Order,
    /// The checkpoints of the store.
    pub inventory: &'a Inventory,
    /// Kept as long as memory is read.
    pub reading: &'a Sender<Infallible>,
}

/// What the program need not wait for any more.
enum Reached {
    Frozen(Frozen),
    Captured(View, Stored),
}

/// Takes a checkpoint, as far as the program must wait for it. Collective.
///
/// # Safety
/// The memory of every region is mapped until the checkpoint is taken in, and nobody writes to it
/// until this returns.
pub unsafe fn take(
    mut memory: Box<Remembered>,
    asked: TakeRequest<'_>,
    team: &Collective,
) -> Result<Taken, Ended> {
    // SAFETY: the caller vouches for the memory.
    let reached = unsafe { capture(&mut memory, asked, team) };
    let order = asked.order;
    match reached {
        Ok(Reached::Frozen(frozen)) => {
            Ok(Taken::Frozen(Box::new(Attempt::new(order, memory, frozen))))
        }
        Ok(Reached::Captured(view, stored)) => {
            Ok(Taken::Captured(Attempt::captured(order, memory, Ok((view, stored, None)))))
        }
        Err(why) => Err(Ended { memory, why }),
    }
}

/// What is captured, and what may have changed since it was captured last.
struct Looked {
    view: View,
    dirty: Vec<Dirty>,
}

/// Captures all regions, in the way that all ranks choose. Collective.
///
/// # Safety
/// As [`take`].
unsafe fn capture(
    memory: &mut Remembered,
    asked: TakeRequest<'_>,
    team: &Collective,
) -> Phase<Reached> {
    let TakeRequest { regions, inventory, .. } = asked;
    let started = Stopwatch::start();
    memory.slowed_ns = 0;
    memory.tracks.stop_warming();
    memory.prepare(regions, inventory, team)?;
    let positions = memory.ledger.take_positions(regions);
    let dirty = memory.tracks.collect(regions);
    let looked = Looked { view: View { started, regions: regions.clone(), positions }, dirty };
    if memory.env.settings.capture == Capture::Stop {
        // SAFETY: the caller vouches for the memory.
        return unsafe { stop(memory, asked, team, looked) };
    }
    let wanted = wanted(&looked, memory.env.scanner.page_bytes());
    let changed = Snapshots::bytes_for(&wanted, memory.env.scanner.page_bytes()) as u64;
    let (offer, lacks) = memory.offer(regions, &wanted, changed, team);
    let offers = team.collect(Step("capture: way"), offer)?;
    let way = choose(memory.env.settings.capture, &offers);
    memory.note_way(way, &offers, &lacks);
    // SAFETY: the caller vouches for the memory.
    match unsafe { freeze(memory, asked, team, (way, wanted, looked)) }? {
        Ok(frozen) => Ok(Reached::Frozen(frozen)),
        Err(looked) => {
            // SAFETY: as above.
            let reached = unsafe { stop(memory, asked, team, looked) }?;
            memory.costs.stopped(changed, started.ns());
            memory.warm(regions);
            Ok(reached)
        }
    }
}

/// Freezes the state of all regions. What was looked at comes back where the program must be stopped
/// instead; the report's notes will tell why. Collective.
///
/// # Safety
/// As [`take`].
unsafe fn freeze(
    memory: &mut Remembered,
    asked: TakeRequest<'_>,
    team: &Collective,
    (way, wanted, looked): (Way, Vec<Wanted>, Looked),
) -> Phase<Result<Frozen, Looked>> {
    if way == Way::Stop {
        return Ok(Err(looked));
    }
    let threads = memory.env.scanner.threads();
    let started = Stopwatch::start();
    // SAFETY: the caller vouches for the memory.
    let taken = unsafe { memory.tracks.snapshot(way, asked.regions, &wanted, threads) };
    let freeze_ns = started.ns();
    let [all] = *team.all_hold(Step("freeze"), [taken.is_ok()])?;
    match taken {
        Ok(snapshot) if all => {
            let dirty = wanted.into_iter().map(|wanted| wanted.pages).collect();
            let reading = snapshot.holds_writers().then(|| asked.reading.clone());
            let next = Next::Look { snapshot, dirty, freeze_ns };
            Ok(Ok(Frozen::new(looked.view, reading, next)))
        }
        taken => {
            let why = taken.err().unwrap_or_else(|| "another rank cannot do otherwise".into());
            memory.note_stop(&why);
            Ok(Err(looked))
        }
    }
}

/// Why a rank cannot hold writers up, and why it cannot copy everything.
#[derive(Default)]
struct Lacks {
    cow: Option<String>,
    staged: Option<String>,
}

impl Remembered {
    /// What this rank can do with what is wanted, `all` bytes of it, and what it cannot.
    fn offer(
        &mut self,
        regions: &Regions,
        wanted: &[Wanted],
        all: u64,
        team: &Collective,
    ) -> (Offer, Lacks) {
        let Self { env, place, tracks, costs, .. } = self;
        let page_bytes = env.scanner.page_bytes();
        let mut lacks = Lacks::default();
        if regions.iter().any(|region| region.device().is_some()) {
            lacks.staged = Some("device memory is staged, and host memory with it".into());
        }
        let can_freeze = lacks.staged.is_none();
        let (mut cow_ns, mut staged_ns) = (None, None);
        let stop_ns = costs.stop_ns(all);
        let Some(snapshots) = tracks.snapshots(regions).filter(|_| can_freeze) else {
            lacks.staged.get_or_insert_with(|| "the system has no memory for copies".into());
            return (Offer { can_freeze, cow_ns, staged_ns, stop_ns }, lacks);
        };
        let cold = match all < WARM_BYTES_MIN {
            true => 0,
            false => all.saturating_sub(snapshots.ready_bytes() as u64),
        };
        let cold_ns = costs.cold_ns(cold, snapshots.warm_ns());
        match all <= snapshots.bytes() as u64 {
            true => staged_ns = Some(costs.staged_ns(all) + cold_ns),
            false => lacks.staged = Some(beyond(all, snapshots.bytes() as u64)),
        }
        let shielded = snapshots.shielded(wanted, page_bytes);
        match snapshots.can_shield(wanted, &shielded) {
            _ if place.needs_calls(team) => lacks.cow = Some(ONLY_CALLS.into()),
            Ok(()) => {
                let protected = wanted.iter().zip(&shielded).filter(|(_, shielded)| **shielded);
                let shielded = protected.map(|(wanted, _)| wanted.span.bytes as u64).sum();
                cow_ns = Some(costs.cow_ns(all.saturating_sub(shielded), shielded));
            }
            Err(why) => lacks.cow = Some(why.to_string()),
        }
        (Offer { can_freeze, cow_ns, staged_ns, stop_ns }, lacks)
    }

    /// Notes why memory is not captured as it was asked for.
    fn note_way(&mut self, way: Way, offers: &[Offer], lacks: &Lacks) {
        let other = || "another rank cannot do otherwise".to_owned();
        let all = |can: fn(&Offer) -> bool| offers.iter().all(can);
        match (way, self.env.settings.capture) {
            // Device memory is what it is about: nobody asked for anything else.
            (Way::Stop, Capture::Auto) if !all(|offer| offer.can_freeze) => {}
            (Way::Stop, Capture::Auto) if all(|offer| offer.staged_ns.is_some()) => {
                self.note_stop("the memory for copies is not ready yet");
            }
            (Way::Stop, Capture::Cow | Capture::Auto) => {
                let whys: Vec<String> = lacks.staged.iter().chain(&lacks.cow).cloned().collect();
                let why = if whys.is_empty() { other() } else { whys.join("; ") };
                self.note_stop(&why);
            }
            (Way::Stop, _) => self.note_stop(&lacks.staged.clone().unwrap_or_else(other)),
            (Way::Staged, Capture::Cow) => {
                self.note_staged(&lacks.cow.clone().unwrap_or_else(other));
            }
            _ => {}
        }
    }
}

const ONLY_CALLS: &str =
    "the ranks share pages, and only the program's own thread may talk to other ranks";

/// Why not everything can be copied.
fn beyond(changed: u64, room: u64) -> String {
    let mib = |bytes: u64| bytes.div_ceil(1 << 20);
    let (changed, room) = (mib(changed), mib(room));
    format!("up to {changed} MiB have changed, and memory has room for copies of {room} MiB")
}

/// What a snapshot must hold.
fn wanted(Looked { view, dirty }: &Looked, page_bytes: usize) -> Vec<Wanted> {
    let of = |((region, positions), dirty): ((&Region, &PageTable), &Dirty)| {
        let known = positions.known_hashes(region.bytes().div_ceil(page_bytes));
        let pages = if known.is_none() { Dirty::All } else { dirty.clone() };
        Wanted { span: region.span(), pages }
    };
    view.regions.iter().zip(&view.positions).zip(dirty).map(of).collect()
}

/// Captures all regions while the program is stopped. Collective.
///
/// # Safety
/// As [`take`].
unsafe fn stop(
    memory: &mut Remembered,
    asked: TakeRequest<'_>,
    team: &Collective,
    Looked { mut view, dirty }: Looked,
) -> Phase<Reached> {
    let TakeRequest { regions, device, order, .. } = asked;
    let Remembered { env, ledger, place, tracks, writer, notes, .. } = memory;
    // SAFETY: the caller vouches for the memory.
    let here = unsafe { Stopped::new(regions, env.scanner.page_bytes()) };
    let (positions, dirty) = (&mut view.positions, &dirty);
    let mut ingest = Ingest { env, ledger, writer, regions, order, positions, dirty };
    let (stored, device) =
        tracks.arm_beside(regions, || ingest.store_stopped(place, team, &here, device));
    notes.extend(device.iter().flat_map(DevicePages::messages));
    let stored = memory.agree_on(stored, team)?;
    // Pages may still be on the device: staged before anybody looked, or with places reserved.
    let alone = !memory.place.is_shared();
    Ok(match device.filter(|_| alone || !stored.reserved.is_empty()) {
        Some(device) => {
            let next = Next::Bring { device, stored: Box::new(stored) };
            Reached::Frozen(Frozen::new(view, Some(asked.reading.clone()), next))
        }
        None => Reached::Captured(view, stored),
    })
}

impl Remembered {
    /// What this rank has stored, if all ranks have.
    fn agree_on(&mut self, stored: Result<Stored, Aborted>, team: &Collective) -> Phase<Stored> {
        let (begun, own) = match stored {
            Ok(stored) => (stored.begun().collect(), Ok(stored)),
            Err(Aborted { error, begun }) => (begun, Err(error)),
        };
        team.agree(Step("capture"), own).inspect_err(|stop| self.failed(&begun, stop.kind()))
    }
}
