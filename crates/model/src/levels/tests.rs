use super::*;
use crate::single::Single;
use proptest::prelude::*;

fn two_levels(mtti: f64, local: f64, global: f64, near: f64) -> Hierarchy {
    let levels = vec![
        Level::new(local, local, near).unwrap(),
        Level::new(global, global, 1.0 - near).unwrap(),
    ];
    Hierarchy::new(mtti, levels).unwrap()
}

#[test]
fn shares_must_add_up_and_ratios_must_fit() {
    let level = Level::new(1.0, 1.0, 0.5).unwrap();
    let text = Hierarchy::new(10.0, vec![level]).unwrap_err().to_string();
    assert!(text.contains("failure_share"), "{text}");
    let machine = two_levels(1800.0, 7.0, 300.0, 0.8);
    let pattern = Pattern { interval_s: 150.0, every: vec![] };
    assert!(machine.outcome(&pattern).is_err());
    let pattern = Pattern { interval_s: 150.0, every: vec![0] };
    assert!(machine.outcome(&pattern).unwrap_err().to_string().contains("every"));
}

#[test]
fn commits_are_counted_once() {
    let pattern = Pattern { interval_s: 1.0, every: vec![3, 4] };
    assert_eq!(commits_per_cycle(&pattern), vec![8, 3, 1]);
}

proptest! {
    #[test]
    fn one_level_is_daly(mtti in 50.0f64..1e5, commit in 0.1f64..40.0, interval in 1.0f64..500.0) {
        let machine = Hierarchy::new(mtti, vec![Level::new(commit, commit, 1.0).unwrap()]).unwrap();
        let pattern = Pattern { interval_s: interval, every: vec![] };
        let ours = machine.outcome(&pattern).unwrap().efficiency;
        let daly = Single::new(mtti, commit, commit).unwrap().efficiency(interval).unwrap();
        prop_assert!((ours - daly).abs() < 1e-9);
    }

    #[test]
    fn parts_add_up_to_one(
        mtti in 200.0f64..1e5, local in 0.1f64..40.0, global in 1.0f64..900.0,
        near in 0.0f64..=1.0, interval in 5.0f64..500.0, every in 1u64..60,
    ) {
        let machine = two_levels(mtti, local, global, near);
        let outcome = machine.outcome(&Pattern { interval_s: interval, every: vec![every] }).unwrap();
        prop_assert!((outcome.breakdown.total() - 1.0).abs() < 1e-9);
        prop_assert!(outcome.efficiency > 0.0 && outcome.efficiency < 1.0);
    }

    #[test]
    fn more_failures_never_help(mtti in 300.0f64..1e5, near in 0.0f64..1.0) {
        let pattern = Pattern { interval_s: 100.0, every: vec![5] };
        let often = two_levels(mtti, 5.0, 60.0, near).outcome(&pattern).unwrap();
        let rarely = two_levels(mtti * 1.5, 5.0, 60.0, near).outcome(&pattern).unwrap();
        prop_assert!(rarely.efficiency > often.efficiency);
    }
}

proptest! {
    // Each case is a search.
    #![proptest_config(ProptestConfig::with_cases(48))]
    #[test]
    fn no_neighbour_beats_the_best_pattern(
        mtti in 600.0f64..1e5, local in 0.5f64..20.0, times in 2.0f64..50.0, near in 0.05f64..0.99,
    ) {
        let machine = two_levels(mtti, local, local * times, near);
        let best = machine.best_pattern();
        let top = machine.outcome(&best).unwrap().efficiency;
        for (factor, step) in [(0.9, 0), (1.1, 0), (1.0, 1), (0.97, 1)] {
            let other = Pattern { interval_s: best.interval_s * factor, every: vec![best.every[0] + step] };
            prop_assert!(machine.outcome(&other).unwrap().efficiency <= top + 1e-7);
        }
    }
}
