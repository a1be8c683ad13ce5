//! The one suite that every implementation of [`Comm`] runs.
//!
//! Data: one rank's end of a communicator in, a panic that names the case and the rank out. Every
//! rank calls it; the cases only use the trait, and check what its `# Contract` promises. A rank
//! that panics must end the others too, for they may wait for it.
//!
//! The ranks must share a clock, so that a barrier can be checked: they run on one machine.
//!
//! ```
//! use standfast_conformance::comm;
//! use standfast_testkit::run_threads;
//! run_threads(3, |end| comm::run(&end));
//! ```

mod collectives;
mod groups;
mod messages;
mod threads;

use standfast_comm::{Comm, Result, Tag};
use standfast_format::Kind;

/// One thing that the contract promises.
pub struct Case {
    /// What is promised, as a name.
    pub name: &'static str,
    check: fn(&dyn Comm),
}

impl Case {
    /// Checks it together with the other ranks; panics where the promise is broken.
    pub fn check(&self, comm: &dyn Comm) {
        let _told = TellOnPanic { case: self.name, rank: comm.rank(), size: comm.size() };
        (self.check)(comm);
    }
}

/// Every case.
pub fn cases() -> impl Iterator<Item = &'static Case> {
    [messages::CASES, groups::CASES, collectives::CASES, threads::CASES].into_iter().flatten()
}

/// Runs every case, on the communicator itself: what one leaves behind would disturb the next.
pub fn run(comm: &dyn Comm) {
    for case in cases() {
        case.check(comm);
    }
}

struct TellOnPanic {
    case: &'static str,
    rank: usize,
    size: usize,
}

impl Drop for TellOnPanic {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let Self { case, rank, size } = self;
            eprintln!("rank {rank} of {size}: the communicator breaks its contract: {case}");
        }
    }
}

/// The tag of cases that need only one.
const TAG: Tag = Tag(7);

/// Lengths around the borders at which transports change their ways, and several MiB.
const LENGTHS: [usize; 10] = [0, 1, 8, 4095, 4096, 4097, 65_536, 65_537, 1 << 20, (5 << 20) + 3];

/// The result must be a failure of this kind.
#[track_caller]
fn expect_kind<T>(result: Result<T>, kind: Kind) {
    match result {
        Ok(_) => panic!("expected a failure of kind {kind}, got success"),
        Err(error) => assert_eq!(error.kind(), kind, "{error}"),
    }
}

/// Bytes of which every `seed` has others, and no two places near each other the same: neither a
/// shifted nor another message passes. They repeat after a prime number, which is no transport's
/// unit.
fn pattern(len: usize, seed: usize) -> Vec<u8> {
    const PERIOD: usize = 16_381;
    let mut state = (seed as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut bytes = Vec::with_capacity(len + 8);
    while bytes.len() < len.min(PERIOD) {
        // xorshift64
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        bytes.extend_from_slice(&state.to_le_bytes());
    }
    bytes.truncate(PERIOD);
    while bytes.len() < len {
        bytes.extend_from_within(..bytes.len().min(len - bytes.len()));
    }
    bytes.truncate(len);
    bytes
}

/// The message must be `pattern(len, seed)`; megabytes are not printed.
#[track_caller]
fn expect_pattern(message: &[u8], len: usize, seed: usize) {
    assert_eq!(message.len(), len, "length of the message");
    assert!(message == pattern(len, seed), "a message of {len} bytes has other bytes");
}

/// Every ordered pair of ranks takes its turn: one at a time, so that nobody waits in a circle.
fn each_pair(comm: &dyn Comm, mut turn: impl FnMut(usize, usize)) {
    for from in 0..comm.size() {
        for to in (0..comm.size()).filter(|to| *to != from) {
            if [from, to].contains(&comm.rank()) {
                turn(from, to);
            }
        }
    }
}
