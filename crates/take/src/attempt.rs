//! An attempt at a checkpoint, by how far it has come. It carries what capturing remembers from the
//! call to the end, whoever writes it, and gives it back.
//!
//! ```text
//! take -> Attempt<Frozen>: the program goes on -> ingest -> Attempt<Captured>
//!      -> Attempt<Captured>
//! Attempt<Frozen>, where only calls may talk to other ranks -> waits for one, which ingests
//! Attempt<Captured> -> seal -> Attempt<Sealed> -> publish -> Attempt<Published> -> settle
//!                           -> Attempt<Published>, where an agent commits for all ranks
//! ```
//! Invariants:
//! - A rank that fails behind its program goes on until it can tell the others: its state then holds
//!   the failure.
//! - After a failure nothing that is remembered refers to the attempt's segments.

use std::convert::Infallible;
use std::sync::Arc;

use crossbeam_channel::Sender;
use standfast_agent::Link;
use standfast_capture::{Dirty, Regions, Snapshot};
use standfast_checkpoint::{Described, Order, Part, StreamPlace};
use standfast_comm::{Collective, Fault};
use standfast_format::{Level, SegmentId, SegmentRef};
use standfast_reduce::PageTable;
use standfast_sys::Stopwatch;

use crate::device::DevicePages;
use crate::error::{Error, Result, Stop};
use crate::ingest::Ingest;
use crate::remembered::Remembered;
use crate::snapshot::SnapshotPages;
use crate::stored::{Aborted, Stored, guarded};

/// What a call has taken.
pub enum Taken {
    /// The state at the call; its pages are still to be taken in.
    Frozen(Box<Attempt<Frozen>>),
    /// All of it.
    Captured(Box<Attempt<Captured>>),
}

/// An attempt as far as a thread beside the program can bring it.
pub enum Closed<E = Error> {
    /// It is to be taken in within a call of all ranks.
    Frozen(Box<Attempt<Frozen>>),
    /// The ranks publish it.
    Sealed(Box<Attempt<Sealed>>),
    /// An agent has, for all ranks.
    Published(Box<Attempt<Published<E>>>),
}

/// An attempt that came to nothing within its call, as all ranks know.
pub struct Ended {
    /// What capturing remembers, without the attempt.
    pub memory: Box<Remembered>,
    /// Why it ended.
    pub why: Stop,
}

/// An attempt at a checkpoint.
pub struct Attempt<S> {
    /// What all ranks have in common.
    pub order: Order,
    pub(crate) memory: Box<Remembered>,
    /// Segments that it has begun, and new ones of other ranks that it refers to.
    pub(crate) begun: Vec<SegmentId>,
    /// What its reader should know.
    pub notes: Vec<String>,
    /// How far it has come.
    pub state: S,
}

/// The program goes on, and pages are still to be taken in.
pub struct Frozen {
    /// Dropped when no memory of the program is read any more; `None`: none is.
    reading: Option<Sender<Infallible>>,
    view: View,
    blocked_ns: u64,
    next: Next,
}

/// What is captured: the regions, and what is known of their pages.
pub(crate) struct View {
    pub(crate) started: Stopwatch,
    pub(crate) regions: Regions,
    /// Remembered again when the pages are captured.
    pub(crate) positions: Vec<PageTable>,
}

/// What is left to do.
pub(crate) enum Next {
    /// Everything; the snapshot was taken in this time.
    Look { snapshot: Snapshot, dirty: Vec<Dirty>, freeze_ns: u64 },
    /// Pages that are staged on a device: all that changed, or those with places reserved for them.
    Bring { device: DevicePages, stored: Box<Stored> },
}

/// All pages are stored or referred to; nothing is durable yet.
pub struct Captured {
    pub(crate) part: Result<Unfinished>,
}

/// Who makes captured pages durable. Dropped, they are given up.
pub(crate) enum Unfinished {
    /// This process.
    Here(Described, standfast_write::Pending),
    /// The node's agent; then the ranks commit.
    Node(Described, Arc<Link>),
    /// The agent of all ranks, which commits too.
    Job(Arc<Link>),
}

/// This rank's part is durable, or could not be made so.
pub struct Sealed {
    /// The part, or what it failed with: the others do not know it yet.
    pub part: Result<(Described, Part)>,
    /// Segments that are taken back if the attempt fails.
    pub own: Vec<SegmentId>,
    /// Whether the agents of the nodes pledge this attempt.
    pub pledged: bool,
}

/// The checkpoint exists, or does not.
pub struct Published<E = Error> {
    /// What there is to know of it, or why it does not exist.
    pub outcome: std::result::Result<Committed, E>,
}

/// A checkpoint that exists.
pub struct Committed {
    /// Segments of all ranks that it needs.
    pub segments: Vec<SegmentRef>,
    /// Segments that are gone, or may be.
    pub removed: Vec<SegmentId>,
    /// Where the agent has put the streams of all ranks.
    pub places: Vec<StreamPlace>,
    /// The level it has reached.
    pub level: Level,
}

impl<S> Attempt<S> {
    pub(crate) fn new(order: Order, memory: Box<Remembered>, state: S) -> Self {
        Self { order, memory, begun: Vec::new(), notes: Vec::new(), state }
    }

    /// The same attempt, further on; with what its last state held.
    pub fn advance<T>(self, state: T) -> (Attempt<T>, S) {
        let Self { order, memory, begun, notes, state: last } = self;
        (Attempt { order, memory, begun, notes, state }, last)
    }
}

impl Attempt<Frozen> {
    /// Whether the ranks must talk while its pages are taken in.
    pub fn needs_team(&self) -> bool {
        self.memory.place.is_shared() && matches!(self.state.next, Next::Look { .. })
    }

    /// Takes the pages in. `team`: the ranks, where a thread beside the program may talk to them;
    /// then this is collective.
    pub fn ingest(self, team: Option<&Collective>) -> Box<Attempt<Captured>> {
        let Self { order, mut memory, state, .. } = self;
        let taken = guarded("taking in", || state.ingest(order, &mut memory, team));
        if taken.is_err() {
            // Other ranks may be waiting for what the agent makes of it.
            memory.abort(order.attempt);
        }
        Attempt::captured(order, memory, taken)
    }
}

impl Frozen {
    /// The program goes on now.
    pub(crate) fn new(view: View, reading: Option<Sender<Infallible>>, next: Next) -> Self {
        let blocked_ns = view.started.ns();
        Self { reading, view, blocked_ns, next }
    }

    fn ingest(
        self,
        order: Order,
        memory: &mut Remembered,
        team: Option<&Collective>,
    ) -> std::result::Result<(View, Stored, Option<u64>), Aborted> {
        // Goes last, when nobody reads any more.
        let Self { reading: _reading, mut view, blocked_ns, next } = self;
        let stored = match next {
            Next::Look { snapshot, dirty, freeze_ns } => {
                let frozen = (snapshot, dirty, freeze_ns);
                ingest_snapshot(memory, &mut view, order, frozen, team)
            }
            Next::Bring { device, stored } => {
                ingest_staged(memory, &mut view, order, &device, *stored)
            }
        };
        Ok((view, stored?, Some(blocked_ns)))
    }
}

fn ingest_snapshot(
    memory: &mut Remembered,
    View { regions, positions, .. }: &mut View,
    order: Order,
    (snapshot, dirty, freeze_ns): (Snapshot, Vec<Dirty>, u64),
    team: Option<&Collective>,
) -> std::result::Result<Stored, Aborted> {
    let Remembered { env, ledger, place, tracks, writer, costs, slowed_ns, .. } = memory;
    let shielded: Vec<bool> = (0..dirty.len()).map(|region| snapshot.is_shielded(region)).collect();
    let dirty = dirty.as_slice();
    let mut ingest = Ingest { env, ledger, writer, regions, order, positions, dirty };
    let page_bytes = env.scanner.page_bytes();
    let once = !place.is_shared() || team.is_none();
    let pages = SnapshotPages::new(snapshot, regions, page_bytes, once);
    let stored = ingest.store(place, team, &[&pages], Ok(()));
    *slowed_ns = pages.learn(regions, &shielded, costs, freeze_ns);
    // Its memory can be watched only now.
    drop(pages);
    let stored = stored?;
    tracks.watch_anew(regions, &shielded, (&env.scanner, positions));
    memory.warm(regions);
    Ok(stored)
}

fn ingest_staged(
    memory: &mut Remembered,
    View { regions, positions, .. }: &mut View,
    order: Order,
    device: &DevicePages,
    mut stored: Stored,
) -> std::result::Result<Stored, Aborted> {
    let Remembered { env, ledger, writer, notes, .. } = memory;
    let copying = Stopwatch::start();
    // The device knows what changed.
    let dirty = vec![Dirty::All; positions.len()];
    let mut ingest = Ingest { env, ledger, writer, regions, order, positions, dirty: &dirty };
    let brought = match stored.reserved.is_empty() {
        true => ingest.alone(&[device], Some(device.staged_pages())),
        false => ingest.bring_reserved(device, &stored),
    };
    notes.extend(device.messages());
    match brought {
        Ok(brought) => stored.join(brought),
        Err(aborted) => return Err(aborted.after(&stored)),
    }
    stored.copy_ns = copying.ns();
    Ok(stored)
}

impl Attempt<Captured> {
    /// Describes and remembers what was taken, and hands it to the agent where there is one. With
    /// how long the program was blocked; `None`: it still is.
    pub(crate) fn captured(
        order: Order,
        mut memory: Box<Remembered>,
        taken: std::result::Result<(View, Stored, Option<u64>), Aborted>,
    ) -> Box<Self> {
        let (begun, part) = match taken {
            Ok((view, stored, blocked_ns)) => {
                let begun = stored.begun().collect();
                (begun, memory.describe(order, view, stored, blocked_ns))
            }
            Err(Aborted { error, begun }) => (begun, Err(error)),
        };
        let mut notes = std::mem::take(&mut memory.notes);
        notes.append(&mut memory.writer.notes());
        Box::new(Self { order, memory, begun, notes, state: Captured { part } })
    }
}

impl<E: Fault> Attempt<Published<E>> {
    /// The same with another sort of error.
    pub fn map_err<F>(self, as_other: impl FnOnce(E) -> F) -> Attempt<Published<F>> {
        let (attempt, Published { outcome }) = self.advance(());
        attempt.advance(Published { outcome: outcome.map_err(as_other) }).0
    }

    /// Takes in what became of it, and gives back what capturing remembers.
    pub fn settle(self) -> (Box<Remembered>, std::result::Result<Committed, E>, Vec<String>) {
        let Self { mut memory, begun, notes, state, .. } = self;
        match &state.outcome {
            Ok(Committed { segments, removed, places, .. }) => {
                memory.committed(segments, removed, places);
            }
            Err(error) => memory.failed(&begun, error.kind()),
        }
        (memory, state.outcome, notes)
    }
}
