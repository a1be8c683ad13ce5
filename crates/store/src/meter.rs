//! Counts the writes of one object: by size for the profile, and by time for the live rate.
//!
//! Data: the backend tells when a write is handed over and when it has landed -> [`Pace`] for
//! whoever adapts to the medium's speed, and a [`Tally`] for the manifest.
//!
//! Invariants:
//! - Busy time is time in which at least one write was on its way, however many there were.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use standfast_format::Tally;

/// What has landed so far, and in how much time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Pace {
    /// Bytes that reached the medium.
    pub landed_bytes: u64,
    /// Bytes that were handed over and have not reached it yet.
    pub under_way_bytes: u64,
    /// Time in which something was on its way there, until something landed the last time: the time
    /// of what is still on its way has no bytes to go with it.
    pub busy: Duration,
    /// What the writes took that landed, added up: more than the busy time where several are on their
    /// way at once, less where a write waits for a thread to take it up.
    pub took: Duration,
}

impl Pace {
    /// What the medium took since an earlier moment: the lesser of both times. Waiting for a core is
    /// not its time, and at first, with short writes, there is much of that.
    pub fn took_since(&self, before: &Self) -> Duration {
        let busy = self.busy.saturating_sub(before.busy);
        busy.min(self.took.saturating_sub(before.took))
    }
}

/// Counts the writes of one object; shared between its writer and those who watch.
#[derive(Debug, Default)]
pub struct WriteMeter {
    state: Mutex<State>,
    landed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    under_way: usize,
    busy_since: Option<Instant>,
    /// Of earlier times.
    busy: Duration,
    pace: Pace,
    tally: Tally,
}

impl WriteMeter {
    /// A meter for one object.
    pub fn shared() -> Arc<Self> {
        Arc::default()
    }

    /// A write of so many bytes is handed over.
    pub fn started(&self, bytes: u64) {
        let mut state = self.lock();
        state.under_way += 1;
        state.pace.under_way_bytes += bytes;
        state.busy_since.get_or_insert_with(Instant::now);
    }

    /// A write of so many bytes has landed and took the medium so long.
    pub fn landed(&self, bytes: u64, took: Duration) {
        let mut state = self.lock();
        state.tally.add(bytes, took.as_nanos() as u64);
        state.pace.landed_bytes += bytes;
        state.pace.took += took;
        state.pace.under_way_bytes = state.pace.under_way_bytes.saturating_sub(bytes);
        let running = state.busy_since.map_or(Duration::ZERO, |since| since.elapsed());
        state.pace.busy = state.busy + running;
        state.finish();
        drop(state);
        self.landed.notify_all();
    }

    /// A write has failed.
    pub fn failed(&self) {
        self.lock().finish();
        self.landed.notify_all();
    }

    /// Writes that the medium has to do.
    pub fn under_way(&self) -> usize {
        self.lock().under_way
    }

    /// What has landed so far.
    pub fn pace(&self) -> Pace {
        self.lock().pace
    }

    /// Waits until something has landed, nothing is under way, or the time is over.
    pub fn wait_landed(&self, timeout: Duration) {
        let none = |state: &mut State| state.pace.landed_bytes == 0 && state.under_way > 0;
        let waited = self.landed.wait_timeout_while(self.lock(), timeout, none);
        drop(waited.unwrap_or_else(PoisonError::into_inner));
    }

    /// The writes so far, by size.
    pub fn tally(&self) -> Tally {
        self.lock().tally.clone()
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // Numbers only: whoever panicked has left them usable.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn finish(&mut self) {
        self.under_way -= 1;
        if self.under_way == 0
            && let Some(since) = self.busy_since.take()
        {
            self.busy += since.elapsed();
        }
    }
}

#[cfg(test)]
mod tests;
