//! Which call fails how: pure bookkeeping, shared by a faulty store and its streams.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use standfast_format::Kind;
use standfast_store::{Error, ObjectMeta};

/// The sorts of calls that are counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[expect(missing_docs, reason = "each is the call of that name")]
pub enum Op {
    Create,
    Append,
    Seal,
    Put,
    PutNew,
    Open,
    Read,
    List,
    Remove,
    DiscardUnsealed,
    Lock,
}

impl Op {
    /// Every sort, for sweeps.
    pub const ALL: [Op; 11] = [
        Op::Create,
        Op::Append,
        Op::Seal,
        Op::Put,
        Op::PutNew,
        Op::Open,
        Op::Read,
        Op::List,
        Op::Remove,
        Op::DiscardUnsealed,
        Op::Lock,
    ];

    /// As a verb for messages.
    fn verb(self) -> &'static str {
        match self {
            Op::Create => "create",
            Op::Append => "append to",
            Op::Seal => "seal",
            Op::Put => "put",
            Op::PutNew => "put the new",
            Op::Open => "open",
            Op::Read => "read",
            Op::List => "list",
            Op::Remove => "remove",
            Op::DiscardUnsealed => "discard what is unsealed in",
            Op::Lock => "lock",
        }
    }
}

/// One way to misbehave. `nth` counts the calls of that sort from 0.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fault {
    /// The nth call fails and does nothing.
    Fail {
        /// Sort of call.
        op: Op,
        /// Which one.
        nth: u64,
        /// How.
        kind: Kind,
    },
    /// The nth call does its work, yet reports a failure: the answer got lost.
    FailAfter {
        /// Sort of call.
        op: Op,
        /// Which one.
        nth: u64,
        /// How.
        kind: Kind,
    },
    /// Every call of that sort fails from the nth on: the device is gone.
    FailFrom {
        /// Sort of call.
        op: Op,
        /// The first one.
        nth: u64,
        /// How.
        kind: Kind,
    },
    /// The nth append takes only its first bytes, then fails.
    TearAppend {
        /// Which append.
        nth: u64,
        /// Bytes it takes.
        bytes: usize,
        /// How it fails.
        kind: Kind,
    },
    /// The nth read stops after its first bytes, without an error.
    TearRead {
        /// Which read.
        nth: u64,
        /// Bytes it gives.
        bytes: usize,
    },
    /// Every call of that sort takes this much longer.
    Delay {
        /// Sort of call.
        op: Op,
        /// How much longer.
        by: Duration,
    },
    /// Nothing below a prefix can be created.
    Refuse {
        /// The prefix.
        under: String,
        /// How it fails.
        kind: Kind,
    },
    /// An object cannot be opened.
    Deny {
        /// The object.
        object: String,
        /// How it fails.
        kind: Kind,
    },
    /// After this many bytes of appends and puts the store is full.
    FullAfter {
        /// Bytes that still fit.
        bytes: u64,
    },
    /// One bit of an object reads wrong.
    FlipBit {
        /// The object.
        object: String,
        /// The byte.
        offset: u64,
        /// The bit, 0 to 7.
        bit: u8,
    },
    /// An object ends early.
    Truncate {
        /// The object.
        object: String,
        /// What is left of it.
        bytes: u64,
    },
    /// An object is not there.
    Hide {
        /// The object.
        object: String,
    },
    /// Two objects have each other's contents.
    Swap {
        /// One.
        a: String,
        /// The other.
        b: String,
    },
}

impl Fault {
    /// Some damage to one of these objects, always the same for the same seed: a flipped bit, a
    /// cut, a loss, or a swap. `None` if there is nothing to damage.
    pub fn damage(seed: u64, objects: &[ObjectMeta]) -> Option<Fault> {
        let mut state = seed;
        let mut below = |n: u64| splitmix(&mut state) % n.max(1);
        let pick = objects.get(usize::try_from(below(objects.len() as u64)).ok()?)?;
        let other = objects.get(usize::try_from(below(objects.len() as u64)).ok()?)?;
        let object = pick.name.clone();
        Some(match below(4) {
            0 if pick.bytes > 0 => {
                Fault::FlipBit { object, offset: below(pick.bytes), bit: below(8) as u8 }
            }
            1 if pick.bytes > 0 => Fault::Truncate { object, bytes: below(pick.bytes) },
            2 if other.name != pick.name => Fault::Swap { a: object, b: other.name.clone() },
            _ => Fault::Hide { object },
        })
    }
}

fn splitmix(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut z = *state;
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// Whether the work is done before the failure is reported.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum When {
    Before,
    After,
}

/// What the plan has for one call.
pub(super) struct Verdict {
    delay: Duration,
    pub(super) fail: Option<(When, Kind)>,
    pub(super) tear: Option<(usize, Kind)>,
    pub(super) short: Option<usize>,
}

impl Verdict {
    pub(super) fn wait(&self) {
        if !self.delay.is_zero() {
            thread::sleep(self.delay);
        }
    }
}

#[derive(Debug, Default)]
pub(super) struct State {
    pub(super) faults: Vec<Fault>,
    pub(super) calls: [u64; Op::ALL.len()],
    pub(super) fired: u64,
    written: u64,
}

#[derive(Debug, Default)]
pub(super) struct Plan(Mutex<State>);

impl Plan {
    pub(super) fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Counts a call and says what happens to it.
    pub(super) fn begin(&self, op: Op) -> Verdict {
        let mut state = self.lock();
        let number = state.calls[op as usize];
        state.calls[op as usize] += 1;
        let mut verdict = Verdict { delay: Duration::ZERO, fail: None, tear: None, short: None };
        for fault in &state.faults {
            match *fault {
                Fault::Fail { op: of, nth, kind } if of == op && nth == number => {
                    verdict.fail = Some((When::Before, kind));
                }
                Fault::FailFrom { op: of, nth, kind } if of == op && nth <= number => {
                    verdict.fail = Some((When::Before, kind));
                }
                Fault::FailAfter { op: of, nth, kind } if of == op && nth == number => {
                    verdict.fail = Some((When::After, kind));
                }
                Fault::TearAppend { nth, bytes, kind } if op == Op::Append && nth == number => {
                    verdict.tear = Some((bytes, kind));
                }
                Fault::TearRead { nth, bytes } if op == Op::Read && nth == number => {
                    verdict.short = Some(bytes);
                }
                Fault::Delay { op: of, by } if of == op => verdict.delay += by,
                _ => {}
            }
        }
        let fires = verdict.fail.is_some()
            || verdict.tear.is_some()
            || verdict.short.is_some()
            || !verdict.delay.is_zero();
        state.fired += u64::from(fires);
        verdict
    }

    /// Takes room for `bytes`; returns how many of them still fit.
    pub(super) fn take_room(&self, bytes: usize) -> usize {
        let mut state = self.lock();
        let room = room(&state);
        let fit = room.map_or(bytes, |room| bytes.min(usize::try_from(room).unwrap_or(bytes)));
        state.written += fit as u64;
        state.fired += u64::from(fit < bytes);
        fit
    }

    pub(super) fn room(&self) -> Option<u64> {
        room(&self.lock())
    }

    /// How creating or opening an object fails, if it does.
    pub(super) fn refuses(&self, op: Op, name: &str) -> Option<Kind> {
        let mut state = self.lock();
        let kind = state.faults.iter().find_map(|fault| match (op, fault) {
            (Op::Create, Fault::Refuse { under, kind }) if name.starts_with(under) => Some(*kind),
            (Op::Open, Fault::Deny { object, kind }) if name == object => Some(*kind),
            _ => None,
        })?;
        state.fired += 1;
        Some(kind)
    }

    pub(super) fn is_hidden(&self, name: &str) -> bool {
        let mut state = self.lock();
        let hidden =
            state.faults.iter().any(|f| matches!(f, Fault::Hide { object } if object == name));
        state.fired += u64::from(hidden);
        hidden
    }

    /// The object whose contents `name` shows.
    pub(super) fn swapped(&self, name: &str) -> String {
        let mut state = self.lock();
        let other = state.faults.iter().find_map(|fault| match fault {
            Fault::Swap { a, b } if a == name => Some(b.clone()),
            Fault::Swap { a, b } if b == name => Some(a.clone()),
            _ => None,
        });
        state.fired += u64::from(other.is_some());
        other.unwrap_or_else(|| name.to_owned())
    }

    /// How long an object of `bytes` bytes looks.
    pub(super) fn visible_bytes(&self, name: &str, bytes: u64) -> u64 {
        let mut state = self.lock();
        let cut = state.faults.iter().filter_map(|fault| match fault {
            Fault::Truncate { object, bytes } if object == name => Some(*bytes),
            _ => None,
        });
        let visible = cut.min().map_or(bytes, |cut| cut.min(bytes));
        state.fired += u64::from(visible < bytes);
        visible
    }

    /// Damages bytes that were read from `offset` of an object.
    pub(super) fn flip_bits(&self, name: &str, offset: u64, bytes: &mut [u8]) {
        let mut state = self.lock();
        let mut flipped = 0;
        for fault in &state.faults {
            let Fault::FlipBit { object, offset: at, bit } = fault else { continue };
            let index = at.checked_sub(offset).and_then(|index| usize::try_from(index).ok());
            if let Some(byte) = index.filter(|_| object == name).and_then(|i| bytes.get_mut(i)) {
                *byte ^= 1 << (bit % 8);
                flipped += 1;
            }
        }
        state.fired += flipped;
    }
}

fn room(state: &State) -> Option<u64> {
    let limits = state.faults.iter().filter_map(|fault| match fault {
        Fault::FullAfter { bytes } => Some(*bytes),
        _ => None,
    });
    limits.min().map(|limit| limit.saturating_sub(state.written))
}

/// The error of an injected failure; its text admits what it is.
pub(super) fn error(op: Op, name: &str, store: &str, kind: Kind) -> Error {
    Error::Backend {
        op: op.verb(),
        object: name.to_owned(),
        store: store.to_owned(),
        kind,
        source: "injected fault".into(),
    }
}
