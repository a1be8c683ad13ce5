use super::*;
use crate::levels::Pattern;
use proptest::prelude::*;

#[test]
fn the_interval_settles_at_the_optimum() {
    let mut live = Live::new(3600.0, 0.0).unwrap();
    let mut now = 0.0;
    for _ in 0..20 {
        // Quiet time makes the interval grow a little while it passes.
        let due = now + live.interval_s(now);
        now = due * 1.02;
        now += 4.0;
        live.checkpoint_done(4.0).unwrap();
    }
    let expected = Single::new(live.mtti_s(now), 4.0, 0.0).unwrap().best_interval_s();
    assert!((live.interval_s(now) / expected - 1.0).abs() < 1e-9);
}

#[test]
fn quiet_lengthens_the_interval() {
    let mut live = Live::new(3600.0, 0.0).unwrap();
    live.checkpoint_done(4.0).unwrap();
    assert!(live.interval_s(40_000.0) > live.interval_s(100.0));
    assert!(live.checkpoint_done(f64::NAN).is_err());
}

#[test]
fn a_measured_drain_moves_the_interval_to_the_best_for_it() {
    let mut live = Live::new(3600.0, 0.0).unwrap();
    live.checkpoint_done(4.0).unwrap();
    let alone = live.interval_s(1.0);
    let mut efficiencies = Vec::new();
    for drain_s in [10.0, 120.0, 900.0] {
        let mut live = live.clone();
        live.drain_done(drain_s).unwrap();
        let drained = live.drained(live.mtti_s(1.0)).unwrap();
        let at = |interval_s| {
            drained.outcome(&Pattern { interval_s, every: vec![] }).unwrap().efficiency
        };
        let chosen = live.interval_s(1.0);
        assert_ne!(chosen, alone);
        for other in [alone, chosen * 0.7, chosen * 1.4] {
            assert!(at(chosen) >= at(other), "{drain_s}: {chosen} {other}");
        }
        efficiencies.push(at(chosen));
    }
    assert!(efficiencies.windows(2).all(|pair| pair[1] < pair[0]), "{efficiencies:?}");
    // Where nothing is lost but what the local level repairs, drains do not matter.
    let mut near = live.clone().with_far_share(0.0).unwrap();
    near.drain_done(900.0).unwrap();
    assert!((near.interval_s(1.0) / alone - 1.0).abs() < 0.01);
    assert!(Live::new(1.0, 0.0).unwrap().with_far_share(1.5).is_err());
}

proptest! {
    #[test]
    fn a_dearer_checkpoint_never_comes_sooner(mtti in 60.0f64..1e6, cost in 0.0f64..100.0) {
        let mut cheap = Live::new(mtti, 0.0).unwrap();
        let mut dear = cheap.clone();
        cheap.checkpoint_done(cost).unwrap();
        dear.checkpoint_done(cost + 1.0).unwrap();
        prop_assert!(dear.interval_s(1.0) >= cheap.interval_s(1.0));
    }
}
