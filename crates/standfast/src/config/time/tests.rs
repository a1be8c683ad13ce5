use super::*;
use proptest::prelude::*;

#[test]
fn people_write_times_in_many_ways() {
    for (text, seconds) in
        [("90", 90), ("90s", 90), ("10 min", 600), ("10m", 600), ("24h", 86_400), ("0", 0)]
    {
        assert_eq!(text.parse(), Ok(TimeSpan(Duration::from_secs(seconds))), "{text}");
    }
    for bad in ["", "s", "-1s", "1.5h", "4 fortnights", "99999999999999999d", "1e3", "∞"] {
        let error = bad.parse::<TimeSpan>().unwrap_err();
        assert!(error.contains("not a time"), "{bad}: {error}");
    }
    assert_eq!("1d".parse::<TimeSpan>().unwrap().to_string(), "24h");
}

proptest! {
    #[test]
    fn times_lead_back(millis: u64) {
        let time = TimeSpan(Duration::from_millis(millis));
        prop_assert_eq!(time.to_string().parse(), Ok(time));
    }
}
