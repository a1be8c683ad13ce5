//! An attempt at a checkpoint, by how far it has come.
//!
//! ```text
//! take -> Attempt<Frozen>: the program goes on -> take_in -> Attempt<Captured> -> Draft
//!      -> Attempt<Captured>                                                    -> Draft
//! ```

use std::collections::HashSet;
use std::time::Instant;

use standfast_capture::{Dirty, Regions, Snapshot};
use standfast_comm::Collective;
use standfast_format::{SegmentId, Stats};
use standfast_reduce::Positions;

use super::cow::Cow;
use super::describe::{Table, WrittenBy, count, describe};
use super::device::DevicePages;
use super::draft::{Draft, GivenUp, Order, Stored, elapsed_ns};
use super::phase::Phase;
use super::place::Place;
use super::remembered::Remembered;
use crate::error::Result;

/// What a call has taken.
pub(crate) enum Taken {
    /// The state at the call; its pages are still to be taken in.
    Frozen(Box<Attempt<Frozen>>),
    /// All of it.
    Captured(Box<Draft>),
}

/// An attempt at a checkpoint.
pub(crate) struct Attempt<S> {
    pub(super) order: Order,
    pub(super) started: Instant,
    pub(super) regions: Regions,
    /// What is known of each region's pages; remembered again when they are captured.
    pub(super) positions: Vec<Positions>,
    pub(super) state: S,
}

/// The program goes on, and pages are still to be taken in.
pub(crate) struct Frozen {
    pub(super) blocked_ns: u64,
    pub(super) next: Next,
}

/// What is left to do.
pub(super) enum Next {
    /// Everything.
    Look { snapshot: Snapshot, dirty: Vec<Dirty> },
    /// Pages that are staged on a device: all that changed, or those with places reserved for them.
    Bring { device: DevicePages, stored: Box<Stored> },
}

/// All pages are stored or referred to; nothing is durable yet.
pub(super) struct Captured {
    /// How long the program was blocked; `None`: it still is.
    pub(super) blocked_ns: Option<u64>,
    pub(super) stored: Stored,
}

impl<S> Attempt<S> {
    /// The same attempt, further on.
    pub(super) fn with<T>(self, state: T) -> Attempt<T> {
        let Self { order, started, regions, positions, .. } = self;
        Attempt { order, started, regions, positions, state }
    }
}

impl Attempt<Frozen> {
    /// Whose attempt it is.
    pub(crate) fn order(&self) -> Order {
        self.order
    }

    /// Takes the pages in. `team`: the ranks, where a thread beside the program may talk to them;
    /// then this is collective.
    pub(crate) fn take_in(
        self,
        memory: &mut Remembered,
        team: Option<&Collective>,
    ) -> Result<Draft> {
        let Self { order, started, regions, mut positions, state } = self;
        let Frozen { blocked_ns, next } = state;
        let stored = match next {
            Next::Look { snapshot, dirty } => {
                let known = (&mut positions[..], &dirty[..]);
                take_in_snapshot(memory, (&regions, order), snapshot, known, team)
            }
            Next::Bring { device, stored } => {
                take_in_staged(memory, (&regions, order), &device, *stored, &mut positions)
            }
        };
        let stored = stored.map_err(|given_up| {
            memory.forget_attempt(&given_up.begun);
            given_up.error
        })?;
        let state = Captured { blocked_ns: Some(blocked_ns), stored };
        Ok(Attempt { order, started, regions, positions, state }.draft(memory))
    }
}

fn take_in_snapshot(
    memory: &mut Remembered,
    (regions, order): (&Regions, Order),
    snapshot: Snapshot,
    (positions, dirty): (&mut [Positions], &[Dirty]),
    team: Option<&Collective>,
) -> std::result::Result<Stored, GivenUp> {
    let Remembered { env, ledger, place, tracks, writer, .. } = memory;
    let shielded: Vec<bool> = (0..dirty.len()).map(|region| snapshot.is_shielded(region)).collect();
    let mut phase = Phase { env, ledger, writer, regions, order, positions, dirty };
    let page_bytes = env.scanner.page_bytes();
    let once = matches!(place, Place::Alone) || team.is_none();
    let cow = Cow::new(snapshot, regions, page_bytes, once);
    let stored = phase.store(place, team, &[&cow], Ok(()))?;
    // Its memory can be watched only now.
    drop(cow);
    tracks.watch_anew(regions, &shielded, (&env.scanner, positions));
    Ok(stored)
}

fn take_in_staged(
    memory: &mut Remembered,
    (regions, order): (&Regions, Order),
    device: &DevicePages,
    mut stored: Stored,
    positions: &mut [Positions],
) -> std::result::Result<Stored, GivenUp> {
    let Remembered { env, ledger, writer, notes, .. } = memory;
    let copying = Instant::now();
    // The device knows what changed.
    let dirty = vec![Dirty::All; positions.len()];
    let mut phase = Phase { env, ledger, writer, regions, order, positions, dirty: &dirty };
    let brought = match stored.reserved.is_empty() {
        true => phase.alone(&[device], Some(device.staged_pages())),
        false => phase.bring_reserved(device, &stored),
    };
    notes.extend(device.messages());
    match brought {
        Ok(brought) => stored.join(brought),
        Err(given_up) => return Err(given_up.after(&stored)),
    }
    stored.copy_ns = elapsed_ns(copying);
    Ok(stored)
}

impl Attempt<Captured> {
    /// Describes what was taken, remembers it, and hands it to the agent where there is one.
    pub(super) fn draft(self, memory: &mut Remembered) -> Draft {
        let Self { order, started, regions, positions, state } = self;
        let Captured { blocked_ns, stored } = state;
        let mut table = Table::default();
        let images = describe(&regions, &positions, &mut table);
        let stats = stats(memory, &regions, &positions, &stored);
        let Remembered { env, ledger, place, .. } = &mut *memory;
        let owners = place.placement().and_then(|placement| placement.owners());
        let references =
            owners.and_then(|owners| owners.refer_by_hash(env, ledger, &positions, &stored.own));
        memory.tracks.captured(&regions);
        memory.ledger.put_positions(&regions, positions);
        let entry = |number| memory.ledger.table_entry(number);
        let table = table.order.into_iter().map(entry).collect();
        let mut notes = std::mem::take(&mut memory.notes);
        notes.append(&mut memory.writer.notes());
        let mut draft = Draft {
            order,
            started,
            pending: memory.writer.pending(order, stored.pending),
            foreign: stored.foreign,
            regions: images,
            table,
            references,
            stats: Stats { blocked_ns: blocked_ns.unwrap_or_else(|| elapsed_ns(started)), ..stats },
            notes,
        };
        memory.hand_over(&mut draft);
        draft
    }
}

fn stats(
    memory: &Remembered,
    regions: &Regions,
    positions: &[Positions],
    stored: &Stored,
) -> Stats {
    let numbers = |ids: &[SegmentId]| -> HashSet<u32> {
        ids.iter().filter_map(|id| memory.ledger.catalog.number_of(*id)).collect()
    };
    let (own, foreign) = (numbers(&stored.own), numbers(&stored.foreign));
    let stats = count(regions, positions, stored.pending.pages(), |number| {
        match (own.contains(&number), foreign.contains(&number)) {
            (true, _) => WrittenBy::Own,
            (_, true) => WrittenBy::Other,
            _ => WrittenBy::Earlier,
        }
    });
    let Stored { scan_ns, agree_ns, copy_ns, .. } = *stored;
    Stats { scan_ns, agree_ns, copy_ns, ..stats }
}
