//! What [`standfast_comm::collective`] builds from messages, on this transport.

use standfast_comm::Comm;
use standfast_comm::collective::{all_gather, all_max, all_min, all_reduce, all_sum};

use super::{Case, expect_pattern, pattern};
use crate::case_table;

pub(super) const CASES: &[Case] = case_table![
    reductions_see_their_parts_in_order,
    reductions_of_large_parts,
    numbers_are_reduced,
    all_gather_keeps_every_part,
];

fn reductions_see_their_parts_in_order(comm: &dyn Comm) {
    // Neither commutative nor of equal lengths: who combines in another order gets another text.
    let part = format!("{}{}", comm.rank(), "-".repeat(comm.rank() % 3)).into_bytes();
    let expected: String =
        (0..comm.size()).map(|rank| format!("{rank}{}", "-".repeat(rank % 3))).collect();
    let whole = all_reduce(comm, part, |lower, upper| Ok([lower, upper].concat())).unwrap();
    assert_eq!(String::from_utf8(whole).unwrap(), expected);
}

fn reductions_of_large_parts(comm: &dyn Comm) {
    let len = 200_000;
    let part = pattern(len, comm.rank());
    let mixed = all_reduce(comm, part, |lower, upper| {
        Ok(lower.iter().zip(upper).map(|(l, u)| l.wrapping_mul(3).wrapping_add(*u)).collect())
    });
    let mixed = mixed.unwrap();
    assert_eq!(mixed.len(), len);
    let all = all_gather(comm, &mixed).unwrap();
    assert!(all.iter().all(|other| *other == mixed), "every rank has the same result");
}

fn numbers_are_reduced(comm: &dyn Comm) {
    let (rank, size) = (comm.rank() as u64, comm.size() as u64);
    assert_eq!(all_max(comm, rank).unwrap(), size - 1);
    assert_eq!(all_max(comm, u64::MAX - rank).unwrap(), u64::MAX);
    assert_eq!(all_min(comm, 5 + rank).unwrap(), 5);
    assert_eq!(all_sum(comm, rank + 1).unwrap(), size * (size + 1) / 2);
}

fn all_gather_keeps_every_part(comm: &dyn Comm) {
    for unit in [0, 1, 999, 100_000] {
        let gathered = all_gather(comm, &pattern(comm.rank() * unit, comm.rank())).unwrap();
        assert_eq!(gathered.len(), comm.size());
        for (rank, part) in gathered.iter().enumerate() {
            expect_pattern(part, rank * unit, rank);
        }
    }
}
