//! Which codec blocks get, from what blocks cost so far. Pure: no clocks, no locks.
//!
//! Data: what became of blocks ([`Learned::learn`], [`Learned::compare`]), how fast the store is
//! ([`Rates`]) -> [`Learned::choose`], a rung of the ladder for the next block.
//!
//! Sums say what blocks took and left, reckoned as if all had got the rung [`BASE`]. What another
//! rung takes and leaves by that is known from blocks that both had: blocks differ, so figures of two
//! rungs from different blocks would compare the blocks.
//!
//! Invariants:
//! - Blocks get [`BASE`] until another rung was compared with it often enough.
//! - Sums fade, so that old data and an old speed of the store are forgotten.

/// What may be done with a block, lightest first.
pub(super) const LADDER: [&str; 5] = ["none", "lz4", "zstd:1", "zstd:3", "zstd:9"];
pub(super) const RUNGS: usize = LADDER.len();
/// What blocks get unless another rung is known to pay: most of what can be saved, at a low price.
pub(super) const BASE: usize = 2;
const LZ4: usize = 1;

/// Stored bytes by those of [`BASE`] that a quicker rung may leave: nobody waits, so bytes count.
const BYTES_MAX: f64 = 1.02;
/// The same while the program waits for memory that the encoders hold: then time counts as well.
const BYTES_MAX_HURRIED: f64 = 1.5;
/// Another rung must take less than this of the time that [`BASE`] takes: a smaller gain is noise.
const TIME_MAX: f64 = 0.97;
/// Seconds of the encoders that one of the store is worth: the program wants the cores too.
const STORE_WORTH: f64 = 4.0;
/// The rung is chosen after so many raw bytes: often within a checkpoint, seldom for a block.
const PLAN_BYTES: f64 = (1 << 20) as f64;
/// So much of each sum stays each time: some 16 MiB are remembered.
const REMEMBER: f64 = 15.0 / 16.0;
/// So much of older comparisons stays with each new one: some 30 decide, for blocks differ.
const REMEMBER_PAIRS: f64 = 0.97;
/// Fewer comparisons say too little.
const PAIRS_MIN: f64 = 6.0;
/// Comparing may take this part of the encoders' time: so little is not felt.
const TRIAL_PART: f64 = 0.02;
/// While a rung is unknown: this part of the time that they wait for the store, which is nobody's.
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
    /// Seconds that both stages take together.
    pub(super) fn both_s(&self, zip_s: f64, store_s: f64) -> f64 {
        if self.in_turn { zip_s + store_s } else { zip_s.max(store_s) }
    }
}

/// Processor seconds that compressing took, and bytes that it left.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Cost {
    pub(super) zip_s: f64,
    pub(super) bytes: f64,
}

impl Cost {
    fn plus(self, other: Self) -> Self {
        Self { zip_s: self.zip_s + other.zip_s, bytes: self.bytes + other.bytes }
    }

    fn times(self, zip: f64, bytes: f64) -> Self {
        Self { zip_s: self.zip_s * zip, bytes: self.bytes * bytes }
    }
}

/// A rung beside [`BASE`] on the same blocks. Sums, not ratios: nearly empty blocks say little.
#[derive(Clone, Copy, Default)]
struct Pairs {
    count: f64,
    own: Cost,
    base: Cost,
}

/// What to do with a block: take a rung, or take [`BASE`] and compare a rung with it.
#[derive(Clone, Copy)]
pub(super) enum Choice {
    Take(usize),
    Compare(usize),
}

/// What all encoders of a write path have learned, and the rung that follows from it.
#[derive(Default)]
pub(super) struct Learned {
    rung: Option<usize>,
    /// Seconds for a raw byte, once known.
    pub(super) byte_s: Option<f64>,
    /// Blocks in which the sample found something, as if all had got [`BASE`]; and the others.
    raw_bytes: f64,
    base: Cost,
    noise_bytes: f64,
    pairs: [Pairs; RUNGS],
    /// Time of encoders by the clock and by the processor: other programs use the cores too.
    wall_s: f64,
    busy_s: f64,
    trial_s: f64,
    /// How long encoders wait for the store, by the time that they work.
    idle: f64,
    unplanned_bytes: f64,
}

impl Learned {
    /// What to do with the next block in which the sample found something.
    pub(super) fn choose(&self) -> Choice {
        let count = |rung: &usize| self.pairs[*rung].count;
        let rungs = if self.idle > 0.0 { &[BASE + 1, BASE + 2, LZ4][..] } else { &[LZ4] };
        let unknown = rungs.iter().find(|rung| count(rung) < PAIRS_MIN);
        let least = || rungs.iter().min_by(|a, b| count(a).total_cmp(&count(b)));
        let part = match unknown {
            Some(_) => TRIAL_PART.max(TRIAL_IDLE * self.idle.min(1.0)),
            None => TRIAL_PART,
        };
        match unknown.or_else(least) {
            // By what BASE would take: comparing goes on where blocks stay as they are.
            Some(rung) if self.trial_s <= part * self.base.zip_s => Choice::Compare(*rung),
            _ => Choice::Take(self.rung.unwrap_or(BASE)),
        }
    }

    /// Takes in what [`BASE`] and another rung made of the same block.
    pub(super) fn compare(&mut self, rung: usize, own: Cost, base: Cost) {
        let pairs = &mut self.pairs[rung];
        pairs.count = pairs.count * REMEMBER_PAIRS + 1.0;
        pairs.own = pairs.own.times(REMEMBER_PAIRS, REMEMBER_PAIRS).plus(own);
        pairs.base = pairs.base.times(REMEMBER_PAIRS, REMEMBER_PAIRS).plus(base);
        self.trial_s += own.zip_s;
    }

    /// Takes in what a rung made of a block, and the time that passed.
    pub(super) fn learn(
        &mut self,
        rung: usize,
        raw_bytes: usize,
        cost: Cost,
        wall_s: f64,
        rates: &Rates,
    ) {
        let raw_bytes = raw_bytes as f64;
        let (zip, bytes) = self.factor(rung);
        self.base = self.base.plus(match rung {
            // Says nothing of what it would have taken: it is as the others.
            0 => {
                let more = raw_bytes / self.raw_bytes.max(1.0);
                self.base.times(more, more)
            }
            _ => cost.times(1.0 / zip, 1.0 / bytes),
        });
        self.raw_bytes += raw_bytes;
        self.wall_s += wall_s;
        self.busy_s += cost.zip_s;
        self.passed(raw_bytes, rates);
    }

    /// Takes in a block in which the sample found nothing.
    pub(super) fn noise(&mut self, raw_bytes: usize, rates: &Rates) {
        self.noise_bytes += raw_bytes as f64;
        self.passed(raw_bytes as f64, rates);
    }

    fn passed(&mut self, raw_bytes: f64, rates: &Rates) {
        self.unplanned_bytes += raw_bytes;
        if self.unplanned_bytes >= PLAN_BYTES {
            self.unplanned_bytes = 0.0;
            self.plan(rates);
            self.base = self.base.times(REMEMBER, REMEMBER);
            let sums = [&mut self.raw_bytes, &mut self.noise_bytes, &mut self.trial_s];
            let times = [&mut self.wall_s, &mut self.busy_s];
            sums.into_iter().chain(times).for_each(|sum| *sum *= REMEMBER);
        }
    }

    /// What a rung takes and leaves by what [`BASE`] does.
    fn factor(&self, rung: usize) -> (f64, f64) {
        let Pairs { own, base, .. } = self.pairs[rung];
        let by = |own: f64, base: f64| if own * base > 0.0 { own / base } else { 1.0 };
        (by(own.zip_s, base.zip_s), by(own.bytes, base.bytes))
    }

    /// What all blocks would cost with a rung, if that is known.
    fn cost(&self, rung: usize) -> Option<Cost> {
        let (zip, bytes) = self.factor(rung);
        match rung {
            BASE => Some(self.base),
            0 => Some(Cost { zip_s: 0.0, bytes: self.raw_bytes }),
            _ => (self.pairs[rung].count >= PAIRS_MIN).then(|| self.base.times(zip, bytes)),
        }
    }

    /// Chooses the rung that takes the least time, of those that leave few bytes enough.
    fn plan(&mut self, rates: &Rates) {
        let Some(store) = rates.store_s else { return };
        let slowdown = if self.busy_s > 0.0 { (self.wall_s / self.busy_s).max(1.0) } else { 1.0 };
        let zip_s = |cost: Cost| cost.zip_s * slowdown / rates.threads as f64;
        let store_s = |cost: Cost| (cost.bytes + self.noise_bytes) * store;
        let time_s = |cost: Cost| rates.both_s(zip_s(cost), store_s(cost));
        let base = self.base;
        let bytes_max = if rates.hurried { BYTES_MAX_HURRIED } else { BYTES_MAX };
        let pays = |cost: &Cost| {
            let more_s = zip_s(*cost) - zip_s(base);
            cost.bytes <= bytes_max * base.bytes
                && more_s <= STORE_WORTH * (store_s(base) - store_s(*cost)).max(0.0)
        };
        let time_of = |rung: &usize| self.cost(*rung).filter(pays).map_or(f64::INFINITY, time_s);
        let best = (0..RUNGS).min_by(|a, b| time_of(a).total_cmp(&time_of(b)));
        let rung = best.filter(|rung| time_of(rung) < TIME_MAX * time_s(base)).unwrap_or(BASE);
        let byte_s = time_of(&rung) / (self.raw_bytes + self.noise_bytes);
        let idle_s = (store_s(base) - zip_s(base)).max(0.0);
        self.idle = if base.zip_s > 0.0 { idle_s / zip_s(base) } else { 0.0 };
        (self.rung, self.byte_s) = (Some(rung), Some(byte_s));
    }
}

#[cfg(test)]
mod tests;
