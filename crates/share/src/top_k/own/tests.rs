use super::super::merge::Entry;
use super::super::merge::tests::put_entry;
use super::*;

#[test]
fn a_view_that_names_a_wrong_holder_is_refused() {
    let mut view = Vec::new();
    put_entry(&mut view, Entry { hash: &[5; 16], frequency: 2, rank: 1 });
    let mut own = Own::new(16);
    own.sort(&[5; 16]);
    assert!(own.held(&view, 1).is_ok());
    own.sort(&[6; 16]);
    assert!(own.held(&view, 0).unwrap().is_empty());
    assert!(own.held(&view, 1).is_err());
}

#[test]
fn candidates_are_in_the_order_of_their_hashes() {
    for (count, hash_bytes) in [(0, 16), (1, 20), (50, 32), (5000, 16), (70_000, 20)] {
        let spread: Vec<u8> = (0..count as u32)
            .flat_map(|of| blake3::hash(&of.to_le_bytes()).as_bytes()[..hash_bytes].to_vec())
            .collect();
        // All in one lot, told apart by their last byte.
        let mut close = vec![9; count.min(200) * hash_bytes];
        for (hash, last) in close.chunks_exact_mut(hash_bytes).zip((0..=255).rev()) {
            hash[hash_bytes - 1] = last;
        }
        let mut own = Own::new(hash_bytes);
        for hashes in [spread, close] {
            let mut expected: Vec<_> = hashes.chunks_exact(hash_bytes).zip(0u32..).collect();
            expected.sort_unstable();
            own.sort(&hashes);
            let found = entries(&own.entries, hash_bytes);
            assert!(found.eq(expected.iter().map(|(hash, candidate)| Entry {
                hash,
                frequency: 1,
                rank: *candidate
            })));
            let mut table = vec![1; 5];
            own.write_table(7, &mut table);
            assert!(entries(&table, hash_bytes).all(|entry| entry.rank == 7));
            assert_eq!(entries(&table, hash_bytes).count(), expected.len());
        }
    }
}
