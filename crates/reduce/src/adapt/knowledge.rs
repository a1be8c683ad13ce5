//! What is known about classes of blocks: what each codec cost and saved on them so far.
//!
//! Data: encoders tell what they did ([`Seen`]) -> averages -> [`Class`]es for the plan. What was
//! never tried is guessed from the sample and from what was tried.
//!
//! Invariants:
//! - Option 0 is "as it is" in every class, and always known.

use standfast_format::FilterKind;

use super::plan::{Class, Cost};
use crate::codec::CodecSpec;
use crate::probe::Sampled;

/// What may be done with a block, lightest first: its setting, and what it is guessed to take of
/// processor nanoseconds for a byte and to leave of what LZ4 leaves, before it was tried.
const LADDER: [(&str, f64, f64); 6] = [
    ("none", 0.05, 1.0),
    ("lz4", 0.7, 1.0),
    ("zstd:1", 2.0, 0.85),
    ("zstd:3", 4.0, 0.81),
    ("zstd:6", 9.0, 0.78),
    ("zstd:9", 14.0, 0.77),
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
/// Until anything is known: fast, and not in vain.
const FIRST: usize = LZ4;
const FIRST_SKEWED: usize = 2;

/// The class of a block.
pub(super) fn class_of(sampled: &Sampled) -> usize {
    if sampled.only_skewed {
        return SKEWED;
    }
    let filter = FilterKind::ALL.iter().position(|kind| *kind == sampled.filter);
    let share = (sampled.share * SHARES as f32) as usize;
    filter.expect("ALL has every kind") * SHARES + share.min(SHARES - 1)
}

/// What to do with the first block of a class.
pub(super) fn first_option(class: usize) -> usize {
    if class == SKEWED { FIRST_SKEWED } else { FIRST }
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

#[derive(Clone, Copy, Debug, Default)]
struct Known {
    /// How often it was timed; 0: all else is a guess.
    times: u32,
    share: f64,
    zip_s: f64,
}

/// Averages follow the data with these many bytes.
const MEMORY_BYTES: f64 = 1e6;
/// What a class is of all bytes is averaged over so many.
const WEIGHT_BYTES: f64 = 16e6;

#[derive(Clone, Debug)]
struct OfClass {
    weight_bytes: f64,
    promised: f64,
    options: [Known; OPTIONS],
}

/// What is known about all classes.
pub(super) struct Knowledge {
    classes: Vec<OfClass>,
    /// Bytes that no codec is tried on.
    noise_bytes: f64,
    all_bytes: f64,
}

impl Knowledge {
    pub(super) fn new() -> Self {
        let class = OfClass { weight_bytes: 0.0, promised: 1.0, options: Default::default() };
        Self { classes: vec![class; CLASSES], noise_bytes: 0.0, all_bytes: 0.0 }
    }

    /// Takes in bytes that were stored as they are since nothing is to be gained.
    pub(super) fn noise(&mut self, bytes: u64) {
        self.age(bytes);
        self.noise_bytes += bytes as f64;
    }

    /// Takes in what became of blocks.
    pub(super) fn learn(&mut self, class: usize, option: usize, seen: &Seen) {
        if seen.raw_bytes == 0 {
            return;
        }
        self.age(seen.raw_bytes);
        let raw = seen.raw_bytes as f64;
        let of_class = &mut self.classes[class];
        of_class.weight_bytes += raw;
        let pull = (raw / MEMORY_BYTES).min(0.5);
        of_class.promised += pull * (seen.promised_bytes / raw - of_class.promised);
        let known = &mut of_class.options[option];
        if seen.timed_bytes == 0 && known.times == 0 {
            return;
        }
        // The first few count equally: a single one may have been disturbed.
        let pull = pull.max(1.0 / f64::from(known.times + 1));
        known.share += pull * (seen.stored_bytes as f64 / raw - known.share);
        if seen.timed_bytes > 0 {
            known.zip_s += pull * (seen.zip_s / seen.timed_bytes as f64 - known.zip_s);
            known.times = known.times.saturating_add(1);
        }
    }

    fn age(&mut self, bytes: u64) {
        let keep = 1.0 - (bytes as f64 / WEIGHT_BYTES).min(0.5);
        self.classes.iter_mut().for_each(|class| class.weight_bytes *= keep);
        self.noise_bytes *= keep;
        self.all_bytes = self.all_bytes * keep + bytes as f64;
    }

    /// All classes with their costs, for the plan; last the bytes that are only passed on.
    pub(super) fn classes(&self) -> Vec<Class> {
        let all = self.all_bytes.max(1.0);
        let class = |class: &OfClass| Class {
            weight: class.weight_bytes / all,
            options: (0..OPTIONS).map(|option| class.cost(option)).collect(),
        };
        let noise = Class {
            weight: self.noise_bytes / all,
            options: vec![Cost { zip_s: LADDER[0].1 * 1e-9, share: 1.0 }],
        };
        self.classes.iter().map(class).chain([noise]).collect()
    }

    /// Whether an option was ever tried on a class.
    pub(super) fn is_known(&self, class: usize, option: usize) -> bool {
        option == 0 || self.classes[class].options[option].times > 0
    }
}

impl OfClass {
    fn cost(&self, option: usize) -> Cost {
        let known = self.options[option];
        if known.times > 0 {
            return Cost { zip_s: known.zip_s, share: known.share.min(1.0) };
        }
        let (_, ns, of_lz4) = LADDER[option];
        if option == 0 {
            return Cost { zip_s: ns * 1e-9, share: 1.0 };
        }
        let (slower, larger) = self.off();
        Cost { zip_s: ns * 1e-9 * slower, share: (self.promised * of_lz4 * larger).min(1.0) }
    }

    /// By what factors the guesses were off for the options next to be compared with.
    fn off(&self) -> (f64, f64) {
        let tried = self.options.iter().zip(LADDER).skip(1).filter(|(known, _)| known.times > 0);
        let (mut slower, mut larger, mut count) = (0.0, 0.0, 0.0);
        for (known, (_, ns, of_lz4)) in tried {
            slower += (known.zip_s / (ns * 1e-9)).max(1e-3).ln();
            larger += (known.share / (self.promised * of_lz4)).max(1e-3).ln();
            count += 1.0;
        }
        if count == 0.0 { (1.0, 1.0) } else { ((slower / count).exp(), (larger / count).exp()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seen(share: f64, ns: f64) -> Seen {
        let raw_bytes = 1 << 17;
        Seen {
            raw_bytes,
            stored_bytes: (raw_bytes as f64 * share) as u64,
            zip_s: raw_bytes as f64 * ns * 1e-9,
            timed_bytes: raw_bytes,
            promised_bytes: raw_bytes as f64 * 0.5,
        }
    }

    #[test]
    fn what_was_seen_is_believed_and_the_rest_is_guessed_from_it() {
        let mut knowledge = Knowledge::new();
        knowledge.learn(3, 1, &seen(0.4, 1.4));
        let classes = knowledge.classes();
        assert!((classes[3].options[1].share - 0.4).abs() < 1e-3);
        // Twice as slow as guessed: so will the others be.
        assert!((classes[3].options[2].zip_s / 4.0e-9 - 1.0).abs() < 0.1);
        assert!(classes[3].options[2].share < 0.4);
        assert!(knowledge.is_known(3, 1) && !knowledge.is_known(3, 2));
        assert!((classes[3].weight - 1.0).abs() < 1e-9);
    }

    #[test]
    fn a_single_disturbed_time_does_not_stay() {
        let mut knowledge = Knowledge::new();
        knowledge.learn(3, 1, &seen(0.4, 9.0));
        knowledge.learn(3, 1, &seen(0.4, 1.0));
        knowledge.learn(3, 1, &seen(0.4, 1.0));
        let zip_s = knowledge.classes()[3].options[1].zip_s;
        assert!((zip_s / 3.67e-9 - 1.0).abs() < 0.01, "the mean of all three: {zip_s}");
        (0..40).for_each(|_| knowledge.learn(3, 1, &seen(0.4, 1.0)));
        assert!(knowledge.classes()[3].options[1].zip_s < 1.1e-9);
        let untimed = Seen { timed_bytes: 0, zip_s: 0.0, ..seen(0.4, 0.0) };
        knowledge.learn(3, 2, &untimed);
        assert!(!knowledge.is_known(3, 2), "without a time it stays a guess");
    }

    #[test]
    fn weights_follow_the_data() {
        let mut knowledge = Knowledge::new();
        (0..1000).for_each(|_| knowledge.learn(1, 1, &seen(0.4, 1.0)));
        (0..1000).for_each(|_| knowledge.noise(1 << 17));
        let classes = knowledge.classes();
        assert!(classes[1].weight < 0.01 && classes[CLASSES].weight > 0.99);
        let sum: f64 = classes.iter().map(|class| class.weight).sum();
        assert!((sum - 1.0).abs() < 1e-6);
    }

    #[test]
    fn every_sample_has_a_class() {
        for filter in FilterKind::ALL {
            for share in [0.0, 0.3, 0.97, 1.0, 7.0] {
                let sampled = Sampled { filter: *filter, share, only_skewed: false };
                assert!(class_of(&sampled) < SKEWED);
            }
        }
    }
}
