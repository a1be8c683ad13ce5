//! The one suite that every backend and every wrapper runs.
//!
//! Data: a maker of empty stores in, a panic that names the case out. Cases only use the
//! [`Store`] trait and check what its `# Contract` promises, nothing of a backend's own.
//!
//! ```
//! use std::sync::Arc;
//! use standfast_conformance::store;
//! use standfast_store::MemoryStore;
//! store::run(|| Arc::new(MemoryStore::new()));
//! ```

mod listing;
mod locks;
mod objects;
mod readers;
mod writers;

use std::sync::Arc;

use standfast_format::Kind;
use standfast_store::{Result, Store};

/// One thing that the contract promises.
pub struct Case {
    /// What is promised, as a name.
    pub name: &'static str,
    check: fn(&Arc<dyn Store>),
}

impl Case {
    /// Checks it on an empty store; panics where the promise is broken.
    pub fn check(&self, store: &Arc<dyn Store>) {
        let _told = TellOnPanic(self.name);
        (self.check)(store);
    }
}

/// Every case.
pub fn cases() -> impl Iterator<Item = &'static Case> {
    [objects::CASES, writers::CASES, readers::CASES, listing::CASES, locks::CASES]
        .into_iter()
        .flatten()
}

/// Runs every case, each on a store of its own from `make`, which must be empty.
pub fn run(make: impl Fn() -> Arc<dyn Store>) {
    for case in cases() {
        case.check(&make());
    }
}

struct TellOnPanic(&'static str);

impl Drop for TellOnPanic {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("the store breaks its contract: {}", self.0);
        }
    }
}

/// The result must be a failure of this kind.
#[track_caller]
fn expect_kind<T>(result: Result<T>, kind: Kind) {
    match result {
        Ok(_) => panic!("expected a failure of kind {kind}, got success"),
        Err(error) => assert_eq!(error.kind(), kind, "{error}"),
    }
}

/// Bytes that differ everywhere and for every `seed`, so that a shifted copy cannot pass.
fn pattern(len: usize, seed: u64) -> Vec<u8> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut bytes = Vec::with_capacity(len + 8);
    while bytes.len() < len {
        // xorshift64
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        bytes.extend_from_slice(&state.to_le_bytes());
    }
    bytes.truncate(len);
    bytes
}

/// Writes an object through a writer.
#[track_caller]
fn write(store: &Arc<dyn Store>, name: &str, bytes: &[u8]) {
    let mut writer = store.create(name, Some(bytes.len() as u64)).unwrap();
    writer.append(bytes).unwrap();
    assert_eq!(writer.seal().unwrap(), bytes.len() as u64);
}

/// Reads a whole object, whatever its size.
#[track_caller]
fn read(store: &Arc<dyn Store>, name: &str) -> Vec<u8> {
    store.get(name, u64::MAX).unwrap()
}
