use super::*;

#[test]
fn nan_infinite_and_out_of_range_are_refused_by_name() {
    for bad in [f64::NAN, f64::INFINITY, -1.0] {
        let text = positive("mtti_s", bad).unwrap_err().to_string();
        assert!(text.contains("mtti_s"), "{text}");
        assert!(non_negative("x", bad).is_err());
        assert!(share("x", bad).is_err());
    }
    assert!(positive("x", 0.0).is_err());
    assert!(share_below_one("x", 1.0).is_err());
    assert!(at_least_one("x", 0).is_err());
    assert_eq!(share("x", 1.0), Ok(1.0));
}
