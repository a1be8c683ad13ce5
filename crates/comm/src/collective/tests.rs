use super::*;
use crate::run_threads;
use proptest::prelude::*;

#[test]
fn any_number_of_ranks_agrees() {
    for size in 1..20 {
        let joined = run_threads(size, |comm| {
            let own = vec![comm.rank() as u8];
            let all = all_reduce(&comm, own.clone(), |lower, upper| Ok([lower, upper].concat()));
            let gathered = all_gather(&comm, &vec![7; comm.rank()]).unwrap();
            let lengths: Vec<usize> = gathered.iter().map(Vec::len).collect();
            for root in 0..size {
                let told = broadcast(&comm, root, &[comm.rank() as u8]).unwrap();
                assert_eq!(told, [root as u8]);
            }
            (all.unwrap(), lengths, all_sum(&comm, 1).unwrap())
        });
        let in_order: Vec<u8> = (0..size as u8).collect();
        for (all, lengths, sum) in joined {
            assert_eq!(all, in_order, "every part once, in the order of ranks");
            assert_eq!(lengths, (0..size).collect::<Vec<_>>());
            assert_eq!(sum, size as u64);
        }
    }
}

proptest! {
    #[test]
    fn joined_messages_come_apart(parts in proptest::collection::vec(any::<Vec<u8>>(), 0..9)) {
        prop_assert_eq!(cut(&join(&parts)), Some(parts));
    }

    #[test]
    fn garbage_is_refused_or_cut(bytes: Vec<u8>) {
        if let Some(parts) = cut(&bytes) {
            prop_assert_eq!(join(&parts), bytes);
        }
    }
}
