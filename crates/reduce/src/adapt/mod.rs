//! The codec `auto`: zstd level 1, unless another one is known to be better now.
//!
//! ```text
//! encoders --what blocks took and left--> plan --> a rung of the ladder of codecs
//! the write path --speed of the store--> --^
//! ```
//! A small sample of each block gives the filter that suits it. Blocks in which it finds nothing are
//! stored as they are.
//!
//! Why bytes before time: the program has gone on, so nobody waits for a checkpoint to be durable.
//! What is stored fills the disk, goes to other nodes and to global storage, and is read again. So a
//! quicker codec is used only where it leaves about as little ([`plan`]), a harder one only where the
//! store is so slow that checkpoints are durable sooner with it.
//!
//! Where a device encodes too (a GPU), it competes with that plan ([`elsewhere`]).
//!
//! Invariants:
//! - Any choice stores the block correctly.
//! - One [`Adaptive`] serves all encoders of a write path; what it holds is of fixed size.

mod elsewhere;
mod plan;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use rustix::time::{ClockId, clock_gettime};

use crate::codec::{Codec, codec};
use elsewhere::Elsewhere;
pub(crate) use elsewhere::Place;
use plan::{BASE, Choice, Cost, LADDER, Learned, RUNGS, Rates};

/// What all encoders of a write path know together.
pub struct Adaptive {
    /// Held for moments, a few times for each block.
    state: Mutex<State>,
}

struct State {
    rates: Rates,
    learned: Learned,
    /// Where a device encodes too.
    elsewhere: Elsewhere,
}

impl Adaptive {
    /// Nothing known yet, for so many encoders. `in_turn`: compressing and storing do not overlap.
    pub fn new(threads: usize, in_turn: bool) -> Self {
        let rates = Rates { store_s: None, threads: threads.max(1), in_turn, hurried: false };
        let (learned, elsewhere) = (Learned::default(), Elsewhere::new());
        Self { state: Mutex::new(State { rates, learned, elsewhere }) }
    }

    /// Tells what storing takes for a stored byte.
    pub fn storing(&self, seconds_per_byte: f64) {
        self.state().rates.store_s = Some(seconds_per_byte);
    }

    /// What storing takes for a stored byte, once it was told.
    pub fn store_s(&self) -> Option<f64> {
        self.state().rates.store_s
    }

    /// Tells whether the program waits for the encoders.
    pub fn hurry(&self, hurried: bool) {
        self.state().rates.hurried = hurried;
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // Numbers only: whoever panicked has left them usable.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Chooses for one encoder, and tells what came of it.
pub(crate) struct Choosing {
    adaptive: Arc<Adaptive>,
    /// By rung, made when first chosen.
    codecs: [Option<Box<dyn Codec>>; RUNGS],
}

impl Choosing {
    pub(crate) fn new(adaptive: Arc<Adaptive>) -> Self {
        Self { adaptive, codecs: Default::default() }
    }

    /// Where to encode a block, if there is a device for it; what goes there is to come back.
    pub(crate) fn place(&self, elem: u8, raw_bytes: usize) -> Place {
        let State { rates, learned, elsewhere } = &mut *self.adaptive.state();
        let there_s = |zip_s, share| rates.both_s(zip_s, share * rates.store_s.unwrap_or(0.0));
        elsewhere.place(elem, raw_bytes, learned.byte_s.unwrap_or(f64::INFINITY), there_s)
    }

    /// A block came back from the device with raw and stored length, or was not taken there.
    pub(crate) fn came_back(&self, elem: u8, place: Place, done: Option<(usize, usize)>) {
        self.adaptive.state().elsewhere.end(elem, place, done);
    }

    /// A block is stored as it is, for the sample found nothing in it.
    pub(crate) fn noise(&self, raw_bytes: usize) {
        let State { rates, learned, .. } = &mut *self.adaptive.state();
        learned.noise(raw_bytes, rates);
    }

    /// Compresses a block as is best now, by `compress`, which may be called twice. `None`: as it is.
    pub(crate) fn compress<T>(
        &mut self,
        raw_bytes: usize,
        mut compress: impl FnMut(&mut dyn Codec) -> Option<T>,
        len: impl Fn(&T) -> usize,
    ) -> Option<T> {
        let choice = self.adaptive.state().learned.choose();
        let mut timed = |rung: usize| {
            let began = (Instant::now(), thread_time());
            let done = self.codec(rung).and_then(&mut compress);
            let zip_s = thread_time().saturating_sub(began.1).as_secs_f64();
            let bytes = done.as_ref().map_or(raw_bytes, &len) as f64;
            (done, Cost { zip_s, bytes }, began.0.elapsed().as_secs_f64())
        };
        let (rung, other) = match choice {
            Choice::Take(rung) => (rung, None),
            Choice::Compare(rung) => (BASE, Some((rung, timed(rung).1))),
        };
        let (done, cost, wall_s) = timed(rung);
        let State { rates, learned, .. } = &mut *self.adaptive.state();
        if let Some((other, own)) = other {
            learned.compare(other, own, cost);
        }
        learned.learn(rung, raw_bytes, cost, wall_s, rates);
        done
    }

    /// The codec of a rung; `None`: as it is.
    fn codec(&mut self, rung: usize) -> Option<&mut dyn Codec> {
        if rung == 0 {
            return None;
        }
        let made = || codec(LADDER[rung].parse().expect("a codec that exists"));
        Some(self.codecs[rung].get_or_insert_with(made).as_mut())
    }
}

/// Processor time of this thread.
fn thread_time() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec.max(0) as u64, time.tv_nsec.max(0) as u32)
}

#[cfg(test)]
mod tests;
