use super::*;

#[test]
fn parts_fit_the_hint_and_the_limits() {
    assert_eq!(part_bytes(None), PART_BYTES_MIN);
    assert_eq!(part_bytes(Some(1)), PART_BYTES_MIN);
    assert_eq!(part_bytes(Some(u64::MAX)), PART_BYTES_MAX);
    let tebibyte = 1 << 40;
    assert!(part_bytes(Some(tebibyte)) as u64 * PARTS_PLANNED >= tebibyte);
}
