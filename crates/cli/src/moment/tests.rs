use super::*;

#[test]
fn spans_take_the_fitting_unit() {
    let texts = [5, 119, 120, 7_199, 7_200, 172_800].map(span);
    assert_eq!(texts, ["5 s", "119 s", "2 min", "119 min", "2 h", "2 d"]);
}

#[test]
fn nonsense_times_have_a_text() {
    assert!(!local(u64::MAX).is_empty());
    assert_eq!(age(u64::MAX), "in the future");
    assert_eq!(local(0).len(), 19);
}
