//! What is known about classes of blocks: what each codec costs and saves on them.
//!
//! Data: encoders tell what became of blocks ([`Seen`]) and what two codecs made of the same block
//! ([`Pair`]) -> averages -> [`Class`]es for the plan.
//!
//! Why pairs: blocks of a class differ, and those that one codec met are not those that another met.
//! Figures of both side by side would compare blocks, not codecs. So a class has one level, which
//! follows the blocks that come whatever is done with them: time and share of its *reference* codec.
//! What another codec takes and leaves of that is learned only where both had the same block. What
//! was never compared in a class is taken from others whose blocks are expected to shrink as much
//! (where nearly nothing is left of a block codecs differ in other ways), and before that from a
//! table.
//!
//! Invariants:
//! - Option 0 is "as it is" in every class, and always known.

use standfast_format::FilterKind;

use super::pairs::{Factor, Pair, Pairs};
use super::plan::{Class, Cost};
use crate::codec::CodecSpec;
use crate::probe::Sampled;

/// What may be done with a block, lightest first: its setting, and what it is guessed to take of
/// processor nanoseconds for a byte and to leave of what LZ4 leaves, before it was tried. Guesses
/// promise little: what lies next to a plan's choice is tried anyway, and used when that pays.
const LADDER: [(&str, f64, f64); 7] = [
    ("none", 0.0, 1.0),
    ("lz4", 1.0, 1.0),
    ("zstd:1", 2.0, 0.93),
    ("zstd:3", 2.8, 0.91),
    ("zstd:6", 8.0, 0.9),
    ("zstd:9", 12.0, 0.89),
    ("deflate:1", 14.0, 0.89),
];
pub(super) const OPTIONS: usize = LADDER.len();

/// The settings of all options.
pub(super) fn ladder() -> [CodecSpec; OPTIONS] {
    LADDER.map(|(text, ..)| text.parse().expect("a codec that exists"))
}

/// By how much the sample is expected to shrink, in quarters.
const SHARES: usize = 4;
/// Classes: of each filter so many; and blocks whose bytes are only skewed.
pub(super) const CLASSES: usize = FilterKind::ALL.len() * SHARES + 1;
const SKEWED: usize = CLASSES - 1;
/// LZ4 finds nothing in blocks whose bytes are only skewed.
const LZ4: usize = 1;
/// The first of the slow ones.
pub(super) const ZSTD: usize = 2;

/// The class of a block.
pub(super) fn class_of(sampled: &Sampled) -> usize {
    if sampled.only_skewed {
        return SKEWED;
    }
    let filter = FilterKind::ALL.iter().position(|kind| *kind == sampled.filter);
    let share = (sampled.share * SHARES as f32) as usize;
    filter.expect("ALL has every kind") * SHARES + share.min(SHARES - 1)
}

/// The option that others are compared with, and what is done with the first block of a class: fast,
/// and not in vain.
pub(super) fn reference(class: usize) -> usize {
    if class == SKEWED { ZSTD } else { LZ4 }
}

/// What became of some blocks of one class.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Seen {
    pub(super) raw_bytes: u64,
    pub(super) stored_bytes: u64,
    /// Processor time, and the bytes it was measured on.
    pub(super) zip_s: f64,
    pub(super) timed_bytes: u64,
    /// What the sample promised, times the raw bytes.
    pub(super) promised_bytes: f64,
}

/// Averages follow the data with these many bytes: lengths, and times, which are noisy.
const SHARE_BYTES: f64 = 1e6;
const TIME_BYTES: f64 = 4e6;
/// What a class is of all bytes is averaged over so many.
const WEIGHT_BYTES: f64 = 16e6;
/// A class of no more than this of all bytes does not come any more.
const WEIGHT_NONE: f64 = 1e-3;

#[derive(Clone, Debug)]
struct OfClass {
    weight_bytes: f64,
    promised: f64,
    /// Time and share of the reference, and how often they were seen.
    zip_s: f64,
    share: f64,
    times: f64,
    pairs: [Pairs; OPTIONS],
}

/// What is known about all classes.
pub(super) struct Knowledge {
    classes: Vec<OfClass>,
    /// Of all classes of blocks that are expected to shrink alike.
    pairs: [[Pairs; OPTIONS]; SHARES],
    /// Bytes that no codec is tried on.
    noise_bytes: f64,
    all_bytes: f64,
    /// What a raw byte takes beside its codec: looking at it, handing it on.
    beside_s: f64,
    beside_bytes: f64,
}

impl Knowledge {
    pub(super) fn new() -> Self {
        let class = |class| OfClass {
            weight_bytes: 0.0,
            promised: 1.0,
            zip_s: LADDER[reference(class)].1 * 1e-9,
            share: 1.0,
            times: 0.0,
            pairs: Default::default(),
        };
        Self {
            classes: (0..CLASSES).map(class).collect(),
            pairs: Default::default(),
            noise_bytes: 0.0,
            all_bytes: 0.0,
            beside_s: 0.0,
            beside_bytes: 0.0,
        }
    }

    /// Takes in bytes that were stored as they are since nothing is to be gained.
    pub(super) fn noise(&mut self, bytes: u64) {
        self.age(bytes);
        self.noise_bytes += bytes as f64;
    }

    /// Takes in what some bytes took beside their codec.
    pub(super) fn beside(&mut self, seconds: f64, bytes: u64) {
        if bytes == 0 {
            return;
        }
        self.beside_bytes = (self.beside_bytes + bytes as f64).min(TIME_BYTES);
        let pull = (bytes as f64 / self.beside_bytes).min(1.0);
        self.beside_s += pull * (seconds / bytes as f64 - self.beside_s);
    }

    /// Takes in what two options made of the same block.
    pub(super) fn compare(&mut self, class: usize, option: usize, pair: Pair) {
        self.classes[class].pairs[option].add(pair);
        if class != SKEWED {
            self.pairs[class % SHARES][option].add(pair);
        }
    }

    /// Takes in what became of blocks.
    pub(super) fn learn(&mut self, class: usize, option: usize, seen: &Seen) {
        if seen.raw_bytes == 0 {
            return;
        }
        self.age(seen.raw_bytes);
        let raw = seen.raw_bytes as f64;
        let factor = self.factor(class, option);
        let of_class = &mut self.classes[class];
        of_class.weight_bytes += raw;
        let pull = (raw / SHARE_BYTES).min(0.5).max(1.0 / (of_class.times + 1.0));
        of_class.promised += pull * (seen.promised_bytes / raw - of_class.promised);
        if option == 0 {
            return;
        }
        let share = (seen.stored_bytes as f64 / raw / factor.share).min(1.0);
        of_class.share += pull * (share - of_class.share);
        if seen.timed_bytes > 0 {
            let zip_s = seen.zip_s / seen.timed_bytes as f64 / factor.zip;
            let pull = (raw / TIME_BYTES).min(0.5).max(1.0 / (of_class.times + 1.0));
            of_class.zip_s += pull * (zip_s - of_class.zip_s);
            of_class.times += 1.0;
        }
    }

    fn age(&mut self, bytes: u64) {
        let keep = 1.0 - (bytes as f64 / WEIGHT_BYTES).min(0.5);
        self.classes.iter_mut().for_each(|class| class.weight_bytes *= keep);
        self.noise_bytes *= keep;
        self.all_bytes = self.all_bytes * keep + bytes as f64;
    }

    /// The classes that come, with their costs, for the plan; last, as number [`CLASSES`], the bytes
    /// that are only passed on.
    pub(super) fn classes(&self) -> Vec<Class> {
        let all = self.all_bytes.max(1.0);
        let weight = |at: usize| self.classes[at].weight_bytes / all;
        let class = |at: usize| Class {
            at,
            weight: weight(at),
            options: (0..OPTIONS).map(|option| self.cost(at, option)).collect(),
        };
        let come = (0..CLASSES).filter(|at| weight(*at) > WEIGHT_NONE);
        let as_it_is = Cost { zip_s: self.beside_s, share: 1.0 };
        let noise = Class { at: CLASSES, weight: self.noise_bytes / all, options: vec![as_it_is] };
        come.map(class).chain([noise]).collect()
    }

    /// Whether an option was ever tried on a class like this one.
    pub(super) fn is_known_of_others(&self, class: usize, option: usize) -> bool {
        class != SKEWED && self.pairs[class % SHARES][option].is_known()
    }

    /// How often an option was compared on a class, of what counts.
    pub(super) fn times(&self, class: usize, option: usize) -> f64 {
        self.classes[class].pairs[option].count()
    }

    /// Whether an option was ever tried on a class.
    pub(super) fn is_known(&self, class: usize, option: usize) -> bool {
        let of_class = &self.classes[class];
        match option {
            0 => true,
            option if option == reference(class) => of_class.times > 0.0,
            option => of_class.pairs[option].is_known(),
        }
    }

    fn cost(&self, class: usize, option: usize) -> Cost {
        let of_class = &self.classes[class];
        if option == 0 || (class, option) == (SKEWED, LZ4) {
            return Cost { zip_s: self.beside_s, share: 1.0 };
        }
        let factor = self.factor(class, option);
        let share = if of_class.times > 0.0 { of_class.share } else { of_class.promised };
        Cost {
            zip_s: self.beside_s + of_class.zip_s * factor.zip,
            share: (share * factor.share).min(1.0),
        }
    }

    /// What an option takes and leaves by what the reference of a class does.
    fn factor(&self, class: usize, option: usize) -> Factor {
        let base = reference(class);
        if option == base || option == 0 {
            return Factor::ONE;
        }
        let (_, own_ns, own_share) = LADDER[option];
        let (_, base_ns, base_share) = LADDER[base];
        let guess = Factor { zip: own_ns / base_ns, share: own_share / base_share };
        let of_class = &self.classes[class].pairs[option];
        if class == SKEWED {
            // The others are compared with another reference.
            return of_class.factor(guess);
        }
        of_class.factor(self.pairs[class % SHARES][option].factor(guess))
    }
}

#[cfg(test)]
mod tests;
