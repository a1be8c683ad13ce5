use super::*;

#[test]
fn every_single_bit_is_seen_at_every_length_and_alignment() {
    let mut memory = vec![0_u8; 1200];
    for start in [0, 1, 7, 31] {
        for len in [0, 1, 15, 16, 17, 63, 64, 65, 255, 256, 257, 511, 1024, 1100] {
            let range = start..start + len;
            assert!(is_zero(&memory[range.clone()]), "{start} {len}");
            for at in range.clone() {
                memory[at] = 1 << (at % 8);
                assert!(!is_zero(&memory[range.clone()]), "{start} {len} {at}");
                assert!(!is_zero_portable(&memory[range.clone()]), "{start} {len} {at}");
                memory[at] = 0;
            }
        }
    }
}

#[test]
fn bytes_around_the_page_do_not_count() {
    let mut memory = vec![0xff_u8; 4096 + 64];
    memory[33..33 + 4096].fill(0);
    assert!(is_zero(&memory[33..33 + 4096]));
    assert!(is_zero_portable(&memory[33..33 + 4096]));
}
