//! Huffman codes of limited length, canonical as RFC 1951 wants them.
//!
//! The shape of the tree is that of the device's: leaves by weight and symbol, a leaf before an
//! inner node of the same weight.

/// A code: for every symbol its bits (first bit lowest) and how many.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Code {
    pub(super) bits: Vec<u32>,
    pub(super) lengths: Vec<u32>,
}

impl Code {
    /// The code for symbols that occur this often; none longer than `limit`.
    pub(super) fn of(counts: &[u32], limit: u32) -> Code {
        let mut leaves: Vec<(u32, usize)> = counts
            .iter()
            .enumerate()
            .filter(|(_, count)| **count > 0)
            .map(|(symbol, count)| (*count, symbol))
            .collect();
        leaves.sort_unstable();
        let mut per_length = vec![0_u32; limit as usize + 1];
        for depth in depths(&leaves) {
            per_length[depth.min(limit) as usize] += 1;
        }
        shorten(&mut per_length, limit);

        let mut lengths = vec![0; counts.len()];
        let longest_first =
            (1..=limit).rev().flat_map(|length| vec![length; per_length[length as usize] as usize]);
        for ((_, symbol), length) in leaves.iter().zip(longest_first) {
            lengths[*symbol] = length;
        }
        Code { bits: canonical(&lengths, &per_length), lengths }
    }
}

/// How deep each leaf is; leaves come lightest first.
fn depths(leaves: &[(u32, usize)]) -> Vec<u32> {
    if leaves.len() < 2 {
        return vec![1; leaves.len()];
    }
    let mut inner: Vec<u32> = Vec::new();
    let mut leaf_parents = Vec::new();
    let mut inner_parents = Vec::new();
    for made in 0..leaves.len() - 1 {
        let mut sum = 0;
        for _ in 0..2 {
            let leaf = leaves.get(leaf_parents.len()).map_or(u32::MAX, |leaf| leaf.0);
            let node = inner.get(inner_parents.len()).copied().unwrap_or(u32::MAX);
            if leaf_parents.len() < leaves.len() && leaf <= node {
                sum += leaf;
                leaf_parents.push(made);
            } else {
                sum += node;
                inner_parents.push(made);
            }
        }
        inner.push(sum);
    }
    // Parents come after their children, the root last.
    let mut inner_depths = vec![0; inner.len()];
    for node in (0..inner.len() - 1).rev() {
        inner_depths[node] = inner_depths[inner_parents[node]] + 1;
    }
    leaf_parents.iter().map(|parent| inner_depths[*parent] + 1).collect()
}

/// Makes lengths that were cut to `limit` a code again: each step lengthens one shorter code.
fn shorten(per_length: &mut [u32], limit: u32) {
    let limit = limit as usize;
    let mut total: u32 = (1..=limit).map(|length| per_length[length] << (limit - length)).sum();
    while total > 1 << limit {
        per_length[limit] -= 1;
        let length = (1..limit).rev().find(|length| per_length[*length] > 0);
        let length = length.expect("a code that is too full has a shorter one");
        per_length[length] -= 1;
        per_length[length + 1] += 2;
        total -= 1;
    }
}

fn canonical(lengths: &[u32], per_length: &[u32]) -> Vec<u32> {
    let mut next = vec![0; per_length.len() + 1];
    for length in 1..per_length.len() {
        next[length + 1] = (next[length] + per_length[length]) << 1;
    }
    let bits = lengths.iter().map(|length| {
        if *length == 0 {
            return 0;
        }
        let code: u32 = next[*length as usize];
        next[*length as usize] += 1;
        code.reverse_bits() >> (32 - length)
    });
    bits.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whether the lengths fill the code exactly (Kraft).
    fn is_complete(code: &Code) -> bool {
        let parts =
            code.lengths.iter().filter(|length| **length > 0).map(|length| 1 << (20 - length));
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
}
