use super::*;
use proptest::prelude::*;

proptest! {
    #[test]
    fn marks_cover_exactly_the_pages_touched(
        start in 0usize..9000, bytes in 1usize..60_000, from in 0usize..80_000, len in 1usize..9000,
    ) {
        let span = Span { start, bytes };
        let mut dirty = Dirty::none(span, 1024);
        dirty.mark(span, 1024, from..from + len);
        let Dirty::Pages(bits) = &dirty else { unreachable!() };
        for page in 0..bytes.div_ceil(1024) {
            let (first, end) = (start + page * 1024, (start + page * 1024 + 1024).min(start + bytes));
            let touched = from < end && first < from + len;
            prop_assert_eq!(bits[page / 64] >> (page % 64) & 1 == 1, touched, "page {}", page);
        }
    }
}
