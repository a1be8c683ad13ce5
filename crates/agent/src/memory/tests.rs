use super::*;

#[test]
fn both_ends_see_the_same_bytes_and_nobody_can_cut_them() {
    let (one, fd) = Memory::create(3, 8192).unwrap();
    let other = Memory::open(&fd, 3, 8192).unwrap();
    // SAFETY: this test alone has both mappings.
    unsafe {
        one.unit(2).write(42);
        assert_eq!(other.unit(2).read(), 42);
    }
    assert!(rustix::fs::ftruncate(&fd, 0).is_err());
    for (units, unit_bytes) in [(2, 8192), (3, 4096), (usize::MAX, 8192), (0, 8192)] {
        assert!(Memory::open(&fd, units, unit_bytes).is_err(), "{units} of {unit_bytes}");
    }
}
