use super::*;

#[test]
fn buffers_are_zero_aligned_and_writable() {
    for len in [0, 1, 4095, 4096, 4097, HUGE - 1, HUGE, HUGE + 1, 5 * HUGE + 17] {
        let mut buf = AlignedBuf::with_len(len);
        assert_eq!(buf.len(), len);
        assert_eq!(buf.as_ptr() as usize % if len >= HUGE { HUGE } else { ALIGN }, 0);
        assert!(buf.iter().all(|&b| b == 0));
        buf.fill(7);
        assert!(buf.iter().all(|&b| b == 7));
    }
}

#[test]
fn memory_can_be_there_before_it_is_used() {
    let mut buf = AlignedBuf::with_len(2 * HUGE + 17);
    buf[5] = 3;
    // A kernel that knows the call does it for whatever is inside, and for nothing else.
    assert_eq!(buf.populate(0..HUGE), buf.populate(HUGE + 1..2 * HUGE + 17));
    assert!(!buf.populate(HUGE..2 * HUGE + 18));
    assert_eq!((buf[5], buf[HUGE]), (3, 0));
}

#[test]
fn a_large_buffer_costs_nothing_until_used() {
    let mut buf = AlignedBuf::with_len(1 << 30);
    buf[1000 << 20] = 1;
    assert_eq!(buf[1000 << 20], 1);
}
