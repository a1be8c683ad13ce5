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
const STUBBORN: Table = [(0.0, 1.0), (1.0, 1.0), (2.0, 0.99), (3.0, 0.99), (12.0, 0.985)];
/// Nearly empty: shrinks many times over.
const EMPTY: Table = [(0.0, 1.0), (0.3, 0.07), (0.5, 0.05), (0.8, 0.045), (5.0, 0.03)];

fn rates(store_mbps: f64) -> Rates {
    Rates { store_s: Some(1e-6 / store_mbps), threads: 2, in_turn: false, hurried: false }
}

/// Blocks of some classes, taking turns.
struct Simulated<'a> {
    learned: Learned,
    classes: Vec<(usize, &'a Table)>,
    /// Of which clock time a second of the processor is.
    slowdown: f64,
}

impl<'a> Simulated<'a> {
    fn new(tables: &[&'a Table]) -> Self {
        let classes = tables.iter().enumerate().map(|(at, table)| (at, *table)).collect();
        Self { learned: Learned::new(), classes, slowdown: 1.0 }
    }

    /// Encodes so many MiB and says which rung each class has then.
    fn run(&mut self, mib: usize, rates: &Rates) -> Vec<usize> {
        let cost = |table: &Table, rung: usize| Cost {
            zip_s: table[rung].0 * 1e-9 * BLOCK as f64,
            bytes: table[rung].1 * BLOCK as f64,
        };
        for at in 0..(mib << 20) / BLOCK {
            let (class, table) = self.classes[at % self.classes.len()];
            let rung = match self.learned.choose(class) {
                Choice::Take(rung) => rung,
                Choice::Compare(rung) => {
                    self.learned.compare(class, rung, cost(table, rung), cost(table, BASE));
                    BASE
                }
            };
            let cost = cost(table, rung);
            let wall_s = cost.zip_s * self.slowdown;
            self.learned.learn((class, rung), BLOCK, cost, wall_s, rates);
        }
        self.classes.iter().map(|(class, _)| self.learned.rungs[*class]).collect()
    }
}

fn alone(table: &Table, rates: &Rates) -> usize {
    Simulated::new(&[table]).run(64, rates)[0]
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
    let mut simulated = Simulated::new(&[&EVEN, &FIELD, &STUBBORN]);
    let (fast, slow) = (rates(1e5), rates(5.0));
    let first = simulated.run(64, &fast);
    assert_eq!(first, [LZ4, BASE, 0]);
    assert_eq!(simulated.learned.rungs[SKEWED], BASE, "no such block has come");
    assert!(simulated.run(256, &slow)[1] > BASE);
    assert_eq!(simulated.run(64, &fast), first);
}

#[test]
fn decisions_follow_the_data_and_come_back() {
    let fast = rates(1e5);
    let mut simulated = Simulated::new(&[&STUBBORN]);
    assert_eq!(simulated.run(64, &fast), [0]);
    simulated.classes[0].1 = &FIELD;
    assert_eq!(
        simulated.run(256, &fast),
        [BASE],
        "blocks that are stored as they are are looked at"
    );
    simulated.classes[0].1 = &STUBBORN;
    assert_eq!(simulated.run(256, &fast), [0]);
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
    let base = |noise: bool| {
        let table = [(0.0, 1.0), (0.7, 0.55), (1.6, 0.5), (4.0, 0.35), (12.0, 0.34)];
        let mut simulated = Simulated::new(&[&table]);
        if noise {
            simulated.classes.push((NOISE, &[(0.0, 1.0); RUNGS]));
        }
        simulated.run(128, &rates(400.0))[0]
    };
    assert_eq!(base(false), BASE);
    assert!(base(true) > BASE);
}

#[test]
fn cores_that_others_use_make_the_encoders_the_bottleneck() {
    let used = |slowdown| {
        let mut simulated = Simulated { slowdown, ..Simulated::new(&[&FIELD]) };
        simulated.run(128, &rates(40.0))[0]
    };
    assert!(used(1.0) > BASE);
    assert_eq!(used(16.0), BASE);
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
        let mut simulated = Simulated::new(&[&FIELD]);
        simulated.run(256, &rates);
        let all_s = simulated.learned.classes[0].base.zip_s;
        assert!(simulated.learned.trial_s < 1.5 * part * all_s);
    }
}
