use super::*;

#[test]
fn closed_forms_agree_with_the_simulator_on_100_machines() {
    let agreement = compare(100, 2026).unwrap();
    for case in agreement.cases.iter().filter(|case| !case.inside()) {
        println!("outside its own interval: {case:?}");
    }
    assert_eq!(agreement.jointly(), 100);
    assert_eq!(agreement.persisting(), 0);
    // 99 are expected; four misses or more would happen in 2 % of honest seeds.
    assert!(agreement.inside() >= 97, "{} inside", agreement.inside());
    // Seven forms: one beyond 3.2 would happen in 1 % of honest seeds.
    let bias = agreement.bias();
    assert!(bias.values().all(|lean| lean.abs() < 3.2), "{bias:?}");
    assert_eq!(bias.len(), 7);
}

#[test]
fn a_wrong_formula_is_found() {
    let mut agreement = compare(30, 5).unwrap();
    for case in &mut agreement.cases {
        // One part in thirty off, as if restores had been forgotten.
        case.closed *= 1.03;
    }
    assert!(agreement.inside() < 20, "{} inside", agreement.inside());
    assert!(agreement.jointly() < 25, "{} jointly", agreement.jointly());
    assert!(agreement.bias()["single level"] > 5.0, "{:?}", agreement.bias());
}

#[test]
fn a_small_error_shows_as_a_bias() {
    let mut agreement = compare(60, 2026).unwrap();
    for case in &mut agreement.cases {
        // A third of an interval: no case alone would tell.
        case.closed += case.first.half_width_99 / 3.0;
    }
    let most = agreement.bias().values().copied().fold(0.0, f64::max);
    assert!(most > 3.2, "{most}");
}

#[test]
fn a_second_look_is_made_only_where_the_first_disagrees() {
    let mut random = Random::new(1);
    let look = |wrong: bool| {
        move |longer: u32, _seed: u64| {
            let narrow = 1.0 / f64::from(longer).sqrt();
            let simulated = if wrong { 2.0 } else { 0.9 * narrow };
            let half_width_9999 = 1.6 * narrow;
            Ok(Look { simulated, half_width_99: narrow, half_width_9999, error: 0.4 })
        }
    };
    let right = Case::new(&mut random, "right", 0.0, look(false)).unwrap();
    assert!(right.inside() && right.second.is_none() && !right.persists());
    let wrong = Case::new(&mut random, "wrong", 0.0, look(true)).unwrap();
    assert!(!wrong.inside() && wrong.persists());
}
