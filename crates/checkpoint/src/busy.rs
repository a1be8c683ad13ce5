//! Telling a drain that this process stores or reads data: it steps aside until that is done.

use std::time::Duration;

use standfast_format::Kind;
use standfast_store::{Lock, LockGuard, Store};

/// A drain that looks whether anybody is busy is in the way for a moment; more looks than this in
/// a row do not happen.
const TRIES: u32 = 20;
const PAUSE: Duration = Duration::from_micros(100);

/// Holds drains up until dropped. Advice: where it cannot be given, nothing but speed is lost.
pub fn hold(store: &dyn Store) -> Option<LockGuard> {
    for _ in 0..TRIES {
        match store.lock(Lock::Busy) {
            Ok(guard) => return Some(guard),
            Err(error) if error.kind() == Kind::Busy => std::thread::sleep(PAUSE),
            Err(_) => return None,
        }
    }
    None
}
