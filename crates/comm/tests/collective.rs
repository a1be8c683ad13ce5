//! What is built from messages, for any number of ranks.

use standfast_comm::Comm;
use standfast_comm::collective::{all_gather, all_reduce, all_sum};
use standfast_testkit::run_threads;

#[test]
fn any_number_of_ranks_agrees() {
    for size in 1..20 {
        let joined = run_threads(size, |comm| {
            let own = vec![comm.rank() as u8];
            let all = all_reduce(&comm, own.clone(), |lower, upper| Ok([lower, upper].concat()));
            let gathered = all_gather(&comm, &vec![7; comm.rank()]).unwrap();
            let lengths: Vec<usize> = gathered.iter().map(Vec::len).collect();
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
