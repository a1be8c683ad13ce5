use super::*;

/// Whether the lengths fill the code exactly (Kraft).
fn is_complete(code: &Code) -> bool {
    let parts = code.lengths.iter().filter(|length| **length > 0).map(|length| 1 << (20 - length));
    parts.sum::<u64>() == 1 << 20
}

#[test]
fn frequent_symbols_have_short_codes() {
    let code = Code::of(&[50, 0, 20, 20, 10], 15);
    // Of two equally frequent symbols the later one counts as the more frequent.
    assert_eq!(code.lengths, [1, 0, 3, 2, 3]);
    assert!(is_complete(&code));
}

#[test]
fn no_code_is_longer_than_the_limit() {
    // Fibonacci weights make the deepest tree.
    let mut counts = vec![1, 1];
    while counts.len() < 30 {
        counts.push(counts[counts.len() - 1] + counts[counts.len() - 2]);
    }
    for limit in [7, 9, 15] {
        let code = Code::of(&counts, limit);
        assert!(code.lengths.iter().all(|length| *length <= limit && *length > 0));
        assert!(is_complete(&code), "limit {limit}");
    }
}

#[test]
fn codes_are_free_of_prefixes() {
    let counts: Vec<u32> = (0..286).map(|i| i * i % 97 + u32::from(i % 3 == 0)).collect();
    let code = Code::of(&counts, 15);
    let used: Vec<(u32, u32)> = code
        .bits
        .iter()
        .copied()
        .zip(code.lengths.iter().copied())
        .filter(|(_, length)| *length > 0)
        .collect();
    for (at, (bits, length)) in used.iter().enumerate() {
        for (other, other_length) in &used[at + 1..] {
            let common = (1_u32 << length.min(other_length)) - 1;
            assert_ne!(bits & common, other & common);
        }
    }
}

#[test]
fn a_single_symbol_gets_one_bit() {
    assert_eq!(Code::of(&[0, 5, 0], 15).lengths, [0, 1, 0]);
}
