//! Which codec each class of blocks gets, from what blocks cost so far. Pure: no clocks, no locks.
//!
//! Data: what became of blocks ([`Learned::learn`], [`Learned::compare`]), how fast the store is
//! ([`Rates`]) -> [`Learned::choose`], a rung of the ladder for the next block.
//!
//! A class has sums of what its blocks took and left, reckoned as if all had got the rung [`BASE`].
//! What another rung takes and leaves by that is known from blocks that both had. Blocks of a class
//! differ: figures of two rungs from different blocks would compare the blocks.
//!
//! Invariants:
//! - A class gets [`BASE`] until another rung was compared with it [`PAIRS_MIN`] times.
//! - Sums fade, so that old data and an old speed of the store are forgotten.

use standfast_format::FilterKind;

use crate::probe::Sampled;

/// What may be done with a block, lightest first.
pub(super) const LADDER: [&str; 5] = ["none", "lz4", "zstd:1", "zstd:3", "zstd:9"];
pub(super) const RUNGS: usize = LADDER.len();
/// What blocks get unless another rung is known to pay: most of what can be saved, at a low price.
pub(super) const BASE: usize = 2;
const LZ4: usize = 1;

/// Blocks whose bytes are only skewed: LZ4 finds nothing in them. Before it: a class for each filter.
const SKEWED: usize = FilterKind::ALL.len();
/// Blocks in which the sample found nothing. They are stored as they are.
pub(super) const NOISE: usize = SKEWED + 1;
const CLASSES: usize = NOISE + 1;

/// Stored bytes by those of [`BASE`] that a quicker rung may leave: nobody waits, so bytes count.
const BYTES_MAX: f64 = 1.02;
/// The same while the program waits for memory that the encoders hold: then time counts as well.
const BYTES_MAX_HURRIED: f64 = 1.5;
/// A plan must take less than this of the time that [`BASE`] takes: less is noise.
const TIME_MAX: f64 = 0.97;
/// Prices of a second of the store in seconds of all encoders. No more, for those are the program's.
const PRICES: [f64; 7] = [1. / 16., 1. / 8., 1. / 4., 1. / 2., 1., 2., 4.];
/// A plan is made after so many raw bytes: often within a checkpoint, seldom beside compressing.
const PLAN_BYTES: f64 = (1 << 20) as f64;
/// So much of each sum stays at each plan: some 16 MiB are remembered.
const REMEMBER: f64 = 15.0 / 16.0;
/// Fewer comparisons say too little of a class: three, of which older ones count less.
const PAIRS_MIN: f64 = 2.5;
/// So much of older comparisons stays with each new one: the last ten decide.
const REMEMBER_PAIRS: f64 = 0.9;
/// Comparing may take this part of the encoders' time: so little is not felt.
const TRIAL_PART: f64 = 0.02;
/// While a rung is not known: this part of the time that they wait for the store instead, but no
/// more than of their own.
const TRIAL_IDLE: f64 = 0.1;

/// What the encoders work beside.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rates {
    /// Seconds for a stored byte, once known.
    pub(super) store_s: Option<f64>,
    pub(super) threads: usize,
    /// Whether compressing and storing take turns instead of working side by side.
    pub(super) in_turn: bool,
    /// Whether the program waits for the encoders.
    pub(super) hurried: bool,
}

impl Rates {
    /// Seconds that two stages take together.
    pub(super) fn both_s(&self, zip_s: f64, store_s: f64) -> f64 {
        if self.in_turn { zip_s + store_s } else { zip_s.max(store_s) }
    }
}

/// Processor seconds that compressing took, and bytes that it left.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Cost {
    pub(super) zip_s: f64,
    pub(super) bytes: f64,
}

impl Cost {
    /// Takes in another, after so much of what was is kept.
    fn add(&mut self, keep: f64, other: Self) {
        self.zip_s = self.zip_s * keep + other.zip_s;
        self.bytes = self.bytes * keep + other.bytes;
    }
}

/// A rung beside [`BASE`] on the same blocks. Sums, not ratios: nearly empty blocks say little.
#[derive(Clone, Copy, Default)]
struct Pairs {
    count: f64,
    own: Cost,
    base: Cost,
}

impl Pairs {
    /// What the rung takes and leaves by what [`BASE`] does.
    fn factor(&self) -> Cost {
        let by = |own: f64, base: f64| if base > 0.0 { own / base } else { 1.0 };
        Cost {
            zip_s: by(self.own.zip_s, self.base.zip_s),
            bytes: by(self.own.bytes, self.base.bytes),
        }
    }
}

/// Blocks that behave alike.
#[derive(Clone, Copy, Default)]
struct Class {
    raw_bytes: f64,
    /// As if all had got [`BASE`].
    base: Cost,
    pairs: [Pairs; RUNGS],
}

impl Class {
    /// What all blocks would cost with a rung, if that is known.
    fn cost(&self, rung: usize) -> Option<Cost> {
        match rung {
            BASE => Some(self.base),
            0 => Some(Cost { zip_s: 0.0, bytes: self.raw_bytes }),
            _ if self.pairs[rung].count < PAIRS_MIN => None,
            _ => {
                let Cost { zip_s, bytes } = self.pairs[rung].factor();
                let bytes = (self.base.bytes * bytes).min(self.raw_bytes);
                Some(Cost { zip_s: self.base.zip_s * zip_s, bytes })
            }
        }
    }

    /// The cheapest rung that leaves at most `bytes_max` times what [`BASE`] leaves.
    fn cheapest(&self, bytes_max: f64, price: impl Fn(Cost) -> f64) -> usize {
        let price_of = |rung: usize| {
            let cost = self.cost(rung).filter(|cost| cost.bytes <= bytes_max * self.base.bytes);
            cost.map_or(f64::INFINITY, &price)
        };
        if self.raw_bytes == 0.0 {
            return BASE;
        }
        (0..RUNGS).min_by(|a, b| price_of(*a).total_cmp(&price_of(*b))).unwrap_or(BASE)
    }
}

/// What to do with a block: its rung, or a rung to compare with [`BASE`] on it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Choice {
    Take(usize),
    Compare(usize),
}

/// What all encoders of a write path have learned, and the plan made of it.
pub(super) struct Learned {
    classes: [Class; CLASSES],
    rungs: [usize; CLASSES],
    /// Seconds for a raw byte, by the plan.
    pub(super) byte_s: f64,
    /// How long encoders wait for the store, by the time that they work.
    idle: f64,
    /// Raw bytes since the last plan.
    unplanned_bytes: f64,
    /// Time of encoders by the clock and by the processor: other programs use the cores too.
    wall_s: f64,
    busy_s: f64,
    trial_s: f64,
}

impl Learned {
    pub(super) fn new() -> Self {
        Self {
            classes: [Class::default(); CLASSES],
            rungs: [BASE; CLASSES],
            byte_s: f64::INFINITY,
            idle: 0.0,
            unplanned_bytes: 0.0,
            wall_s: 0.0,
            busy_s: 0.0,
            trial_s: 0.0,
        }
    }

    /// What to do with the next block of a class.
    pub(super) fn choose(&self, class: usize) -> Choice {
        let harder = if self.idle > 0.0 { BASE + 1..RUNGS } else { 0..0 };
        let times = |rung: &usize| self.classes[class].pairs[*rung].count;
        let (mut open, all) = (harder.clone().chain([LZ4]), harder.chain([LZ4]));
        // One after the other, the cheapest of the harder ones first; then the least often compared.
        let (rung, part) = match open.find(|rung| times(rung) < PAIRS_MIN) {
            Some(rung) => (rung, TRIAL_PART.max(TRIAL_IDLE * self.idle.min(1.0))),
            None => {
                let least = all.min_by(|a, b| times(a).total_cmp(&times(b)));
                (least.unwrap_or(LZ4), TRIAL_PART)
            }
        };
        // As if all had got the same rung: where blocks stay as they are, comparing must go on.
        let all_s: f64 = self.classes.iter().map(|class| class.base.zip_s).sum();
        match self.trial_s > part * all_s {
            true => Choice::Take(self.rungs[class]),
            false => Choice::Compare(rung),
        }
    }

    /// Takes in what [`BASE`] and another rung made of the same block.
    pub(super) fn compare(&mut self, class: usize, rung: usize, own: Cost, base: Cost) {
        let pairs = &mut self.classes[class].pairs[rung];
        pairs.count = pairs.count * REMEMBER_PAIRS + 1.0;
        pairs.own.add(REMEMBER_PAIRS, own);
        pairs.base.add(REMEMBER_PAIRS, base);
        self.trial_s += own.zip_s;
    }

    /// Takes in what a rung made of a block, and the time that passed. Plans anew when that is due.
    pub(super) fn learn(
        &mut self,
        (class, rung): (usize, usize),
        raw_bytes: usize,
        cost: Cost,
        wall_s: f64,
        rates: &Rates,
    ) {
        let of_class = &mut self.classes[class];
        let raw_bytes = raw_bytes as f64;
        let factor = of_class.pairs[rung].factor();
        let base = match rung {
            BASE => cost,
            // Says nothing of what the block would have taken: it is as the others of its class.
            0 if class != NOISE => {
                let all = of_class.raw_bytes.max(1.0);
                let part = |sum: f64| sum * raw_bytes / all;
                Cost { zip_s: part(of_class.base.zip_s), bytes: part(of_class.base.bytes) }
            }
            _ => Cost { zip_s: cost.zip_s / factor.zip_s, bytes: cost.bytes / factor.bytes },
        };
        of_class.raw_bytes += raw_bytes;
        of_class.base.add(1.0, base);
        self.wall_s += wall_s;
        self.busy_s += cost.zip_s;
        self.unplanned_bytes += raw_bytes;
        if self.unplanned_bytes >= PLAN_BYTES {
            self.plan(rates);
        }
    }

    /// Makes a plan for all classes together: they use the same threads and the same store. With a
    /// second of the store worth so many seconds of an encoder each takes its cheapest rung; of all
    /// such plans the quickest is taken, if it is quicker than [`BASE`] for all.
    fn plan(&mut self, rates: &Rates) {
        let slowdown = if self.busy_s > 0.0 { (self.wall_s / self.busy_s).max(1.0) } else { 1.0 };
        let zip = slowdown / rates.threads as f64;
        let store = rates.store_s.unwrap_or(0.0);
        let bytes_max = if rates.hurried { BYTES_MAX_HURRIED } else { BYTES_MAX };
        let stages = |rungs: &[usize; CLASSES]| {
            let costs =
                self.classes.iter().zip(rungs).filter_map(|(class, rung)| class.cost(*rung));
            costs.fold((0.0, 0.0), |(zip_s, store_s), cost| {
                (zip_s + zip * cost.zip_s, store_s + store * cost.bytes)
            })
        };
        let time_s = |rungs: &[usize; CLASSES]| {
            let (zip_s, store_s) = stages(rungs);
            rates.both_s(zip_s, store_s)
        };
        let base = [BASE; CLASSES];
        let mut best = (base, time_s(&base));
        let enough_s = TIME_MAX * best.1;
        for price in PRICES {
            let price = |cost: Cost| zip * cost.zip_s + price * store * cost.bytes;
            let rungs = self.classes.map(|class| class.cheapest(bytes_max, price));
            let plan_s = time_s(&rungs);
            if plan_s < best.1 && plan_s < enough_s && rates.store_s.is_some() {
                best = (rungs, plan_s);
            }
        }
        let (zip_s, store_s) = stages(&base);
        self.idle = if zip_s > 0.0 { (store_s / zip_s - 1.0).max(0.0) } else { 0.0 };
        let raw_bytes: f64 = self.classes.iter().map(|class| class.raw_bytes).sum();
        (self.rungs, self.byte_s) = (best.0, best.1 / raw_bytes.max(1.0));
        self.forget();
    }

    fn forget(&mut self) {
        self.unplanned_bytes = 0.0;
        for class in &mut self.classes {
            class.raw_bytes *= REMEMBER;
            class.base.add(REMEMBER, Cost::default());
        }
        for sum in [&mut self.wall_s, &mut self.busy_s, &mut self.trial_s] {
            *sum *= REMEMBER;
        }
    }
}

/// The class of a block.
pub(super) fn class_of(sampled: &Sampled) -> usize {
    if sampled.only_skewed {
        return SKEWED;
    }
    let filter = FilterKind::ALL.iter().position(|kind| *kind == sampled.filter);
    filter.expect("ALL has every kind")
}

#[cfg(test)]
mod tests;
