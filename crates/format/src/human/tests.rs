use super::*;

#[test]
fn figures_have_the_unit_that_fits() {
    assert_eq!(human_bytes(17), "17 B");
    assert_eq!(human_bytes(3 << 29), "1.50 GiB");
    assert_eq!(human_ns(1_234_567), "1.23 ms");
    assert_eq!(human_ns(12_300_000_000), "12.3 s");
}
