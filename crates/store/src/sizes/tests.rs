use super::*;

#[test]
fn writes_grow_to_whole_chunks_and_stay_aligned() {
    let mut sizes = WriteSizes::new(2 << 20);
    let mut seen = Vec::new();
    for _ in 0..7 {
        seen.push(sizes.now() >> 10);
        sizes.grow();
    }
    assert_eq!(seen, [64, 128, 256, 512, 1024, 2048, 2048]);
    for whole in [ALIGN, 3 * ALIGN, 9 * ALIGN, 64 << 20] {
        let mut sizes = WriteSizes::new(whole);
        for _ in 0..10 {
            assert!(sizes.now() <= whole && sizes.now().is_multiple_of(ALIGN), "{whole}");
            for written in [0, 5000, 300_000, 1 << 30, u64::MAX] {
                let short = sizes.after(written, SLOW[0], || 0);
                assert!(short <= sizes.now() && short.is_multiple_of(ALIGN), "{whole}");
                assert_eq!(sizes.after(written, SLOW[1], || 1), short);
                assert_eq!(sizes.after(written, SLOW[0], || 1), sizes.now());
                assert_eq!(sizes.after(written, SLOW[1], || 2), sizes.now());
                assert_eq!(sizes.after(written, Duration::ZERO, || 0), sizes.now());
            }
            sizes.grow();
        }
        assert_eq!(sizes.now(), whole);
        assert_eq!(sizes.after(u64::MAX, SLOW[1], || 1), whole);
        assert!(sizes.after(0, SLOW[1], || 1) <= whole.div_ceil(4).max(ALIGN));
    }
}
