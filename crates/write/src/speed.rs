//! How fast the store is: measured while segments are written, for the codec `auto`.
//!
//! Data: [`Progress`] of the segment that is being written -> seconds for a stored byte and the
//! bytes still on their way -> [`Adaptive`].
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
    pub(crate) fn new(adaptive: Arc<Adaptive>) -> Self {
        Self { adaptive, window: Mutex::default() }
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
        let backlog = progress.meter.is_some().then_some(pace.under_way_bytes);
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
            window.seconds_per_byte = Some(before + pull.min(1.0) * (now - before));
            window.began = pace;
        }
        self.adaptive.storing(window.seconds_per_byte, backlog);
        self.adaptive.waiting(progress.ahead_bytes);
        window.seconds_per_byte.is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn progress(handed_bytes: u64, handing_ms: u64, meter: Option<Arc<WriteMeter>>) -> Progress {
        let handing = Duration::from_millis(handing_ms);
        let segment = SegmentId([1; 16]);
        Progress { segment, ahead_bytes: 5 << 20, handed_bytes, handing, meter }
    }

    fn start() -> (Arc<Adaptive>, StoreSpeed) {
        let adaptive = Arc::new(Adaptive::new(1, 1, false));
        (Arc::clone(&adaptive), StoreSpeed::new(adaptive))
    }

    fn mib_takes(adaptive: &Adaptive, expected_s: f64) {
        let mib_s = adaptive.rates().store_s * f64::from(1 << 20);
        assert!((mib_s / expected_s - 1.0).abs() < 1e-6, "{mib_s}");
    }

    #[test]
    fn without_a_meter_the_time_of_handing_over_counts() {
        let (adaptive, speed) = start();
        let unknown = adaptive.rates().store_s;
        speed.observe(&progress(1 << 10, 500, None));
        assert_eq!(adaptive.rates().store_s, unknown, "too few to tell");
        let mib_takes = |expected_s| mib_takes(&adaptive, expected_s);
        speed.observe(&progress(1 << 20, 2000, None));
        mib_takes(2.0);
        speed.observe(&progress(2 << 20, 3000, None));
        mib_takes(1.5);
        speed.observe(&progress(3 << 20, 10_000, None));
        // Too few to change it now.
        mib_takes(1.5);
        speed.observe(&progress(4 << 20, 10_000, None));
        mib_takes(2.5);
        speed.observe(&progress(64 << 20, 70_000, None));
        // What was long ago is forgotten.
        mib_takes(1.0);
        assert_eq!(adaptive.rates().ahead_bytes, f64::from(5 << 20));
    }

    #[test]
    fn a_write_that_waited_for_a_core_does_not_make_the_store_slow() {
        let (adaptive, speed) = start();
        let meter = WriteMeter::shared();
        meter.started(1 << 20);
        std::thread::sleep(Duration::from_millis(5));
        meter.landed(1 << 20, Duration::from_millis(1));
        speed.observe(&progress(1 << 20, 0, Some(meter)));
        mib_takes(&adaptive, 1e-3);
    }

    #[test]
    fn what_has_not_landed_is_the_backlog() {
        let (adaptive, speed) = start();
        let meter = WriteMeter::shared();
        meter.started(2 << 20);
        meter.started(4 << 20);
        meter.landed(2 << 20, Duration::from_millis(9));
        speed.observe(&progress(7 << 20, 0, Some(Arc::clone(&meter))));
        assert_eq!(adaptive.rates().backlog_bytes, Some(f64::from(4 << 20)));
        meter.landed(4 << 20, Duration::from_millis(9));
        speed.observe(&progress(7 << 20, 0, Some(meter)));
        assert_eq!(adaptive.rates().backlog_bytes, Some(0.0));
    }
}
