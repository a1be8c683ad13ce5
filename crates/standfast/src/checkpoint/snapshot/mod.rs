//! Capturing without stopping: the call freezes the state, a thread takes it in.
//!
//! ```text
//! call:   written pages -> snapshot: few are copied, whole regions are protected -> return
//! thread: snapshot -> catalog -> (ranks agree) -> blocks -> draft -> commit
//! ```
//! A job of several ranks freezes on all of them, or stops all of them. What the ranks have to agree
//! on they agree on behind the program, which needs a communicator that any thread may use.
//!
//! Invariants:
//! - What was asked of the tracker is either taken in or kept in `late`: its answer comes once.
//! - The capturer travels with the snapshot and comes back, whatever happens.

mod take_in;
mod together;
mod under_way;

use std::time::Instant;

use standfast_capture::{Dirty, Regions, Snapshot, Wanted};
use standfast_comm::{Collective, Step};
use standfast_reduce::Positions;
use standfast_restart::Inventory;

use super::capture::Capturer;
use super::draft::{Order, elapsed_ns};
use crate::config::Capture;
use crate::error::Result;

pub(crate) use under_way::UnderWay;

/// The state of all regions at one call, still to be taken in.
pub(crate) struct Frozen {
    regions: Regions,
    order: Order,
    started: Instant,
    blocked_ns: u64,
    positions: Vec<Positions>,
    dirty: Vec<Dirty>,
    snapshot: Snapshot,
}

impl Capturer {
    /// Freezes the state of all regions. `None` where the program must be stopped instead; the
    /// draft's notes will tell why.
    ///
    /// # Safety
    /// The memory of every region is mapped until the state is taken in, and nobody writes to it
    /// until this returns.
    pub(crate) unsafe fn freeze(
        &mut self,
        regions: &Regions,
        order: Order,
        inventory: &Inventory,
        team: &Collective,
    ) -> Result<Option<Frozen>> {
        if self.config.capture == Capture::Stop {
            return Ok(None);
        }
        let started = Instant::now();
        let [none] = *team.all_hold(
            Step("freeze: devices"),
            [regions.iter().all(|region| region.device().is_none())],
        )?;
        if !none {
            self.note_stop("device memory is staged, and host memory with it");
            return Ok(None);
        }
        // The same on all ranks: they have agreed on the settings it follows from.
        if let Some(why) = self.sharing.needs_stop(team) {
            self.note_stop(why);
            return Ok(None);
        }
        self.prepare(regions, inventory, team)?;
        let positions = self.take_positions(regions);
        let dirty = self.collect_dirty(regions);
        let wanted = wanted(regions, &positions, &dirty);
        // SAFETY: the caller vouches for the memory.
        let taken = unsafe { self.take_snapshot(&wanted) };
        let all = team.all_hold(Step("freeze"), [taken.is_ok()]).map(|all| *all);
        match (taken, all) {
            (Ok(snapshot), Ok([true])) => {
                let dirty = wanted.into_iter().map(|wanted| wanted.pages).collect();
                let (regions, blocked_ns) = (regions.clone(), elapsed_ns(started));
                Ok(Some(Frozen { regions, order, started, blocked_ns, positions, dirty, snapshot }))
            }
            (taken, all) => {
                let why = taken.err().unwrap_or_else(|| "another rank cannot do otherwise".into());
                self.note_stop(&why);
                let names = regions.iter().map(|region| region.name().to_owned());
                self.late = names.zip(dirty).collect();
                self.put_positions(regions, positions);
                Ok(all.map(|_| None)?)
            }
        }
    }

    /// A snapshot of what is wanted, or why there is none.
    ///
    /// # Safety
    /// As [`Capturer::freeze`].
    unsafe fn take_snapshot(&mut self, wanted: &[Wanted]) -> std::result::Result<Snapshot, String> {
        let Some(snapshots) = self.snapshots.clone() else {
            let why = "the kernel lets this process hold up no writes (see docs/CAPTURE.md)";
            return Err(why.into());
        };
        let page_bytes = self.config.page.0 as usize;
        let shielded = snapshots.shielded(wanted, page_bytes);
        if let Some(watch) = &mut self.watch {
            let protected = wanted.iter().zip(&shielded).filter(|(_, shielded)| **shielded);
            protected.for_each(|(wanted, _)| watch.let_go(wanted.span));
        }
        let threads = self.scanner.threads();
        // SAFETY: the caller vouches for the memory.
        let taken = unsafe { snapshots.take(wanted, &shielded, page_bytes, threads) };
        taken.map_err(|refused| refused.to_string())
    }

    fn note_stop(&mut self, why: &str) {
        self.notes.push(format!("captured with the program stopped: {why}"));
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
