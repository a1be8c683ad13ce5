use super::*;

#[test]
fn pauses_double_and_have_an_end() {
    let second = Duration::from_secs(1);
    assert_eq!([0, 1, 2, 3].map(|at| backoff(second, at).as_secs()), [1, 2, 4, 8]);
    assert_eq!(backoff(second, 40), BACKOFF_MAX);
    assert_eq!(backoff(Duration::ZERO, 5), Duration::ZERO);
}
