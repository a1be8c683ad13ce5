//! The gate of a scan: nobody hashes far ahead of what is handed over.

use std::sync::{Condvar, Mutex};

/// Holds helpers back until what they would hash is soon to be handed over.
#[derive(Default)]
pub(super) struct Gate {
    /// Pieces handed over; `usize::MAX` when no more will be.
    done: Mutex<usize>,
    moved: Condvar,
}

impl Gate {
    /// Waits until piece `at` is at most `ahead` pieces away; false if nobody wants it any more.
    pub(super) fn pass(&self, at: usize, ahead: usize) -> bool {
        let done = self.done.lock().expect("counting does not panic");
        let far = |done: &mut usize| *done != usize::MAX && at >= *done + ahead;
        let done = self.moved.wait_while(done, far).expect("counting does not panic");
        *done != usize::MAX
    }

    /// Says how many pieces are handed over.
    pub(super) fn advance(&self, done: usize) {
        *self.done.lock().expect("counting does not panic") = done;
        self.moved.notify_all();
    }
}

/// Lets the helpers go, also when the consumer fails or panics.
pub(super) struct OpenOnDrop<'a>(pub(super) &'a Gate);

impl Drop for OpenOnDrop<'_> {
    fn drop(&mut self) {
        self.0.advance(usize::MAX);
    }
}
