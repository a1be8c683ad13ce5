//! Decisions in simulated time: blocks cost what a table says, nothing is timed.

use super::*;

const BLOCK: usize = 128 << 10;

/// Nanoseconds of processor for a byte, and what is left of it, by rung.
type Table = [(f64, f64); RUNGS];

/// A smooth field: a quick codec leaves a tenth more.
const FIELD: Table = [(0.0, 1.0), (0.7, 0.55), (1.6, 0.5), (3.0, 0.46), (12.0, 0.42)];
/// A quick codec leaves as little as others do.
const EVEN: Table = [(0.0, 1.0), (0.5, 0.60), (1.8, 0.595), (3.0, 0.594), (12.0, 0.59)];
/// Nearly nothing shrinks it.
const STUBBORN: Table = [(0.0, 1.0), (1.2, 1.0), (2.0, 0.99), (3.0, 0.99), (12.0, 0.985)];
/// Nearly empty: shrinks many times over.
const EMPTY: Table = [(0.0, 1.0), (0.3, 0.07), (0.5, 0.05), (0.8, 0.045), (5.0, 0.03)];

fn rates(store_mbps: f64) -> Rates {
    Rates { store_s: Some(1e-6 / store_mbps), threads: 2, in_turn: false, hurried: false }
}

/// Blocks of one sort after the other.
#[derive(Default)]
struct Simulated {
    learned: Learned,
    /// How many blocks of noise come with each other one.
    noise: usize,
}

impl Simulated {
    /// Encodes so many MiB on cores that others use too, and says which rung blocks get then.
    fn run_slowed(&mut self, table: &Table, mib: usize, rates: &Rates, slowdown: f64) -> usize {
        let cost = |rung: usize| Cost {
            zip_s: table[rung].0 * 1e-9 * BLOCK as f64,
            bytes: table[rung].1 * BLOCK as f64,
        };
        for _ in 0..(mib << 20) / BLOCK {
            let rung = match self.learned.choose() {
                Choice::Take(rung) => rung,
                Choice::Compare(rung) => {
                    self.learned.compare(rung, cost(rung), cost(BASE));
                    BASE
                }
            };
            let wall_s = cost(rung).zip_s * slowdown;
            self.learned.learn(rung, BLOCK, cost(rung), wall_s, rates);
            (0..self.noise).for_each(|_| self.learned.noise(BLOCK, rates));
        }
        self.learned.rung.unwrap_or(BASE)
    }

    fn run(&mut self, table: &Table, mib: usize, rates: &Rates) -> usize {
        self.run_slowed(table, mib, rates, 1.0)
    }
}

fn alone(table: &Table, rates: &Rates) -> usize {
    Simulated::default().run(table, 256, rates)
}

#[test]
fn a_slow_store_gets_a_harder_codec() {
    assert_eq!(alone(&FIELD, &rates(400.0)), BASE);
    assert!(alone(&FIELD, &rates(40.0)) > BASE);
    assert!(alone(&FIELD, &rates(1.0)) == RUNGS - 1);
}

#[test]
fn what_shrinks_is_never_stored_as_it_is_for_a_fast_store() {
    for table in [FIELD, EMPTY] {
        assert_eq!(alone(&table, &rates(1e5)), BASE);
        let hurried = Rates { hurried: true, ..rates(1e5) };
        assert_eq!(alone(&table, &hurried), LZ4, "the program waits");
    }
}

#[test]
fn a_quicker_codec_is_used_where_it_leaves_as_little() {
    assert_eq!(alone(&EVEN, &rates(1e5)), LZ4);
    assert_eq!(alone(&EVEN, &rates(200.0)), BASE, "the store is slower than either");
}

#[test]
fn what_does_not_shrink_does_not_hold_up_a_fast_store() {
    assert_eq!(alone(&STUBBORN, &rates(2000.0)), 0);
    assert_eq!(alone(&STUBBORN, &rates(100.0)), BASE);
}

#[test]
fn decisions_follow_the_store_and_come_back() {
    for table in [EVEN, FIELD, STUBBORN] {
        let mut simulated = Simulated::default();
        let (fast, slow) = (rates(1e5), rates(5.0));
        let first = simulated.run(&table, 256, &fast);
        let then = simulated.run(&table, 1024, &slow);
        assert!(then >= BASE && then == alone(&table, &slow));
        assert_eq!(simulated.run(&table, 256, &fast), first);
    }
}

#[test]
fn decisions_follow_the_data_and_come_back() {
    let fast = rates(1e5);
    let mut simulated = Simulated::default();
    assert_eq!(simulated.run(&STUBBORN, 64, &fast), 0);
    assert_eq!(simulated.run(&FIELD, 256, &fast), BASE, "comparing goes on");
    assert_eq!(simulated.run(&EVEN, 512, &fast), LZ4);
    assert_eq!(simulated.run(&STUBBORN, 512, &fast), 0);
}

#[test]
fn noise_alone_and_what_comes_after_it() {
    let mut simulated = Simulated::default();
    (0..400_000).for_each(|_| simulated.learned.noise(BLOCK, &rates(2000.0)));
    assert_eq!(simulated.learned.byte_s, Some(1e-6 / 2000.0));
    assert_eq!(simulated.run(&FIELD, 64, &rates(2000.0)), BASE);
}

#[test]
fn before_the_store_is_known_blocks_get_the_base() {
    let unknown = Rates { store_s: None, ..rates(1.0) };
    for table in [FIELD, EVEN, STUBBORN, EMPTY] {
        assert_eq!(alone(&table, &unknown), BASE);
    }
}

#[test]
fn the_time_that_noise_takes_to_be_stored_is_used_for_the_rest() {
    let table = [(0.0, 1.0), (0.7, 0.55), (1.6, 0.5), (4.0, 0.35), (12.0, 0.34)];
    let with = |noise| Simulated { noise, ..Default::default() }.run(&table, 128, &rates(400.0));
    assert_eq!(with(0), BASE);
    assert!(with(1) > BASE);
}

#[test]
fn cores_that_others_use_make_the_encoders_the_bottleneck() {
    let used = |slowdown| Simulated::default().run_slowed(&FIELD, 256, &rates(40.0), slowdown);
    assert!(used(1.0) > BASE);
    assert_eq!(used(16.0), BASE);
}

#[test]
fn little_is_not_gained_with_much_of_the_processor() {
    let table = [(0.0, 1.0), (0.7, 0.55), (1.6, 0.5), (1.7, 0.5), (12.0, 0.48)];
    assert_eq!(alone(&table, &rates(50.0)), BASE);
    assert_eq!(alone(&table, &rates(1.0)), RUNGS - 1);
}

#[test]
fn in_turn_every_second_counts() {
    let in_turn = |mbps| alone(&EVEN, &Rates { in_turn: true, threads: 1, ..rates(mbps) });
    assert_eq!(in_turn(2000.0), LZ4);
    assert_eq!(in_turn(1.0), BASE);
}

#[test]
fn comparing_takes_little_of_the_time() {
    for (rates, part) in [(rates(2000.0), TRIAL_PART), (rates(1.0), TRIAL_IDLE)] {
        let mut simulated = Simulated::default();
        simulated.run(&FIELD, 256, &rates);
        assert!(simulated.learned.trial_s < 1.5 * part * simulated.learned.base.zip_s);
    }
}
