use super::*;

#[test]
fn reservations_are_few_and_modest() {
    let (gib, plenty) = (1 << 30, 1 << 40);
    let chunk = 1 << 20;
    assert_eq!(Reserve::new(Some(gib)).step(chunk, plenty), gib);
    assert_eq!(Reserve::new(Some(5)).step(chunk, plenty), chunk);
    assert_eq!(Reserve::new(None).step(chunk, plenty), RESERVE_BYTES_MIN);
    assert_eq!(Reserve::new(Some(u64::MAX)).step(chunk, plenty), RESERVE_BYTES_MAX);
    assert_eq!(Reserve::new(Some(u64::MAX)).step(chunk, 8 << 20), 2 << 20);
    assert_eq!(Reserve::new(Some(u64::MAX)).step(chunk, 0), chunk);
    let late = Reserve { done: gib, hint: Some(gib), refused: false };
    assert_eq!(late.step(gib + chunk, plenty), gib);
}
