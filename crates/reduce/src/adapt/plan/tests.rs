use super::super::rates::{RESERVE_BYTES, tests::rates};
use super::*;
use proptest::prelude::*;

const ALL: usize = TURNS as usize;

/// Raw, a fast codec, a middling one, a slow one.
fn text() -> Vec<Cost> {
    [(0.02, 1.0), (1.0, 0.5), (2.5, 0.35), (10.0, 0.3)]
        .map(|(ns, share)| Cost { zip_s: ns * 1e-9, share })
        .to_vec()
}

fn alone(options: Vec<Cost>) -> Vec<Class> {
    vec![Class { at: 0, weight: 1.0, options }]
}

fn made(classes: &[Class], rates: &Rates) -> Plan {
    plan(classes, &[0; 3], rates)
}

/// Options used in a round of blocks of the first class, sorted.
fn used_at(plan: &Plan, backlog_bytes: f64) -> Vec<usize> {
    let mut used: Vec<usize> = (0..TURNS).map(|turn| plan.option(0, backlog_bytes, turn)).collect();
    used.sort_unstable();
    used
}

fn used(plan: &Plan) -> Vec<usize> {
    used_at(plan, 0.0)
}

#[test]
fn the_faster_the_store_the_lighter_the_codec() {
    let classes = alone(text());
    let usual = |mbps| used(&made(&classes, &rates(mbps)))[ALL / 2];
    assert_eq!(used(&made(&classes, &rates(50_000.0))), [0; ALL]);
    assert_eq!(usual(1500.0), 1);
    assert_eq!(usual(200.0), 2);
    assert_eq!(used(&made(&classes, &rates(20.0))), [3; ALL]);
}

#[test]
fn compression_begins_where_the_papers_pipeline_says() {
    // Beneficial where max(zip / threads, share * store) < store: from zip / threads on.
    let options = vec![Cost { zip_s: 0.0, share: 1.0 }, Cost { zip_s: 2e-9, share: 0.5 }];
    let classes = alone(options);
    // A mixture is better still: all blocks only where share * store >= zip / threads.
    for (mbps, blocks) in [(5000.0, 4..=8), (1050.0, 20..=24), (400.0, ALL..=ALL)] {
        let plan = made(&classes, &Rates { collect_s: 0.0, ..rates(mbps) });
        let compressed = used(&plan).iter().sum::<usize>();
        assert!(blocks.contains(&compressed), "{mbps}: {plan:?}");
    }
    // In turn it takes a slower store: zip < (1 - share) * store.
    for (mbps, compressed) in [(260.0, false), (240.0, true)] {
        let rates = Rates { collect_s: 0.0, in_turn: true, ..rates(mbps) };
        assert_eq!(used(&made(&classes, &rates)) == [1; ALL], compressed, "{mbps}");
    }
}

#[test]
fn more_threads_work_harder() {
    let classes = alone(text());
    let share = |threads, cores| {
        let rates = Rates { threads, cores, ..rates(400.0) };
        let plan = made(&classes, &rates);
        used(&plan).iter().map(|option| classes[0].options[*option].share).sum::<f64>()
    };
    assert!(share(8, 8) < share(2, 2));
    assert!(share(2, 2) < share(1, 2));
    assert!(share(8, 8) < share(8, 2), "threads beyond the cores do not help");
}

#[test]
fn what_is_on_its_way_decides_between_light_and_heavy() {
    let metered = Rates { backlog_bytes: Some(0.0), ..rates(1000.0) };
    let plan = made(&alone(text()), &metered);
    let work = |backlog_bytes| used_at(&plan, backlog_bytes).iter().sum::<usize>();
    assert!(work(0.0) < work(RESERVE_BYTES), "{plan:?}");
    assert!(work(RESERVE_BYTES) < work(4.0 * RESERVE_BYTES), "{plan:?}");
    assert_eq!(work(1e12), work(level_bytes(LEVELS - 1)), "the last level is for all more");
    let [light, heavy] = plan.options(0, RESERVE_BYTES);
    assert!(light <= heavy);
}

#[test]
fn levels_are_steps_without_gaps() {
    for at in 0..LEVELS {
        assert_eq!(level(level_bytes(at)), at);
        assert_eq!(level(level_bytes(at + 1) - 1.0), at);
    }
    assert_eq!(level(f64::INFINITY), LEVELS - 1);
}

#[test]
fn a_class_that_has_not_come_is_treated_as_told() {
    let plan = plan(&alone(text()), &[0, 2], &rates(1500.0));
    assert_eq!(plan.options(1, 0.0), [2, 2]);
}

#[test]
fn our_own_threads_are_no_other_programs() {
    let crowding =
        |threads, cores, collecting| Rates { threads, cores, collecting, ..rates(1.0) }.crowding();
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
        used(&made(&classes, &rates)).iter().sum::<usize>()
    };
    assert!(heavy(false) > heavy(true));
}

#[test]
fn where_collecting_is_slowest_the_cores_are_left_to_it() {
    let rates = Rates { collect_s: 10e-9, ..rates(1500.0) };
    let plan = made(&alone(text()), &rates);
    assert!(used(&plan).iter().all(|option| *option <= 2), "{plan:?}");
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
    let classes = [
        Class { at: 0, weight: 0.5, options: text() },
        Class { at: 1, weight: 0.5, options: stubborn },
    ];
    let plan = made(&classes, &rates(700.0));
    for turn in 0..TURNS {
        assert!(plan.option(0, 0.0, turn) >= plan.option(1, 0.0, turn), "{plan:?}");
    }
    assert!(plan.options(0, 0.0)[0] > 0, "{plan:?}");
}

proptest! {
    #[test]
    fn no_single_option_is_better(
        costs in prop::collection::vec((0.01f64..20.0, 0.05f64..1.0), 1..6),
        mbps in 10.0f64..5000.0,
        backlog_bytes in prop::option::of(0.0f64..40e6),
        threads in 1usize..9,
    ) {
        let mut options: Vec<Cost> = costs
            .iter()
            .map(|(ns, share)| Cost { zip_s: ns * 1e-9, share: *share })
            .collect();
        options.insert(0, Cost { zip_s: 0.0, share: 1.0 });
        let rates = Rates { backlog_bytes, threads, ..rates(mbps) };
        let found = made(&alone(options.clone()), &rates).score();
        for option in options {
            // A mixture has steps, and so have prices.
            prop_assert!(found <= 1.1 * score(option, &rates));
        }
    }
}
