use super::*;

#[test]
fn gamma_is_a_factorial() {
    assert!((gamma(5.0) - 24.0).abs() < 1e-9);
    assert!((gamma(1.5) - std::f64::consts::PI.sqrt() / 2.0).abs() < 1e-12);
}

#[test]
fn both_lifetimes_keep_the_mtti() {
    for lifetimes in [
        Lifetimes::Exponential,
        Lifetimes::Weibull { nodes: 50, shape: 1.0 },
        Lifetimes::Weibull { nodes: 50, shape: 0.7 },
    ] {
        let model = FailureModel::new(10.0, lifetimes, Classes::Shares(vec![0.7, 0.3])).unwrap();
        // Long against a node's life, so that the youth of all nodes at the start is forgotten.
        let horizon = 400_000.0;
        let mut strikes = model.strikes(3, horizon);
        let (mut count, mut far, mut before) = (0u32, 0u32, 0.0);
        loop {
            let strike = strikes.next_strike();
            if strike.at_s > horizon {
                break;
            }
            assert!(strike.at_s >= before);
            before = strike.at_s;
            count += 1;
            far += u32::from(strike.class == 1);
        }
        let mtti = horizon / f64::from(count);
        assert!((mtti / 10.0 - 1.0).abs() < 0.03, "{lifetimes:?} {mtti}");
        assert!((f64::from(far) / f64::from(count) - 0.3).abs() < 0.02);
    }
}

#[test]
fn incidents_reach_the_far_level_as_often_as_the_formula_says() {
    let groups = Groups::new(64, 4, 1).unwrap();
    let bursts = Bursts::new(vec![0.4, 0.4, 0.2]).unwrap();
    let expected = bursts.survival(&groups);
    let classes = Classes::Incidents { process_share: 0.0, bursts, groups, adjacent: false };
    let model = FailureModel::new(1.0, Lifetimes::Exponential, classes).unwrap();
    let mut strikes = model.strikes(11, f64::INFINITY);
    let n = 40_000;
    let near = (0..n).filter(|_| strikes.next_strike().class == 1).count();
    let seen = near as f64 / f64::from(n);
    let spread = 2.6 * (expected * (1.0 - expected) / f64::from(n)).sqrt();
    assert!((seen - expected).abs() < spread, "{seen} {expected}");
}

#[test]
fn bad_models_are_named() {
    let shares = Classes::Shares(vec![0.5]);
    let text = FailureModel::new(1.0, Lifetimes::Exponential, shares).unwrap_err().to_string();
    assert!(text.contains("failure_share"), "{text}");
    let lifetimes = Lifetimes::Weibull { nodes: 1, shape: -1.0 };
    let text =
        FailureModel::new(1.0, lifetimes, Classes::Shares(vec![1.0])).unwrap_err().to_string();
    assert!(text.contains("shape"), "{text}");
}
