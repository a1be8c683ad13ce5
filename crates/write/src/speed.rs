//! How fast the store is: measured while segments are written, for the codec `auto`.
//!
//! Data: [`Progress`] of the segment that is being written -> seconds for a stored byte, and whether
//! the program waits for the encoders -> [`Adaptive`].
//!
//! Why the first blocks wait: compressing is many times faster than a slow disk. Before a first
//! write has landed nobody knows that the disk is slow, and all memory would be full of blocks that
//! were compressed too little. The store has enough to do meanwhile.
//!
//! Invariants:
//! - A wait ends: with the first write that lands, or after [`FIRST_WAIT_MAX`].

use std::sync::{Arc, Mutex, TryLockError};
use std::time::Duration;

use standfast_format::SegmentId;
use standfast_reduce::Adaptive;
use standfast_store::{Pace, WriteMeter};

/// The rate is measured over so many bytes; the first time over fewer, for a rough figure early is
/// better than none.
const WINDOW_BYTES: u64 = 2 << 20;
const FIRST_WINDOW_BYTES: u64 = 64 << 10;
/// The average follows the store over so many bytes.
const MEMORY_BYTES: u64 = 8 << 20;
/// So much is handed to a store of unknown speed before anybody waits: more than its first write, so
/// that it has something to do meanwhile.
const UNKNOWN_BYTES_MAX: u64 = 128 << 10;
/// Longest wait for the first write.
const FIRST_WAIT_MAX: Duration = Duration::from_millis(100);

/// The program waits where so much of the pool waits for encoders: the rest is being filled, encoded
/// or written.
const WAITING_PART: f64 = 7.0 / 8.0;

/// How far a segment has come.
pub(crate) struct Progress {
    pub(crate) segment: SegmentId,
    /// Raw bytes that wait to be compressed.
    pub(crate) ahead_bytes: u64,
    /// Bytes handed to the store.
    pub(crate) handed_bytes: u64,
    /// Time that handing them over took.
    pub(crate) handing: Duration,
    /// Counts what has landed, where the store does that.
    pub(crate) meter: Option<Arc<WriteMeter>>,
}

/// Follows the store's speed.
pub(crate) struct StoreSpeed {
    adaptive: Arc<Adaptive>,
    pool_bytes: usize,
    window: Mutex<Window>,
}

#[derive(Default)]
struct Window {
    segment: Option<SegmentId>,
    /// At its start.
    began: Pace,
    seconds_per_byte: Option<f64>,
    /// Bytes that the average is made of.
    known_bytes: u64,
}

impl StoreSpeed {
    pub(crate) fn new(adaptive: Arc<Adaptive>, pool_bytes: usize) -> Self {
        Self { adaptive, pool_bytes, window: Mutex::default() }
    }

    /// Takes in how far a segment has come; waits where nothing is known of the store yet.
    pub(crate) fn observe(&self, progress: &Progress) {
        let known = self.look(progress);
        if let Some(meter) = &progress.meter
            && !known
            && progress.handed_bytes >= UNKNOWN_BYTES_MAX
        {
            meter.wait_landed(FIRST_WAIT_MAX);
            self.look(progress);
        }
    }

    /// Whether the store's speed is known, or another one is just finding out.
    fn look(&self, progress: &Progress) -> bool {
        let handed = Pace {
            landed_bytes: progress.handed_bytes,
            under_way_bytes: 0,
            busy: progress.handing,
            took: progress.handing,
        };
        let pace = progress.meter.as_ref().map_or(handed, |meter| meter.pace());
        let mut window = match self.window.try_lock() {
            Ok(window) => window,
            Err(TryLockError::Poisoned(window)) => window.into_inner(),
            // Another encoder is looking.
            Err(TryLockError::WouldBlock) => return true,
        };
        if window.segment.replace(progress.segment) != Some(progress.segment) {
            window.began = Pace::default();
        }
        let moved = pace.landed_bytes.saturating_sub(window.began.landed_bytes);
        let enough = window.known_bytes.clamp(FIRST_WINDOW_BYTES, WINDOW_BYTES);
        if moved >= enough {
            let now = pace.took_since(&window.began).as_secs_f64() / moved as f64;
            let before = window.seconds_per_byte.unwrap_or(now);
            window.known_bytes = (window.known_bytes + moved).min(MEMORY_BYTES);
            let pull = moved as f64 / window.known_bytes as f64;
            let seconds_per_byte = before + pull.min(1.0) * (now - before);
            window.seconds_per_byte = Some(seconds_per_byte);
            window.began = pace;
            self.adaptive.storing(seconds_per_byte);
        }
        let waiting = progress.ahead_bytes as f64 / self.pool_bytes as f64;
        self.adaptive.hurry(waiting >= WAITING_PART);
        window.seconds_per_byte.is_some()
    }
}

#[cfg(test)]
mod tests;
