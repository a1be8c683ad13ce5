//! Memory that is made ready beside the program, before anybody needs it.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

use crate::AlignedBuf;

/// Warming up stops between two pieces of so many bytes, if it is told to.
const PIECE_BYTES: usize = 2 << 20;

/// A thread that makes memory ready, and how much of it.
pub struct Warming {
    bytes: usize,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Warming {
    /// Starts a thread that makes so many bytes ready; it is told when to stop. Without a thread
    /// everything goes on, a little later.
    pub fn start(bytes: usize, work: impl FnOnce(&AtomicBool) + Send + 'static) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&stop);
        let run = move || {
            crate::keep_signals_away();
            work(&stopped);
        };
        let thread = std::thread::Builder::new().name("sf-warm".into()).spawn(run).ok();
        Self { bytes, stop, thread }
    }

    /// How many bytes are to be made ready.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Waits until everything is ready.
    pub fn wait(&mut self) {
        if let Some(thread) = self.thread.take() {
            // Nothing depends on it.
            let _ = thread.join();
        }
    }

    /// Stops, and makes nothing ready any more.
    pub fn stop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        self.wait();
    }
}

impl Drop for Warming {
    fn drop(&mut self) {
        self.stop();
    }
}

impl AlignedBuf {
    /// Lets memory be there for some bytes, piece by piece, unless it is told to stop. `ready` learns
    /// of each piece.
    pub fn warm(
        &self,
        bytes: Range<usize>,
        stop: &AtomicBool,
        mut ready: impl FnMut(Range<usize>),
    ) {
        let last = bytes.end.min(self.len());
        for start in (bytes.start..last).step_by(PIECE_BYTES) {
            let end = last.min(start + PIECE_BYTES);
            if stop.load(Ordering::Relaxed) || !self.populate(start..end) {
                return;
            }
            ready(start..end);
        }
    }
}
