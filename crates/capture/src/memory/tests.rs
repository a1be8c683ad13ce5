use super::*;

#[test]
fn memory_is_zero_aligned_and_all_its_own() {
    for (bytes, alignment) in
        [(0, 1), (1, 1), (4097, 64), (3 << 20, 4096), (100, 1 << 22), (HUGE, 1)]
    {
        let memory = Memory::new(bytes, alignment).unwrap();
        assert_eq!(memory.start().addr() % alignment.max(4096), 0, "{bytes} {alignment}");
        assert_eq!(memory.bytes(), bytes);
        // SAFETY: as long as it says, and nobody else's.
        let all = unsafe { std::slice::from_raw_parts_mut(memory.start(), bytes) };
        assert!(all.iter().all(|byte| *byte == 0));
        all.fill(7);
    }
}

#[test]
fn what_cannot_be_had_is_an_error() {
    assert!(matches!(Memory::new(100, 3), Err(Error::Alignment { .. })));
    assert!(matches!(Memory::new(usize::MAX, 1), Err(Error::NoMemory { .. })));
    assert!(matches!(Memory::new(1 << 60, 1), Err(Error::NoMemory { .. })));
}
