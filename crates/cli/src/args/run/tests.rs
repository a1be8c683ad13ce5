use super::*;

#[test]
fn periods_are_neither_negative_nor_too_short() {
    assert_eq!(period("10min"), Ok(Duration::from_secs(600)));
    for bad in ["0s", "-1h", "1us", "soon"] {
        assert!(period(bad).is_err(), "{bad}");
    }
    assert_eq!(span("0s"), Ok(Duration::ZERO));
    assert!(span("-1s").is_err());
}
