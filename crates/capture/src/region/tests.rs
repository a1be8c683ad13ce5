use super::*;

fn protect(regions: &mut Regions, name: &str, start: usize, bytes: usize) -> Result<()> {
    // SAFETY: the address is never used.
    unsafe { regions.protect(name, start as *mut u8, bytes, 0) }
}

#[test]
fn what_cannot_be_protected_is_refused_with_a_reason() {
    let mut regions = Regions::default();
    protect(&mut regions, "a", 0x1000, 100).unwrap();
    let refused = [
        protect(&mut regions, "a", 0x9000, 1),
        protect(&mut regions, "", 0x9000, 1),
        protect(&mut regions, "null", 0, 1),
        protect(&mut regions, "long", 0x9000, usize::MAX),
        protect(&mut regions, "inside", 0x1010, 4),
        protect(&mut regions, "around", 0xff0, 0x1000),
    ];
    assert!(matches!(refused[0], Err(Error::Taken { .. })));
    assert!(matches!(refused[1], Err(Error::Name(_))));
    assert!(matches!(refused[2], Err(Error::Address { .. })));
    assert!(matches!(refused[3], Err(Error::Address { .. })));
    assert!(matches!(refused[4], Err(Error::Overlap { .. })));
    assert!(matches!(refused[5], Err(Error::Overlap { .. })));
    protect(&mut regions, "behind", 0x1000 + 100, 8).unwrap();
    protect(&mut regions, "empty", 0x1010, 0).unwrap();
    assert_eq!(regions.iter().count(), 3);
}

#[test]
fn a_region_with_other_memory_keeps_its_place() {
    let mut regions = Regions::default();
    for (at, name) in ["a", "b", "c"].into_iter().enumerate() {
        protect(&mut regions, name, 0x1000 * (at + 1), 8).unwrap();
    }
    // SAFETY: the addresses are never used.
    unsafe {
        regions.replace("b", 0x9000 as *mut u8, 16).unwrap();
        assert!(matches!(regions.replace("b", 0x1000 as *mut u8, 16), Err(Error::Overlap { .. })));
        assert!(matches!(regions.replace("d", 0x1000 as *mut u8, 16), Err(Error::Unknown { .. })));
    }
    let names: Vec<(&str, usize)> =
        regions.iter().map(|region| (region.name(), region.bytes())).collect();
    assert_eq!(names, [("a", 8), ("b", 16), ("c", 8)]);
}

#[test]
fn order_is_kept_and_names_come_free() {
    let mut regions = Regions::default();
    for (at, name) in ["c", "a", "b"].into_iter().enumerate() {
        protect(&mut regions, name, 0x1000 * (at + 1), 8).unwrap();
    }
    regions.unprotect("a").unwrap();
    assert!(matches!(regions.unprotect("a"), Err(Error::Unknown { .. })));
    protect(&mut regions, "a", 0x8000, 8).unwrap();
    let names: Vec<&str> = regions.iter().map(Region::name).collect();
    assert_eq!(names, ["c", "b", "a"]);
}
