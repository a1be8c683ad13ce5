//! Whether blocks go to a device that encodes for all threads ([`Offload`](crate::Offload)), as
//! numbers or as bytes, or are encoded here.
//!
//! ```text
//! a block -> the place of its window -> device, or an encoder of this process
//! what came back, and in what time the device was busy -> the model -> the place of the next window
//! ```
//! The model is the one of all plans: `T_P = max(T_c, T_zip, T_s)`. `T_zip` of the device is the time
//! in which it had something to do, both transfers included; it takes no processor from the others.
//! So a store that is faster than the device gets blocks as they are, one that is slower gets what is
//! smallest: between them lies the beneficial point.
//!
//! Why windows of many blocks: a device is fast only when it is full.

use std::time::Instant;

/// The place is chosen anew after so many raw bytes of one sort.
const WINDOW_BYTES: u64 = 32 << 20;
/// One window of so many tries a place that is not the best, for data and rates change.
const TRIAL_WINDOWS: u32 = 32;
/// Of what is remembered about a place, so much stays with each of its windows.
const REMEMBER: f64 = 0.5;

/// Where a block is encoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    /// On the device, as numbers of a size.
    Numbers,
    /// On the device, as bytes.
    Bytes,
    /// By whoever asks.
    Here,
}

const PLACES: [Place; 3] = [Place::Numbers, Place::Bytes, Place::Here];

/// Blocks of numbers of one size, or of bytes.
#[derive(Clone, Copy)]
struct Sort {
    place: Place,
    windows: u32,
    window_bytes: u64,
    /// What became of blocks as numbers, and as bytes.
    seen: [Seen; 2],
}

/// What the device did with some blocks.
#[derive(Clone, Copy, Default)]
struct Seen {
    raw_bytes: f64,
    stored_bytes: f64,
    busy_s: f64,
}

/// What is known about the device, and where blocks go.
pub(super) struct Elsewhere {
    /// By the size of numbers: unknown, 2, 4, 8 and more.
    sorts: [Sort; 4],
    /// Blocks that the device has, and until when its time is counted.
    blocks: usize,
    counted: Instant,
}

fn sort_of(elem: u8) -> usize {
    match elem {
        2 => 1,
        4 => 2,
        8 | 16 => 3,
        _ => 0,
    }
}

impl Elsewhere {
    pub(super) fn new() -> Self {
        let sort = |place| Sort { place, windows: 0, window_bytes: 0, seen: Default::default() };
        let numbers = sort(Place::Numbers);
        let sorts = [sort(Place::Bytes), numbers, numbers, numbers];
        Self { sorts, blocks: 0, counted: Instant::now() }
    }

    /// Where a block of so many bytes goes. `here_s`: what a raw byte takes with the plan of this
    /// process; `there_s`: the same by what the device takes and leaves of it.
    pub(super) fn place(
        &mut self,
        elem: u8,
        raw_bytes: usize,
        here_s: impl FnOnce() -> f64,
        there_s: impl Fn(f64, f64) -> f64,
    ) -> Place {
        let at = sort_of(elem);
        let sort = &mut self.sorts[at];
        if sort.window_bytes >= WINDOW_BYTES {
            sort.windows += 1;
            sort.window_bytes = 0;
            sort.place = sort.next_place(at == 0, here_s, there_s);
        }
        sort.window_bytes += raw_bytes as u64;
        sort.place
    }

    /// The device is given a block.
    pub(super) fn begin(&mut self) {
        if self.blocks == 0 {
            self.counted = Instant::now();
        }
        self.blocks += 1;
    }

    /// A block came back with raw and stored length, or without having been taken.
    pub(super) fn end(&mut self, elem: u8, place: Place, done: Option<(usize, usize)>) {
        self.blocks = self.blocks.saturating_sub(1);
        let Some((raw_bytes, stored_bytes)) = done else { return };
        let now = Instant::now();
        let busy_s = now.saturating_duration_since(self.counted).as_secs_f64();
        self.counted = now;
        let seen = &mut self.sorts[sort_of(elem)].seen[usize::from(place == Place::Bytes)];
        seen.raw_bytes += raw_bytes as f64;
        seen.stored_bytes += stored_bytes as f64;
        seen.busy_s += busy_s;
    }
}

impl Sort {
    /// Every place once, then the best one, and now and then another.
    fn next_place(
        &mut self,
        only_bytes: bool,
        here_s: impl FnOnce() -> f64,
        there_s: impl Fn(f64, f64) -> f64,
    ) -> Place {
        let places = &PLACES[usize::from(only_bytes)..];
        if let Some(untried) = places.get(self.windows as usize) {
            return *untried;
        }
        if self.windows.is_multiple_of(TRIAL_WINDOWS) {
            let trial = (self.windows / TRIAL_WINDOWS) as usize % places.len();
            self.forget(places[trial]);
            return places[trial];
        }
        let here_s = here_s();
        let takes_s = |place: &Place| match place {
            Place::Numbers => self.seen[0].takes_s(&there_s),
            Place::Bytes => self.seen[1].takes_s(&there_s),
            Place::Here => here_s,
        };
        let best = places.iter().min_by(|a, b| takes_s(a).total_cmp(&takes_s(b)));
        *best.expect("there are two places at least")
    }

    /// What comes now counts more than what was.
    fn forget(&mut self, place: Place) {
        let at = match place {
            Place::Numbers => 0,
            Place::Bytes => 1,
            Place::Here => return,
        };
        let Seen { raw_bytes, stored_bytes, busy_s } = self.seen[at];
        let [raw_bytes, stored_bytes, busy_s] =
            [raw_bytes, stored_bytes, busy_s].map(|value| value * REMEMBER);
        self.seen[at] = Seen { raw_bytes, stored_bytes, busy_s };
    }
}

impl Seen {
    fn takes_s(&self, there_s: impl Fn(f64, f64) -> f64) -> f64 {
        match self.raw_bytes > 0.0 {
            true => there_s(self.busy_s / self.raw_bytes, self.stored_bytes / self.raw_bytes),
            // The device takes none of them.
            false => f64::INFINITY,
        }
    }
}

#[cfg(test)]
mod tests;
