use std::ptr;
use std::time::Instant;

use super::*;

const PAGE: usize = 4096;

/// Anonymous memory of so many pages, which the test takes apart by itself.
fn map(pages: usize) -> *mut u8 {
    let (prot, flags) =
        (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS);
    // SAFETY: a new mapping, placed by the kernel.
    let start = unsafe { libc::mmap(ptr::null_mut(), pages * PAGE, prot, flags, -1, 0) };
    assert_ne!(start, libc::MAP_FAILED);
    start.cast()
}

fn change(start: *mut u8, page: usize, pages: usize, prot: libc::c_int) {
    // SAFETY: memory of this test alone.
    unsafe { libc::mprotect(start.add(page * PAGE).cast(), pages * PAGE, prot) };
}

fn unmap(start: *mut u8, page: usize, pages: usize) {
    // SAFETY: memory of this test alone.
    unsafe { libc::munmap(start.add(page * PAGE).cast(), pages * PAGE) };
}

fn protected(all: &[(&str, *mut u8, usize)]) -> Regions {
    let mut regions = Regions::default();
    for (name, start, bytes) in all {
        // SAFETY: nothing reads it but the check.
        unsafe { regions.protect(name, *start, *bytes, 0) }.unwrap();
    }
    regions
}

fn name_of_gone(regions: &Regions, access: Access) -> Option<String> {
    match regions.check_mapped(access) {
        Ok(()) => None,
        Err(Error::Gone { name, .. }) => Some(name),
        Err(other) => panic!("{other}"),
    }
}

#[test]
fn memory_that_is_there_passes_and_keeps_its_bytes() {
    let start = map(3);
    // SAFETY: mapped, and of this test alone.
    unsafe { start.add(17).write(7) };
    let empty = ptr::without_provenance_mut(64);
    let regions = protected(&[("odd", start.wrapping_add(17), 2 * PAGE + 5), ("none", empty, 0)]);
    for access in [Access::Read, Access::Fill] {
        assert_eq!(name_of_gone(&regions, access), None);
    }
    // SAFETY: as above.
    assert_eq!(unsafe { start.add(17).read() }, 7);
    unmap(start, 0, 3);
}

#[test]
fn a_region_without_memory_is_named_wherever_the_hole_is() {
    for hole in 0..3 {
        let (first, start) = (map(1), map(3));
        let regions = protected(&[("here", first, PAGE), ("gone", start, 3 * PAGE)]);
        unmap(start, hole, 1);
        assert_eq!(name_of_gone(&regions, Access::Read).as_deref(), Some("gone"), "page {hole}");
        unmap(start, 0, 3);
        unmap(first, 0, 1);
    }
}

#[test]
fn memory_that_may_not_be_used_counts_as_gone() {
    let (first, start) = (map(1), map(2));
    let regions = protected(&[("here", first, PAGE), ("shut", start, 2 * PAGE)]);
    change(start, 1, 1, libc::PROT_READ);
    assert_eq!(name_of_gone(&regions, Access::Read), None);
    assert_eq!(name_of_gone(&regions, Access::Fill).as_deref(), Some("shut"));
    change(start, 1, 1, libc::PROT_NONE);
    assert_eq!(name_of_gone(&regions, Access::Read).as_deref(), Some("shut"));
    unmap(start, 0, 2);
    unmap(first, 0, 1);
}

#[test]
#[ignore = "prints what the check costs"]
fn what_the_check_costs() {
    let start = map(4000);
    let names: Vec<String> = (0..1000).map(|at| format!("r{at}")).collect();
    let many: Vec<(&str, *mut u8, usize)> = names
        .iter()
        .enumerate()
        .map(|(at, name)| (name.as_str(), start.wrapping_add(4 * at * PAGE), 3 * PAGE))
        .collect();
    let large = map((1 << 30) / PAGE);
    for (what, regions) in
        [("1000 regions", protected(&many)), ("1 GiB", protected(&[("large", large, 1 << 30)]))]
    {
        let began = Instant::now();
        (0..100).for_each(|_| regions.check_mapped(Access::Read).unwrap());
        println!("{what}: {:?} each", began.elapsed() / 100);
    }
}
