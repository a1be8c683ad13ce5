use super::*;
use proptest::prelude::*;

#[test]
fn bad_times_are_named() {
    let text = Single::new(-1.0, 1.0, 1.0).unwrap_err().to_string();
    assert_eq!(text, "mtti_s must be finite and above 0, but is -1");
    assert!(Single::new(1.0, f64::NAN, 1.0).unwrap_err().to_string().contains("commit_s"));
    assert!(Single::new(9.0, 1.0, 1.0).unwrap().efficiency(0.0).is_err());
}

#[test]
fn ninety_percent_needs_a_commit_of_a_two_hundredth() {
    let efficiency = efficiency_of_ratio(200.0).unwrap();
    assert!((efficiency - 0.90).abs() < 0.005, "{efficiency}");
}

proptest! {
    #[test]
    fn no_interval_beats_the_best(
        mtti in 10.0f64..1e6, part in 1e-4f64..3.0, restore in 0.0f64..2.0, factor in 0.05f64..20.0,
    ) {
        let single = Single::new(mtti, mtti * part, mtti * restore).unwrap();
        let best = single.best_interval_s();
        let top = single.efficiency(best).unwrap();
        prop_assert!(single.efficiency(best * factor).unwrap() <= top * (1.0 + 1e-12));
        // Daly's expansion is close where commits are short.
        if part < 0.5 {
            let daly = single.efficiency(single.daly_interval_s()).unwrap();
            prop_assert!(daly >= top * 0.998, "daly {daly} best {top}");
        }
    }

    #[test]
    fn efficiency_grows_with_the_ratio(ratio in 0.5f64..1e5) {
        let here = efficiency_of_ratio(ratio).unwrap();
        prop_assert!(here > 0.0 && here < 1.0);
        prop_assert!(efficiency_of_ratio(ratio * 1.1).unwrap() > here);
    }
}
