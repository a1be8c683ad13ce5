//! The life of one simulated process: what befalls its calls, and its end.
//!
//! What happens to the nth call of a sort follows from the seed, the life, the sort and n alone. So a
//! run is the same again also where threads of one process take turns as they like.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use standfast_format::Kind;
use standfast_store::Error;

use crate::chance::{Chance, mix, mix_text};
use crate::messages::Net;
use crate::store::Disk;
use crate::world::World;

/// A call of a store.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Op {
    /// Start an object.
    Create,
    /// Add to it.
    Append,
    /// Finish it.
    Seal,
    /// Write a small one.
    Put,
    /// Write a small one that must not be there.
    PutNew,
    /// Open one.
    Open,
    /// Read from it.
    Read,
    /// List them.
    List,
    /// Remove one.
    Remove,
    /// Take a lock.
    Lock,
}

impl Op {
    /// Whether it changes what is there.
    pub(crate) fn changes(self) -> bool {
        matches!(self, Op::Seal | Op::Put | Op::PutNew | Op::Remove)
    }
}

/// What befalls a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// Nothing.
    Works,
    /// It fails and does nothing.
    Fails(usize),
    /// It is done, and its answer is lost.
    AnswerLost(usize),
    /// The process is killed before it.
    DiesBefore,
    /// The process is killed after it.
    DiesAfter,
}

/// How often calls fail: once in so many; 0: never.
#[derive(Clone, Copy, Debug, Default)]
pub struct Rates {
    /// Calls that fail.
    pub fails: u64,
    /// Calls that are the last.
    pub dies: u64,
}

impl Rates {
    /// Some lives are quiet, some are short, some are full of failures.
    pub fn draw(chance: &mut Chance) -> Self {
        let fails = *chance.pick(&[0, 0, 15, 60, 200]);
        let dies = *chance.pick(&[0, 20, 60, 150, 400]);
        Self { fails, dies }
    }
}

/// One process from its start to its end.
pub struct Life {
    /// For the trace.
    pub name: String,
    /// Which one.
    pub id: u64,
    pub(crate) world: Arc<World>,
    seed: u64,
    rates: Rates,
    dead: AtomicBool,
    counts: Mutex<HashMap<(Op, u64), u64>>,
    disks: Mutex<Vec<Arc<Disk>>>,
    net: Option<(Arc<Net>, usize)>,
}

impl Life {
    /// A process that begins; `net`: where it is a rank, and which.
    pub fn begin(
        world: &Arc<World>,
        name: String,
        rates: Rates,
        net: Option<(Arc<Net>, usize)>,
    ) -> Arc<Self> {
        let seed = mix(&[world.seed, mix_text(&name)]);
        Arc::new(Self {
            name,
            id: seed,
            world: Arc::clone(world),
            seed,
            rates,
            dead: AtomicBool::new(false),
            counts: Mutex::default(),
            disks: Mutex::default(),
            net,
        })
    }

    /// Whether it lives.
    pub fn is_alive(&self) -> bool {
        !self.dead.load(Ordering::SeqCst)
    }

    pub(crate) fn uses(&self, disk: &Arc<Disk>) {
        self.disks.lock().unwrap_or_else(PoisonError::into_inner).push(Arc::clone(disk));
    }

    /// It ends here: its locks are free, and whoever waits for it learns of it.
    pub fn end(&self) {
        if self.dead.swap(true, Ordering::SeqCst) {
            return;
        }
        for disk in self.disks.lock().unwrap_or_else(PoisonError::into_inner).iter() {
            disk.release(self.id);
        }
        if let Some((net, rank)) = &self.net {
            net.leave(*rank);
        }
    }

    /// It is killed.
    pub fn kill(&self) {
        self.world.trace(|| format!("{} is killed", self.name));
        self.end();
    }

    /// What befalls the next call of this sort.
    pub fn fate(&self, op: Op, object: &str) -> Fate {
        let sort = mix_text(object.split('/').next().unwrap_or_default());
        let nth = {
            let mut counts = self.counts.lock().unwrap_or_else(PoisonError::into_inner);
            let count = counts.entry((op, sort)).or_default();
            *count += 1;
            *count
        };
        if self.world.is_calm() {
            return Fate::Works;
        }
        let mut chance = Chance::new(mix(&[self.seed, op as u64, sort, nth]));
        // Reads are many and harmless for a process that dies.
        let rare = if op.changes() || op == Op::Create { 1 } else { 4 };
        if chance.one_in(self.rates.dies * rare) {
            return if chance.one_in(2) { Fate::DiesBefore } else { Fate::DiesAfter };
        }
        if chance.one_in(self.rates.fails) {
            let which = chance.number() as usize % FAILURES.len();
            let lost = op.changes() && chance.one_in(3);
            return if lost { Fate::AnswerLost(which) } else { Fate::Fails(which) };
        }
        Fate::Works
    }
}

/// What file systems and object stores answer when they do not do it.
const FAILURES: &[(&str, i32, Option<Kind>)] = &[
    ("EIO", 5, None),
    ("EAGAIN", 11, None),
    ("ENOMEM", 12, None),
    ("EACCES", 13, None),
    ("EMFILE", 24, None),
    ("ENOSPC", 28, None),
    ("EROFS", 30, None),
    ("ETIMEDOUT", 110, None),
    ("403", 0, Some(Kind::Denied)),
    ("500", 0, Some(Kind::Transient)),
    ("503", 0, Some(Kind::Transient)),
];

/// The name of a failure.
pub(crate) fn failure_name(which: usize) -> &'static str {
    FAILURES[which].0
}

/// A failure as a store reports it.
pub(crate) fn failure(which: usize, op: &'static str, object: &str, store: String) -> Error {
    let object = object.to_owned();
    match FAILURES[which] {
        (_, code, None) => {
            let source = std::io::Error::from_raw_os_error(code);
            Error::Os { op, object, store, source }
        }
        (name, _, Some(kind)) => Error::Backend { op, object, store, kind, source: name.into() },
    }
}
