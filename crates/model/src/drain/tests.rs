use super::*;
use crate::levels::Level;
use proptest::prelude::*;

fn machine(
    mtti: f64,
    local: f64,
    restore: f64,
    near: f64,
    drain: f64,
    view: Visibility,
) -> Drained {
    let levels = vec![
        Level::new(local, local, near).unwrap(),
        Level::new(0.0, restore, 1.0 - near).unwrap(),
    ];
    Drained::new(Hierarchy::new(mtti, levels).unwrap(), drain, view).unwrap()
}

#[test]
fn a_drain_needs_a_near_level_and_a_time() {
    let one = Hierarchy::new(10.0, vec![Level::new(1.0, 1.0, 1.0).unwrap()]).unwrap();
    assert!(Drained::new(one.clone(), 1.0, Visibility::Published).is_err());
    let text = Drained::new(one, -1.0, Visibility::Published).unwrap_err().to_string();
    assert!(text.contains("drain_s"), "{text}");
}

#[test]
fn a_drain_that_just_fits_spans_the_whole_number() {
    let drained = machine(1800.0, 7.0, 300.0, 0.8, 300.0, Visibility::Published);
    let near = |interval_s| Pattern { interval_s, every: vec![] };
    assert_eq!(drained.units_per_drain(&near(150.0)), 2);
    assert_eq!(drained.units_per_drain(&near(149.0)), 3);
    assert_eq!(drained.units_per_drain(&near(1e6)), 1);
}

proptest! {
    #[test]
    fn late_publication_costs_and_parts_add_up(
        mtti in 500.0f64..1e5, local in 0.5f64..20.0, restore in 1.0f64..600.0,
        near in 0.0f64..1.0, drain in 1.0f64..2000.0, interval in 20.0f64..400.0,
    ) {
        let near_pattern = Pattern { interval_s: interval, every: vec![] };
        let real = machine(mtti, local, restore, near, drain, Visibility::Published).outcome(&near_pattern).unwrap();
        let free = machine(mtti, local, restore, near, drain, Visibility::Immediate).outcome(&near_pattern).unwrap();
        prop_assert!(real.efficiency <= free.efficiency + 1e-12);
        prop_assert!((real.breakdown.total() - 1.0).abs() < 1e-9);
        prop_assert!((free.breakdown.total() - 1.0).abs() < 1e-9);
        prop_assert!(real.breakdown.rerun.iter().all(|&part| part > -1e-9));
    }
}

proptest! {
    // Each case is two searches.
    #![proptest_config(ProptestConfig::with_cases(48))]
    #[test]
    fn draining_in_the_background_beats_writing_by_the_host(
        mtti in 2000.0f64..1e5, local in 0.5f64..10.0, global in 50.0f64..400.0, near in 0.5f64..0.99,
    ) {
        let levels = vec![
            Level::new(local, local, near).unwrap(),
            Level::new(global, global, 1.0 - near).unwrap(),
        ];
        let host = Hierarchy::new(mtti, levels).unwrap();
        let by_host = host.outcome(&host.best_pattern()).unwrap().efficiency;
        let drained = Drained::new(host, global, Visibility::Published).unwrap();
        let by_agent = drained.outcome(&drained.best_pattern()).unwrap().efficiency;
        prop_assert!(by_agent > by_host - 0.01, "host {by_host} agent {by_agent}");
    }
}
