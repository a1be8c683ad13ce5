use super::*;
use proptest::prelude::*;

#[test]
fn times_of_all_kinds_are_the_same() {
    let base = 1_767_322_983.0; // 2026-01-02T03:03:03Z
    for text in [
        "1767322983",
        "1767322983.0 node12 lost power",
        "2026-01-02T03:03:03Z",
        "2026-01-02 03:03:03",
        "2026-01-02T04:03:03+01:00 kernel panic",
        "2026-01-01T22:03:03.000-0500",
    ] {
        assert_eq!(time_of(text), Some(base), "{text}");
    }
    assert_eq!(time_of("2000-03-01"), Some(951_868_800.0));
    assert_eq!(time_of("1970-01-01T00:00Z"), Some(0.0));
}

#[test]
fn the_interval_is_the_textbook_one() {
    let log: String = (0..=10).map(|i| format!("{}\n", i * 3600)).collect();
    let mtti = parse(&log).unwrap();
    assert!((mtti.mean_s - 3600.0).abs() < 1e-9);
    // Chi-square with 20 degrees of freedom: 34.17 and 9.591.
    assert!((mtti.low_s / (72_000.0 / 34.17) - 1.0).abs() < 0.01);
    assert!((mtti.high_s / (72_000.0 / 9.591) - 1.0).abs() < 0.01);
}

#[test]
fn nonsense_is_named_by_line() {
    let text = parse("# failures\n100\nyesterday\n").unwrap_err().to_string();
    assert!(text.contains("line 3") && text.contains("yesterday"), "{text}");
    for bad in
        ["2026-13-01", "2026-01-02T25:00", "-5", "NaN", "2026-1x-02", "2026-01-02T10:00+9x:00"]
    {
        assert!(parse(&format!("1\n{bad}\n")).is_err(), "{bad}");
    }
    assert!(parse("").unwrap_err().to_string().contains("two failures"));
    assert!(parse("7\n7\n").is_err());
}

proptest! {
    #[test]
    fn any_text_is_read_or_refused(text in ".{0,200}") {
        let _ = parse(&text);
    }
}
