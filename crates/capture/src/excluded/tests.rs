use super::*;
use proptest::prelude::*;

proptest! {
    /// Against a byte for each address.
    #[test]
    fn bytes_are_excluded_one_by_one(
        steps in prop::collection::vec((any::<bool>(), 0..60usize, 0..30usize), 0..12),
        (from, bytes) in (0..80usize, 0..40usize),
    ) {
        let (mut excluded, mut plain) = (Excluded::default(), [false; 128]);
        for (adds, start, bytes) in steps {
            match adds {
                true => excluded.add(start, bytes),
                false => excluded.remove(start, bytes),
            }
            plain[start..start + bytes].fill(adds);
        }
        prop_assert!(excluded.0.windows(2).all(|two| two[0].end < two[1].start));
        let mut read = vec![1; bytes];
        excluded.blank(from, &mut read);
        let expected: Vec<u8> = plain[from..from + bytes].iter().map(|&is| u8::from(!is)).collect();
        prop_assert_eq!(&read, &expected);
        let mut others = vec![0; bytes];
        excluded.others(from, bytes).for_each(|part| others[part].fill(1));
        prop_assert_eq!(&others, &expected);
        let inside = excluded.within(Span { start: from, bytes });
        let mut read = vec![1; bytes];
        inside.blank(0, &mut read);
        prop_assert_eq!(&read, &expected);
    }
}

#[test]
fn mappings_out_of_core_dumps_are_found() {
    let memory = standfast_sys::AlignedBuf::with_len(3 * 4096);
    let middle = memory[4096..].as_ptr().cast_mut().cast();
    let advice = rustix::mm::Advice::LinuxDontDump;
    // SAFETY: advice about a page of our own.
    unsafe { rustix::mm::madvise(middle, 4096, advice) }.unwrap();
    let span = Span { start: memory.as_ptr() as usize, bytes: memory.len() };
    let mut expected = Excluded::default();
    expected.add(4096, 4096);
    assert_eq!(undumped().within(span), expected);
}
