//! The decision: which codec for which class of blocks, from costs and rates. Pure.
//!
//! Data: what each codec costs and saves on each class of blocks ([`Class`]) and how fast the
//! stages are ([`Rates`]) -> [`Plan`]; the plan and what is on its way to the store -> an option.
//!
//! The model is that of pipelined compression checkpointing (PCCR): with stages side by side a
//! checkpoint takes `T_P = max(T_c, T_zip, T_s)`, one after the other `T_z = T_c + T_zip + T_s`,
//! and compressing is beneficial where that is less than without. Here `T_zip` is shared by several
//! threads, collecting and compressing share the cores, and what is already on its way to the
//! store is time that compressing may use.
//!
//! Classes are chosen for together, since they use the same threads and the same store: where the
//! store is the bottleneck every class should spend processor time where it saves most bytes for
//! it. That is a linear programme; its solutions are found by trying prices: with a store's second
//! worth `price` seconds of a thread, each class takes its cheapest codec. Those choices are the
//! steps of a ladder, each works harder and stores less than the one before. Between two
//! neighbouring steps a mixture of both may be best.
//!
//! There is a mixture for each backlog: see [`rates`](super::rates).
//!
//! Invariants:
//! - A plan names an option that its class has.

use super::rates::Rates;

/// What an option costs and saves, for each raw byte.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Cost {
    /// Processor seconds.
    pub(crate) zip_s: f64,
    /// Stored bytes.
    pub(crate) share: f64,
}

/// Blocks that behave alike.
#[derive(Clone, Debug)]
pub(crate) struct Class {
    /// Its number.
    pub(crate) at: usize,
    /// Its part of all bytes.
    pub(crate) weight: f64,
    /// What may be done with them; the first is the cheapest.
    pub(crate) options: Vec<Cost>,
}

/// A plan has a mixture for each level of the backlog. The first so many are a part of a mebibyte
/// each, for the reserve of a slow store is small; then come whole ones.
const FINE_LEVELS: usize = 8;
const FINE_BYTES: f64 = (1 << 18) as f64;
const LEVEL_BYTES: f64 = (1 << 20) as f64;
const LEVELS: usize = FINE_LEVELS + 15;
/// A mixture of two options repeats after so many blocks.
const TURNS: u32 = 32;
/// A stage that does not decide counts so much: where several choices are equally fast, the one
/// that takes less of the others.
const IDLE_WEIGHT: f64 = 0.05;
/// Prices of a second of the store, in seconds of a thread: from, to, and step.
const PRICES: (f64, f64, f64) = (1.0 / 256.0, 256.0, 1.4);

/// The level that a backlog has reached.
fn level(backlog_bytes: f64) -> usize {
    let fine = (backlog_bytes / FINE_BYTES) as usize;
    let whole = (backlog_bytes - level_bytes(FINE_LEVELS)).max(0.0) / LEVEL_BYTES;
    fine.min(FINE_LEVELS.saturating_add(whole as usize)).min(LEVELS - 1)
}

/// Where a level begins.
fn level_bytes(level: usize) -> f64 {
    let whole = level.saturating_sub(FINE_LEVELS) as f64;
    level.min(FINE_LEVELS) as f64 * FINE_BYTES + whole * LEVEL_BYTES
}

/// What is decided.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Plan {
    /// An option for each class; each step works harder than the one before.
    steps: Vec<Vec<u8>>,
    /// By backlog.
    levels: Vec<Mixture>,
    /// Seconds for a raw byte at the backlog it was made for.
    score: f64,
    /// How many times as long as the encoders the store takes then.
    leisure: f64,
}

/// Two neighbouring steps, and how many blocks of [`TURNS`] take the harder one.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Mixture {
    light: usize,
    heavy: usize,
    share: u32,
}

impl Plan {
    /// One option for each class, whatever the backlog.
    pub(crate) fn fixed(options: Vec<u8>) -> Self {
        let steps = vec![options];
        let levels = vec![Mixture { light: 0, heavy: 0, share: 0 }];
        Self { steps, levels, score: f64::INFINITY, leisure: 1.0 }
    }

    /// The option for a block of a class with so much on its way to the store; `turn` counts the
    /// blocks.
    pub(crate) fn option(&self, class: usize, backlog_bytes: f64, turn: u32) -> usize {
        let level = level(backlog_bytes).min(self.levels.len() - 1);
        let Mixture { light, heavy, share } = self.levels[level];
        // Spread evenly over the turns.
        let is_heavy = (turn % TURNS * share) % TURNS < share;
        usize::from(self.steps[if is_heavy { heavy } else { light }][class])
    }

    /// The options of a class with so much on its way to the store, the lighter one first.
    pub(crate) fn options(&self, class: usize, backlog_bytes: f64) -> [usize; 2] {
        // The first turn is heavy where any is, the last one light where any is.
        [TURNS - 1, 0].map(|turn| self.option(class, backlog_bytes, turn))
    }

    /// How many times as long as the encoders the store takes: where it is much, they have time for
    /// more.
    pub(crate) fn leisure(&self) -> f64 {
        self.leisure
    }

    /// Seconds for a raw byte, with what the idle stages take counted a little.
    pub(crate) fn score(&self) -> f64 {
        self.score
    }
}

impl Cost {
    /// What it is if a part of the bytes costs something else.
    fn mixed(self, other: Self, part: f64) -> Self {
        let mix = |own: f64, other: f64| own + part * (other - own);
        Self { zip_s: mix(self.zip_s, other.zip_s), share: mix(self.share, other.share) }
    }
}

/// What all classes together cost and save.
fn sum(classes: &[Class], options: &[u8]) -> Cost {
    let cost = |class: &Class| class.options[usize::from(options[class.at])];
    let costs = classes.iter().map(|class| (class.weight, cost(class)));
    costs.fold(Cost { zip_s: 0.0, share: 0.0 }, |sum, (weight, cost)| Cost {
        zip_s: sum.zip_s + weight * cost.zip_s,
        share: sum.share + weight * cost.share,
    })
}

/// Seconds that the encoders and the store take for a raw byte.
fn stages(cost: Cost, rates: &Rates) -> (f64, f64) {
    let collect = if rates.collecting { rates.collect_s } else { 0.0 };
    let threads = cost.zip_s * rates.slowdown / rates.threads as f64;
    let cores = (collect + cost.zip_s) * rates.slowdown / rates.cores as f64;
    (collect.max(threads).max(cores), rates.felt_share(cost.share) * rates.store_s)
}

fn score(cost: Cost, rates: &Rates) -> f64 {
    if rates.in_turn {
        return rates.collect_s + cost.zip_s * rates.slowdown + cost.share * rates.store_s;
    }
    let (encoders, store) = stages(cost, rates);
    let idle = cost.zip_s / rates.threads as f64 + cost.share * rates.store_s;
    encoders.max(store) + IDLE_WEIGHT * idle
}

/// Seconds for a raw byte of which a device, in so many seconds, leaves a share.
pub(crate) fn score_elsewhere(zip_s: f64, share: f64, rates: &Rates) -> f64 {
    let free = Cost { zip_s: 0.0, share };
    if rates.in_turn {
        return rates.collect_s + zip_s + share * rates.store_s;
    }
    let (collect, store) = stages(free, rates);
    collect.max(zip_s).max(store) + IDLE_WEIGHT * share * rates.store_s
}

/// The best plan for the classes that come; `others` says what to do with any other.
pub(crate) fn plan(classes: &[Class], others: &[u8], rates: &Rates) -> Plan {
    let steps = steps(classes, others, rates);
    let costs: Vec<Cost> = steps.iter().map(|options| sum(classes, options)).collect();
    let at = |level: usize| {
        let backlog_bytes = Some(level_bytes(level));
        best(&costs, &Rates { backlog_bytes, ..*rates }).1
    };
    let (score, now) = best(&costs, rates);
    let levels = match rates.backlog_bytes {
        Some(_) => (0..LEVELS).map(at).collect(),
        None => vec![now],
    };
    let part = f64::from(now.share) / f64::from(TURNS);
    let (encoders, store) = stages(costs[now.light].mixed(costs[now.heavy], part), rates);
    let leisure = if encoders > 0.0 { store / encoders } else { 1.0 };
    Plan { steps, levels, score, leisure }
}

/// The best mixture of two neighbouring steps, and its score.
fn best(costs: &[Cost], rates: &Rates) -> (f64, Mixture) {
    let mut best = (f64::INFINITY, Mixture { light: 0, heavy: 0, share: 0 });
    let mut try_mixture = |mixture: Mixture| {
        let part = f64::from(mixture.share) / f64::from(TURNS);
        let cost = costs[mixture.light].mixed(costs[mixture.heavy], part);
        let score = score(cost, rates);
        if score < best.0 {
            best = (score, mixture);
        }
    };
    let store_is_slower = |cost: Cost| {
        let (encoders, store) = stages(cost, rates);
        store > encoders
    };
    for heavy in 0..costs.len() {
        try_mixture(Mixture { light: heavy, heavy, share: 0 });
        let light = heavy.saturating_sub(1);
        if store_is_slower(costs[light]) && !store_is_slower(costs[heavy]) {
            let slower = |share: &u32| {
                let part = f64::from(*share) / f64::from(TURNS);
                store_is_slower(costs[light].mixed(costs[heavy], part))
            };
            // The more are heavy, the more the encoders have to do, and the less the store.
            let balanced = (1..TURNS).take_while(slower).count() as u32;
            for share in [balanced, balanced + 1] {
                try_mixture(Mixture { light, heavy, share });
            }
        }
    }
    best
}

/// What the classes take, from the lowest price to the highest.
fn steps(classes: &[Class], others: &[u8], rates: &Rates) -> Vec<Vec<u8>> {
    let mut steps: Vec<Vec<u8>> = Vec::new();
    let mut now = others.to_vec();
    let mut price = PRICES.0;
    while price < PRICES.1 {
        for class in classes {
            now[class.at] = cheapest(class, rates, price);
        }
        if steps.last() != Some(&now) {
            steps.push(now.clone());
        }
        price *= PRICES.2;
    }
    steps
}

/// What a class takes if a second of the store is worth `price` seconds of a thread.
fn cheapest(class: &Class, rates: &Rates, price: f64) -> u8 {
    let threads = if rates.in_turn { 1.0 } else { rates.threads as f64 };
    let (zip, store) = (rates.slowdown / threads, price * rates.store_s);
    let costs = class.options.iter().map(|cost| zip * cost.zip_s + store * cost.share);
    costs.enumerate().min_by(|a, b| a.1.total_cmp(&b.1)).map_or(0, |(at, _)| at as u8)
}

#[cfg(test)]
mod tests;
