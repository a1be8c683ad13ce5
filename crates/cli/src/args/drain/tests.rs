use super::*;

#[test]
fn rates_and_times_are_read() {
    assert_eq!(rate("200MB/s"), Ok(200_000_000));
    assert!(rate("0").is_err());
    assert_eq!(duration("30s"), Ok(Duration::from_secs(30)));
}
