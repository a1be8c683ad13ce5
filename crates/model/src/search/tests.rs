use super::*;
use proptest::prelude::*;

proptest! {
    #[test]
    fn peaks_are_found(top in 0.01f64..1e4, count in 1u64..5000) {
        let found = peak(1e-3, 1e5, |x| -(x.ln() - top.ln()).powi(2));
        prop_assert!((found / top - 1.0).abs() < 1e-4);
        prop_assert_eq!(peak_count(5000, |n| -(n as f64 - count as f64).powi(2)), count);
    }
}
