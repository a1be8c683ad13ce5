//! Two codecs on the same block: what one takes and leaves by what the other does.
//!
//! Invariants:
//! - Bytes and times are added up, never their ratios: a block of which little is left says little
//!   about what is stored.

/// What an option and the reference made of the same block.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pair {
    own: Effort,
    reference: Effort,
}

impl Pair {
    /// Seconds and bytes of an option, and those of the reference.
    pub(super) fn new(own: (f64, usize), reference: (f64, usize)) -> Self {
        let effort = |(zip_s, len): (f64, usize)| Effort { zip_s, bytes: len as f64 };
        Self { own: effort(own), reference: effort(reference) }
    }
}

/// What compressing took and left.
#[derive(Clone, Copy, Debug, Default)]
struct Effort {
    zip_s: f64,
    bytes: f64,
}

/// What an option takes and leaves, by what the reference does.
#[derive(Clone, Copy, Debug)]
pub(super) struct Factor {
    pub(super) zip: f64,
    pub(super) share: f64,
}

impl Factor {
    pub(super) const ONE: Self = Self { zip: 1.0, share: 1.0 };
}

/// Pairs so far, added up: a block of which little is left says little about what is stored.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Pairs {
    own: Effort,
    reference: Effort,
    count: f64,
}

/// No more pairs than these count: what comes now is worth more than what was.
const PAIRS_MAX: f64 = 6.0;
/// What others say counts as so many pairs.
const OTHERS: f64 = 0.5;

impl Pairs {
    /// Takes in one more.
    pub(super) fn add(&mut self, pair: Pair) {
        let keep = (PAIRS_MAX - 1.0).min(self.count) / self.count.max(1.0);
        let add = |sum: Effort, one: Effort| Effort {
            zip_s: sum.zip_s * keep + one.zip_s,
            bytes: sum.bytes * keep + one.bytes,
        };
        self.own = add(self.own, pair.own);
        self.reference = add(self.reference, pair.reference);
        self.count = self.count * keep + 1.0;
    }

    /// How many count.
    pub(super) fn count(&self) -> f64 {
        self.count
    }

    /// Whether there was any.
    pub(super) fn is_known(&self) -> bool {
        self.count > 0.0
    }

    /// What they say, with something that others say.
    pub(super) fn factor(&self, others: Factor) -> Factor {
        let with = |own: f64, reference: f64, other: f64| match reference > 0.0 {
            true => (own / reference * self.count + other * OTHERS) / (self.count + OTHERS),
            false => other,
        };
        Factor {
            zip: with(self.own.zip_s, self.reference.zip_s, others.zip),
            share: with(self.own.bytes, self.reference.bytes, others.share),
        }
    }
}
