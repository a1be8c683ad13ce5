//! Whether blocks go to a device that encodes for all threads ([`Offload`](crate::Offload)), as
//! numbers or as bytes, or are encoded here: wherever a raw byte takes less time until it is stored.
//!
//! A device's time is the time in which it had something to do, both transfers included; it takes no
//! processor from the others. Why windows of many blocks: a device is fast only when it is full.

use std::time::Instant;

/// The place is chosen anew after so many raw bytes of one sort: a device is full with less.
const WINDOW_BYTES: u64 = 32 << 20;
/// One window of so many tries a place that is not the best, for data and rates change.
const TRIAL_WINDOWS: usize = 32;

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
    places: &'static [Place],
    place: Place,
    windows: usize,
    window_bytes: u64,
    /// By place: what became of blocks when they were last there.
    seen: [Seen; PLACES.len()],
}

/// Raw bytes, stored bytes, and seconds in which the device was busy with them.
#[derive(Clone, Copy, Default)]
struct Seen(f64, f64, f64);

/// What is known about the device, and where blocks go.
pub(super) struct Elsewhere {
    /// Bytes; numbers of 2, of 4, of 8 bytes or more.
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
        let sort = |places: &'static [Place]| Sort {
            places,
            place: places[0],
            windows: 0,
            window_bytes: 0,
            seen: Default::default(),
        };
        let sorts = [&PLACES[1..], &PLACES, &PLACES, &PLACES].map(sort);
        Self { sorts, blocks: 0, counted: Instant::now() }
    }

    /// Where a block of so many bytes goes; the device has it until [`Elsewhere::end`]. `here_s`:
    /// what a raw byte takes in this process; `there_s`: by what the device takes and leaves of it.
    pub(super) fn place(
        &mut self,
        elem: u8,
        raw_bytes: usize,
        here_s: f64,
        there_s: impl Fn(f64, f64) -> f64,
    ) -> Place {
        let sort = &mut self.sorts[sort_of(elem)];
        if sort.window_bytes >= WINDOW_BYTES {
            sort.windows += 1;
            sort.window_bytes = 0;
            sort.place = sort.next_place(here_s, there_s);
        }
        sort.window_bytes += raw_bytes as u64;
        if sort.place != Place::Here {
            if self.blocks == 0 {
                self.counted = Instant::now();
            }
            self.blocks += 1;
        }
        sort.place
    }

    /// A block came back with raw and stored length, or without having been taken.
    pub(super) fn end(&mut self, elem: u8, place: Place, done: Option<(usize, usize)>) {
        self.blocks = self.blocks.saturating_sub(1);
        let Some((raw_bytes, stored_bytes)) = done else { return };
        let before = std::mem::replace(&mut self.counted, Instant::now());
        let Seen(raw, stored, busy_s) = &mut self.sorts[sort_of(elem)].seen[place as usize];
        *raw += raw_bytes as f64;
        *stored += stored_bytes as f64;
        *busy_s += self.counted.saturating_duration_since(before).as_secs_f64();
    }
}

impl Sort {
    /// Every place once, then the best one, and now and then another.
    fn next_place(&mut self, here_s: f64, there_s: impl Fn(f64, f64) -> f64) -> Place {
        let trial = match self.windows {
            first if first < self.places.len() => Some(first),
            later if later.is_multiple_of(TRIAL_WINDOWS) => Some(later / TRIAL_WINDOWS),
            _ => None,
        };
        if let Some(trial) = trial {
            let place = self.places[trial % self.places.len()];
            // What comes now counts, not what was.
            self.seen[place as usize] = Seen::default();
            return place;
        }
        let takes_s = |place: &Place| match (place, self.seen[*place as usize]) {
            (Place::Here, _) => here_s,
            (_, Seen(raw, stored, busy_s)) if raw > 0.0 => there_s(busy_s / raw, stored / raw),
            // The device takes none of them.
            _ => f64::INFINITY,
        };
        let best = self.places.iter().min_by(|a, b| takes_s(a).total_cmp(&takes_s(b)));
        *best.expect("there are two places at least")
    }
}

#[cfg(test)]
mod tests;
