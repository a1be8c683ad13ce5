//! The decision: which codec for which class of blocks, from costs and rates. Pure.
//!
//! Data: what each codec costs and saves on each class of blocks ([`Class`]) and how fast the
//! stages are ([`Rates`]) -> [`Plan`].
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
//! worth `price` seconds of a thread, each class takes its cheapest codec. Between two
//! neighbouring prices a mixture of both plans may be best.
//!
//! Invariants:
//! - A plan names an option that its class has.

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
    /// Its part of all bytes.
    pub(crate) weight: f64,
    /// What may be done with them; the first is the cheapest.
    pub(crate) options: Vec<Cost>,
}

/// How fast the other stages are, as measured.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rates {
    /// Seconds that collecting takes for a raw byte.
    pub collect_s: f64,
    /// Seconds that storing takes for a stored byte.
    pub store_s: f64,
    /// Compressing threads.
    pub threads: usize,
    /// Cores that collecting and compressing share.
    pub cores: usize,
    /// How much longer compressing takes than its processor time because other programs use the
    /// cores too.
    pub slowdown: f64,
    /// Stored bytes that are on their way and not yet written.
    pub backlog_bytes: f64,
    /// Raw bytes that are collected and wait to be compressed.
    pub ahead_bytes: f64,
    /// Whether more of them are being collected.
    pub collecting: bool,
    /// Whether the stages take turns instead of working side by side.
    pub in_turn: bool,
}

impl Rates {
    /// How many of our own threads share a core: they hold each other up, but that is over when
    /// collecting is, and must not count as if it went on.
    pub(crate) fn crowding(&self) -> f64 {
        let collecting = usize::from(self.collecting && !self.in_turn);
        ((self.threads + collecting) as f64 / self.cores as f64).max(1.0)
    }
}

/// What is decided.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Plan {
    /// An option for each class.
    light: Vec<usize>,
    /// Another one, which works harder, for some of the blocks.
    heavy: Vec<usize>,
    /// How many of the blocks: of [`TURNS`].
    share: u32,
}

/// A mixture of two options repeats after so many blocks.
pub(crate) const TURNS: u32 = 32;
/// How far ahead a plan looks at least, in raw bytes: over these a backlog is worked off. Over
/// fewer, the last blocks of a checkpoint would be compressed hard while the last chunk waits for
/// them.
const HORIZON_BYTES: f64 = 16e6;
/// A stage that does not decide counts so much: where several choices are equally fast, the one
/// that takes less of the others.
const IDLE_WEIGHT: f64 = 0.05;
/// A new plan must be better by this factor.
const HYSTERESIS: f64 = 0.995;
/// Prices of a second of the store, in seconds of a thread: from, to, and step.
const PRICES: (f64, f64, f64) = (1.0 / 512.0, 512.0, 1.25);

impl Plan {
    /// The first option for everything.
    #[cfg(test)]
    fn first(classes: usize) -> Self {
        Self { light: vec![0; classes], heavy: vec![0; classes], share: 0 }
    }

    /// The option for a block of a class; `turn` counts the blocks.
    pub(crate) fn option(&self, class: usize, turn: u32) -> usize {
        // Spread evenly over the turns.
        let heavy = (turn % TURNS * self.share) % TURNS < self.share;
        if heavy { self.heavy[class] } else { self.light[class] }
    }

    /// Seconds for a raw byte, with what the idle stages take counted a little.
    pub(crate) fn score(&self, classes: &[Class], rates: &Rates) -> f64 {
        let heavy = f64::from(self.share) / f64::from(TURNS);
        let costs = sum(classes, &self.light).mixed(sum(classes, &self.heavy), heavy);
        score(costs, rates)
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
fn sum(classes: &[Class], options: &[usize]) -> Cost {
    let costs = classes.iter().zip(options).map(|(class, at)| (class.weight, class.options[*at]));
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
    let backlog = rates.backlog_bytes / rates.ahead_bytes.max(HORIZON_BYTES);
    (collect.max(threads).max(cores), (cost.share + backlog) * rates.store_s)
}

fn score(cost: Cost, rates: &Rates) -> f64 {
    let (encoders, store) = stages(cost, rates);
    if rates.in_turn {
        return rates.collect_s + cost.zip_s * rates.slowdown + store;
    }
    let idle = cost.zip_s / rates.threads as f64 + cost.share * rates.store_s;
    encoders.max(store) + IDLE_WEIGHT * idle
}

/// Seconds for a raw byte of which a device, in so many seconds, leaves a share.
pub(crate) fn score_elsewhere(zip_s: f64, share: f64, rates: &Rates) -> f64 {
    let free = Cost { zip_s: 0.0, share };
    let (collect, store) = stages(free, rates);
    if rates.in_turn {
        return rates.collect_s + zip_s + store;
    }
    collect.max(zip_s).max(store) + IDLE_WEIGHT * share * rates.store_s
}

/// The best plan, or `current` where that is nearly as good.
pub(crate) fn plan(classes: &[Class], rates: &Rates, current: Option<&Plan>) -> Plan {
    let found = best(classes, rates);
    match current {
        Some(current)
            if found.score(classes, rates) > HYSTERESIS * current.score(classes, rates) =>
        {
            current.clone()
        }
        _ => found,
    }
}

fn best(classes: &[Class], rates: &Rates) -> Plan {
    let mut best: Option<(f64, Plan)> = None;
    let mut try_plan = |plan: Plan| {
        let score = plan.score(classes, rates);
        if best.as_ref().is_none_or(|(least, _)| score < *least) {
            best = Some((score, plan));
        }
    };
    let mut last: Option<Vec<usize>> = None;
    let mut price = PRICES.0;
    while price < PRICES.1 {
        let now = at_price(classes, rates, price);
        price *= PRICES.2;
        if last.as_ref() == Some(&now) {
            continue;
        }
        let light = last.replace(now.clone()).unwrap_or_else(|| now.clone());
        let balanced = balance(sum(classes, &light), sum(classes, &now), rates);
        for share in [TURNS, balanced, balanced + 1] {
            let share = share.min(TURNS);
            try_plan(Plan { light: light.clone(), heavy: now.clone(), share });
        }
    }
    best.expect("there is at least one price").1
}

/// How many of the blocks must be heavy for encoders and store to take equally long, rounded down.
fn balance(light: Cost, heavy: Cost, rates: &Rates) -> u32 {
    let store_is_slower = |share: u32| {
        let part = f64::from(share) / f64::from(TURNS);
        let (encoders, store) = stages(light.mixed(heavy, part), rates);
        store > encoders
    };
    // The more are heavy, the more the encoders have to do, and the less the store.
    let (mut low, mut high) = (0, TURNS);
    while low + 1 < high {
        let middle = low.midpoint(high);
        match store_is_slower(middle) {
            true => low = middle,
            false => high = middle,
        }
    }
    low
}

/// What each class takes if a second of the store is worth `price` seconds of a thread.
fn at_price(classes: &[Class], rates: &Rates, price: f64) -> Vec<usize> {
    let threads = if rates.in_turn { 1.0 } else { rates.threads as f64 };
    let cost =
        |cost: &Cost| cost.zip_s * rates.slowdown / threads + price * cost.share * rates.store_s;
    let cheapest = |class: &Class| {
        let costs = class.options.iter().map(cost).enumerate();
        costs.min_by(|a, b| a.1.total_cmp(&b.1)).map_or(0, |(at, _)| at)
    };
    classes.iter().map(cheapest).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const ALL: usize = TURNS as usize;

    /// Raw, a fast codec, a middling one, a slow one.
    fn text() -> Vec<Cost> {
        [(0.02, 1.0), (1.0, 0.5), (2.5, 0.35), (10.0, 0.3)]
            .map(|(ns, share)| Cost { zip_s: ns * 1e-9, share })
            .to_vec()
    }

    fn rates(store_mbps: f64) -> Rates {
        Rates {
            collect_s: 0.2e-9,
            store_s: 1e-6 / store_mbps,
            threads: 2,
            cores: 2,
            slowdown: 1.0,
            backlog_bytes: 0.0,
            ahead_bytes: 0.0,
            collecting: true,
            in_turn: false,
        }
    }

    fn alone(options: Vec<Cost>) -> Vec<Class> {
        vec![Class { weight: 1.0, options }]
    }

    /// Options used in a round of blocks of the first class, sorted.
    fn used(plan: &Plan) -> Vec<usize> {
        let mut used: Vec<usize> = (0..TURNS).map(|turn| plan.option(0, turn)).collect();
        used.sort_unstable();
        used
    }

    #[test]
    fn the_faster_the_store_the_lighter_the_codec() {
        let classes = alone(text());
        let usual = |mbps| used(&plan(&classes, &rates(mbps), None))[ALL / 2];
        assert_eq!(used(&plan(&classes, &rates(50_000.0), None)), [0; ALL]);
        assert_eq!(usual(1500.0), 1);
        assert_eq!(usual(200.0), 2);
        assert_eq!(used(&plan(&classes, &rates(20.0), None)), [3; ALL]);
    }

    #[test]
    fn compression_begins_where_the_papers_pipeline_says() {
        // Beneficial where max(zip / threads, share * store) < store: from zip / threads on.
        let options = vec![Cost { zip_s: 0.0, share: 1.0 }, Cost { zip_s: 2e-9, share: 0.5 }];
        let classes = alone(options);
        // A mixture is better still: all blocks only where share * store >= zip / threads.
        for (mbps, blocks) in [(5000.0, 4..=8), (1050.0, 20..=24), (400.0, ALL..=ALL)] {
            let plan = plan(&classes, &Rates { collect_s: 0.0, ..rates(mbps) }, None);
            let compressed = used(&plan).iter().sum::<usize>();
            assert!(blocks.contains(&compressed), "{mbps}: {plan:?}");
        }
        // In turn it takes a slower store: zip < (1 - share) * store.
        for (mbps, compressed) in [(260.0, false), (240.0, true)] {
            let rates = Rates { collect_s: 0.0, in_turn: true, ..rates(mbps) };
            assert_eq!(used(&plan(&classes, &rates, None)) == [1; ALL], compressed, "{mbps}");
        }
    }

    #[test]
    fn more_threads_work_harder() {
        let classes = alone(text());
        let share = |threads, cores| {
            let rates = Rates { threads, cores, ..rates(400.0) };
            let plan = plan(&classes, &rates, None);
            (0..TURNS).map(|turn| classes[0].options[plan.option(0, turn)].share).sum::<f64>()
        };
        assert!(share(8, 8) < share(2, 2));
        assert!(share(2, 2) < share(1, 2));
        assert!(share(8, 8) < share(8, 2), "threads beyond the cores do not help");
    }

    #[test]
    fn a_backlog_is_time_to_compress_in() {
        let classes = alone(text());
        let heavy = |backlog_bytes| {
            let plan = plan(&classes, &Rates { backlog_bytes, ..rates(1500.0) }, None);
            (0..TURNS).map(|turn| plan.option(0, turn)).sum::<usize>()
        };
        assert!(heavy(30e6) > heavy(0.0));
    }

    #[test]
    fn our_own_threads_are_no_other_programs() {
        let crowding = |threads, cores, collecting| {
            Rates { threads, cores, collecting, ..rates(1.0) }.crowding()
        };
        assert_eq!(crowding(2, 2, true), 1.5);
        assert_eq!(crowding(2, 2, false), 1.0);
        assert_eq!(crowding(8, 2, false), 4.0);
        assert_eq!(crowding(2, 16, true), 1.0);
    }

    #[test]
    fn once_collecting_is_over_its_core_compresses_too() {
        let classes = alone(text());
        let heavy = |collecting| {
            let rates = Rates { collecting, collect_s: 1e-9, ..rates(400.0) };
            let plan = plan(&classes, &rates, None);
            (0..TURNS).map(|turn| plan.option(0, turn)).sum::<usize>()
        };
        assert!(heavy(false) > heavy(true));
    }

    #[test]
    fn where_collecting_is_slowest_the_cores_are_left_to_it() {
        let rates = Rates { collect_s: 10e-9, ..rates(1500.0) };
        let plan = plan(&alone(text()), &rates, None);
        assert!(used(&plan).iter().all(|option| *option <= 2), "{plan:?}");
    }

    #[test]
    fn a_plan_is_kept_until_another_is_clearly_better() {
        let classes = alone(text());
        let old = plan(&classes, &rates(400.0), None);
        for mbps in [398.0, 399.0, 401.0, 402.0] {
            assert_eq!(plan(&classes, &rates(mbps), Some(&old)), old, "{mbps}");
        }
        assert_ne!(plan(&classes, &rates(40.0), Some(&old)), old);
        assert_ne!(plan(&classes, &rates(400.0), Some(&Plan::first(1))), Plan::first(1));
    }

    #[test]
    fn processor_time_goes_where_it_saves_most() {
        // The second class gains little from working hard.
        let stubborn = vec![
            Cost { zip_s: 0.02e-9, share: 1.0 },
            Cost { zip_s: 1e-9, share: 0.95 },
            Cost { zip_s: 2.5e-9, share: 0.93 },
            Cost { zip_s: 10e-9, share: 0.92 },
        ];
        let classes =
            [Class { weight: 0.5, options: text() }, Class { weight: 0.5, options: stubborn }];
        let plan = plan(&classes, &rates(700.0), None);
        for turn in 0..TURNS {
            assert!(plan.option(0, turn) >= plan.option(1, turn), "{plan:?}");
        }
        assert!(plan.light[0] > 0, "{plan:?}");
    }

    proptest! {
        #[test]
        fn no_single_option_is_better(
            costs in prop::collection::vec((0.01f64..20.0, 0.05f64..1.0), 1..6),
            mbps in 10.0f64..5000.0,
            backlog_bytes in 0.0f64..40e6,
            threads in 1usize..9,
        ) {
            let mut options: Vec<Cost> = costs
                .iter()
                .map(|(ns, share)| Cost { zip_s: ns * 1e-9, share: *share })
                .collect();
            options.insert(0, Cost { zip_s: 0.0, share: 1.0 });
            let rates = Rates { backlog_bytes, threads, ..rates(mbps) };
            let classes = alone(options.clone());
            let found = plan(&classes, &rates, None).score(&classes, &rates);
            for at in 0..options.len() {
                let fixed = Plan { light: vec![at], heavy: vec![at], share: 0 };
                // A mixture has steps, and so have prices.
                prop_assert!(found <= 1.1 * fixed.score(&classes, &rates), "{at}");
            }
        }
    }
}
