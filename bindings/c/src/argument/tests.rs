use super::*;

#[test]
fn texts_are_cut_between_characters_and_always_end() {
    for (capacity, expected, written) in
        [(0, "", 0), (1, "", 1), (2, "a", 2), (3, "a", 2), (4, "aß", 4), (9, "aßc", 5)]
    {
        let mut room = [0x7f as c_char; 9];
        // SAFETY: `room` is large enough for every capacity.
        let buffer = unsafe { Buffer::new("buf", room.as_mut_ptr(), capacity) }.unwrap();
        assert_eq!(buffer.fill_text("aßc"), 5);
        let bytes: Vec<u8> = room.iter().map(|c| *c as u8).take_while(|b| *b != 0x7f).collect();
        assert_eq!(bytes.len(), written);
        assert_eq!(bytes.strip_suffix(&[0]).unwrap_or_default(), expected.as_bytes());
    }
}

#[test]
fn what_can_be_seen_to_be_wrong_is_refused() {
    let odd = std::ptr::without_provenance_mut::<u64>(0x1001);
    // SAFETY: nothing is written.
    unsafe {
        assert!(Out::optional("a", odd).is_err());
        assert!(Out::required("a", std::ptr::null_mut::<u64>()).is_err());
        assert!(Buffer::new("a", std::ptr::null_mut::<u64>(), 1).is_err());
        assert!(Buffer::new("a", std::ptr::null_mut::<u64>(), 0).is_ok());
        assert!(Buffer::new("a", odd.wrapping_byte_sub(1), usize::MAX).is_err());
        assert!(text("a", std::ptr::null()).is_err());
        assert!(text("a", c"\xff".as_ptr()).is_err());
    }
    assert!(version(0).is_err());
}
