use super::*;
use proptest::prelude::*;
use std::collections::BTreeMap;

const HASH: usize = 16;
type Map = BTreeMap<[u8; HASH], (u32, u32)>;

/// Appends an entry.
pub(in crate::top_k) fn put_entry(table: &mut Vec<u8>, entry: Entry<'_>) {
    table.extend_from_slice(entry.hash);
    table.extend_from_slice(&entry.frequency.to_le_bytes());
    table.extend_from_slice(&entry.rank.to_le_bytes());
}

fn shape(threshold: usize) -> Shape {
    Shape { hash_bytes: HASH, ranks: 9, threshold, rank: 0 }
}

fn merge(threshold: usize, left: &[u8], right: &[u8]) -> Result<Vec<u8>> {
    let mut result = vec![7; 3];
    shape(threshold).merge(left, right, &mut result)?;
    Ok(result)
}

fn table(map: &Map) -> Vec<u8> {
    let mut bytes = Vec::new();
    for (hash, (frequency, rank)) in map {
        put_entry(&mut bytes, Entry { hash, frequency: *frequency, rank: *rank });
    }
    bytes
}

/// Algorithm 2 as it is written.
fn as_published(left: &Map, right: &Map, threshold: usize) -> Map {
    let mut loads = [0; 9];
    let mut result = Map::new();
    for (one, other) in [(left, right), (right, left)] {
        for (hash, entry) in one.iter().filter(|(hash, _)| !other.contains_key(*hash)) {
            result.insert(*hash, *entry);
            loads[entry.1 as usize] += 1;
        }
    }
    for (hash, (ci, ri)) in left {
        if let Some((cj, rj)) = right.get(hash) {
            let rank = if loads[*ri as usize] < loads[*rj as usize] { *ri } else { *rj };
            result.insert(*hash, (ci + cj, rank));
            loads[rank as usize] += 1;
        }
    }
    while result.len() > threshold {
        let least = result.iter().min_by_key(|(hash, entry)| (entry.0, std::cmp::Reverse(*hash)));
        let least = *least.unwrap().0;
        result.remove(&least);
    }
    result
}

fn maps() -> impl Strategy<Value = Map> {
    // A third of them begins with the same bytes.
    let hash = (0u8..40).prop_map(|of| {
        let mut hash: [u8; HASH] = blake3::hash(&[of]).as_bytes()[..HASH].try_into().unwrap();
        if of % 3 == 0 {
            hash[..8].fill(128);
        }
        hash
    });
    proptest::collection::btree_map(hash, (1u32..4, 0u32..9), 0..40)
}

proptest! {
    #[test]
    fn tables_merge_as_published(left in maps(), right in maps(), threshold in 1usize..60) {
        let merged = merge(threshold, &table(&left), &table(&right)).unwrap();
        prop_assert_eq!(merged, table(&as_published(&left, &right, threshold)));
    }

    #[test]
    fn garbage_is_refused_or_in_bounds(left: Vec<u8>, right in maps()) {
        if let Ok(merged) = merge(50, &left, &table(&right)) {
            prop_assert!(shape(50).check(&merged).is_ok());
        }
    }
}

#[test]
fn tables_that_no_rank_can_have_made_are_refused() {
    let entry = |hash: u8, frequency, rank| {
        let mut bytes = Vec::new();
        put_entry(&mut bytes, Entry { hash: &[hash; HASH], frequency, rank });
        bytes
    };
    let good = entry(1, 5, 0);
    assert!(merge(9, &good, &good[..7]).is_err());
    assert!(merge(9, &good, &entry(2, 1, 9)).is_err());
    assert!(merge(9, &good, &entry(2, 0, 1)).is_err());
    assert!(merge(9, &good, &entry(1, 5, 1)).is_err(), "ten holders of nine ranks");
    assert!(merge(9, &good, &[entry(3, 1, 1), entry(2, 1, 1)].concat()).is_err());
}
