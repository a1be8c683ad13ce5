//! The flow of bytes: how fast they may go, when they must wait, when to give up.
//!
//! Whoever carries bytes calls [`Flow::pass`] before each piece it reads and before each it sends,
//! and [`Flow::sent`] after that. The program's own work comes first: while a rank stores a checkpoint or
//! restarts ([`Lock::Busy`]) nothing passes.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use standfast_format::Kind;
use standfast_store::{Lock, Store};

use crate::error::{Error, Result};

/// How often somebody who waits looks again.
const LOOK: Duration = Duration::from_millis(5);
/// A drain that was idle may catch up for this long, not more.
const CREDIT: Duration = Duration::from_millis(50);

/// What has happened so far, for whoever watches.
#[derive(Debug, Default)]
pub struct Progress {
    /// Bytes of the source that are dealt with.
    pub read: AtomicU64,
    /// Bytes that were sent.
    pub sent: AtomicU64,
    /// Nanoseconds of waiting for the program.
    pub paused_ns: AtomicU64,
}

/// The limits under which bytes move.
#[derive(Debug)]
pub struct Flow<'a> {
    /// The local store, whose ranks come first.
    local: &'a dyn Store,
    /// Bytes per second.
    rate: Option<u64>,
    /// When the next byte may go, at that rate.
    free: Mutex<Instant>,
    deadline: Option<Instant>,
    stop: &'a AtomicBool,
    progress: &'a Progress,
    began: Instant,
    /// Until when waiting is counted: several threads wait for the same.
    counted: Mutex<Instant>,
}

impl<'a> Flow<'a> {
    /// A flow that gives way to the ranks of a store, and ends when `stop` is set.
    pub fn new(local: &'a dyn Store, stop: &'a AtomicBool, progress: &'a Progress) -> Self {
        let began = Instant::now();
        let (free, counted) = (Mutex::new(began), Mutex::new(began));
        Self { local, rate: None, free, deadline: None, stop, progress, began, counted }
    }

    /// Sends at most so many bytes per second.
    pub fn rate(mut self, bytes_per_s: Option<u64>) -> Self {
        self.rate = bytes_per_s;
        self
    }

    /// Gives up at that instant.
    pub fn deadline(mut self, deadline: Option<Instant>) -> Self {
        self.deadline = deadline;
        self
    }

    /// Time that is left, if there is an end.
    pub fn left(&self) -> Option<Duration> {
        self.deadline.map(|end| end.saturating_duration_since(Instant::now()))
    }

    /// Bytes of the source per second so far; `None` before the first ones.
    pub fn pace(&self) -> Option<f64> {
        let read = self.progress.read.load(Ordering::Relaxed);
        (read > 0).then(|| read as f64 / self.began.elapsed().as_secs_f64())
    }

    /// Waits until no rank is busy.
    pub fn pass(&self) -> Result<()> {
        self.check()?;
        let began = Instant::now();
        while self.is_busy()? {
            std::thread::sleep(LOOK);
            self.check()?;
        }
        self.count_pause(began);
        Ok(())
    }

    fn count_pause(&self, began: Instant) {
        let mut counted = self.counted.lock().expect("nobody panics with it");
        let now = Instant::now();
        let waited = now.saturating_duration_since(began.max(*counted));
        *counted = now.max(*counted);
        self.progress.paused_ns.fetch_add(waited.as_nanos() as u64, Ordering::Relaxed);
    }

    /// Counts bytes that were sent, and waits as long as they must take.
    pub fn sent(&self, bytes: u64) -> Result<()> {
        self.progress.sent.fetch_add(bytes, Ordering::Relaxed);
        let Some(rate) = self.rate else { return self.check() };
        let until = {
            let mut free = self.free.lock().expect("nobody panics with it");
            let now = Instant::now();
            let from = (*free).max(now.checked_sub(CREDIT).unwrap_or(now));
            *free = from + Duration::from_secs_f64(bytes as f64 / rate.max(1) as f64);
            *free
        };
        self.wait_until(until)
    }

    /// Counts bytes of the source that are dealt with.
    pub fn read(&self, bytes: u64) {
        self.progress.read.fetch_add(bytes, Ordering::Relaxed);
    }

    /// Sleeps, unless it is asked to stop or the time is over.
    pub fn wait_until(&self, until: Instant) -> Result<()> {
        loop {
            self.check()?;
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Ok(());
            }
            std::thread::sleep(left.min(LOOK));
        }
    }

    fn check(&self) -> Result<()> {
        if self.stop.load(Ordering::Relaxed) {
            return Err(Error::Stopped);
        }
        if self.left().is_some_and(|left| left.is_zero()) {
            return Err(Error::Deadline);
        }
        Ok(())
    }

    fn is_busy(&self) -> Result<bool> {
        match self.local.lock(Lock::Idle) {
            Ok(_) => Ok(false),
            Err(error) if error.kind() == Kind::Busy => Ok(true),
            // Where a lock cannot be taken at all no rank can be writing either.
            Err(error) if error.kind() == Kind::Denied => Ok(false),
            Err(error) => Err(error.into()),
        }
    }
}

#[cfg(test)]
mod tests;
