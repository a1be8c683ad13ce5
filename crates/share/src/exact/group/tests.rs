use super::*;
use proptest::prelude::*;
use std::collections::BTreeMap;

fn messages(lists: &[Vec<u8>]) -> Vec<Vec<u8>> {
    let hash = |of: &u8| *blake3::hash(&[*of]).as_bytes();
    lists.iter().map(|list| list.iter().flat_map(hash).collect()).collect()
}

#[test]
fn malformed_lists_are_refused() {
    let twice = messages(&[vec![1], vec![2, 2]]);
    let told = Groups::find(&twice, 32, 5).err().unwrap().to_string();
    assert!(told.contains("rank 5") && told.contains("rank 1"), "{told}");
    assert!(Groups::find(&[vec![0; 33]], 32, 0).is_err());
    assert!(Groups::find(&[vec![0; 33]], 16, 0).is_err());
}

proptest! {
    #[test]
    fn groups_are_those_of_a_map(
        lists in proptest::collection::vec(proptest::collection::hash_set(0u8..40, 0..30), 1..6)
    ) {
        let lists: Vec<Vec<u8>> = lists.into_iter().map(Vec::from_iter).collect();
        let mut map: BTreeMap<u8, Vec<u32>> = BTreeMap::new();
        for (source, list) in lists.iter().enumerate() {
            list.iter().for_each(|hash| map.entry(*hash).or_default().push(source as u32));
        }
        let groups = Groups::find(&messages(&lists), 32, 0).unwrap();
        prop_assert_eq!(groups.groups.len(), map.len());
        let shared = Shared::collect(&groups, |_| true);
        prop_assert_eq!(shared.len(), map.values().filter(|holders| holders.len() > 1).count());
        for members in shared.iter() {
            let held = |member: &Member| lists[member.rank as usize][member.position as usize];
            let ranks: Vec<u32> = members.iter().map(|member| member.rank).collect();
            prop_assert!(members.iter().all(|member| held(member) == held(&members[0])));
            prop_assert_eq!(&ranks, &map[&held(&members[0])]);
        }
    }
}
