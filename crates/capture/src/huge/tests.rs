use super::*;
use crate::Memory;

#[test]
fn small_pages_become_huge_ones_and_hold_what_they_held() {
    let bytes = 4 * HUGE;
    let memory = Memory::new(bytes, HUGE).unwrap();
    // SAFETY: as long as it says, and nobody else's.
    let words = unsafe { std::slice::from_raw_parts_mut(memory.start(), bytes) };
    // SAFETY: advice about our own memory.
    unsafe { libc::madvise(memory.start().cast(), bytes, libc::MADV_NOHUGEPAGE) };
    // One page of the last block is never touched.
    let touched = bytes - 4096;
    words[..touched].iter_mut().zip(0u32..).for_each(|(byte, at)| *byte = (at / 7) as u8);
    // SAFETY: as above.
    unsafe { libc::madvise(memory.start().cast(), bytes, libc::MADV_HUGEPAGE) };
    let span = Span { start: memory.start() as usize, bytes };
    let mut joiner = HugePageJoiner::default();
    let never = AtomicBool::new(false);
    joiner.round(&[span]).into_iter().for_each(|join| join(&never));
    assert!(words[..touched].iter().zip(0u32..).all(|(byte, at)| *byte == (at / 7) as u8));
    if let Some(pagemap) = &joiner.pagemap {
        let huge = blocks(span).filter(|block| pagemap.is_huge(block.clone())).count();
        assert!(huge <= 3, "what is not wholly there takes no more memory");
        println!("{huge} of 4 huge pages");
    }
}
