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
mod tests;
