//! Communicators made from others: who belongs to them, in which order, and that their messages
//! stay among themselves.

use standfast_comm::collective::{all_gather, all_sum};
use standfast_comm::{Comm, Concurrency};

use super::{Case, TAG, expect_pattern, pattern};
use crate::case_table;

pub(super) const CASES: &[Case] = case_table![
    ranks_of_one_colour_come_together,
    keys_decide_the_order_and_ranks_break_ties,
    a_rank_without_a_colour_belongs_to_nothing,
    colours_and_keys_use_their_whole_range,
    parts_can_be_split_again,
    a_part_goes_on_without_its_origin,
    a_duplicate_has_the_same_ranks,
    duplicates_are_let_go,
    messages_of_duplicates_do_not_meet,
];

/// Members of a communicator, by rank there, as ranks of the one it was made from.
fn members(part: &dyn Comm, rank_before: usize) -> Vec<usize> {
    let gathered = all_gather(part, &rank_before.to_le_bytes()).unwrap();
    gathered
        .iter()
        .map(|bytes| usize::from_le_bytes(bytes.as_slice().try_into().unwrap()))
        .collect()
}

/// The new communicator has exactly these members, and this rank is where the list says.
#[track_caller]
fn expect_members(part: &dyn Comm, rank_before: usize, expected: &[usize]) {
    assert_eq!(members(part, rank_before), expected);
    assert_eq!(part.size(), expected.len());
    assert_eq!(expected[part.rank()], rank_before);
}

fn ranks_of_one_colour_come_together(comm: &dyn Comm) {
    let rank = comm.rank();
    for colours in 1..=3 {
        let part = comm.split(Some((rank % colours) as u32), 0).unwrap().unwrap();
        assert_eq!(part.concurrency(), comm.concurrency());
        let expected: Vec<usize> =
            (0..comm.size()).filter(|other| other % colours == rank % colours).collect();
        expect_members(&*part, rank, &expected);
    }
}

fn keys_decide_the_order_and_ranks_break_ties(comm: &dyn Comm) {
    let (rank, size) = (comm.rank(), comm.size());
    let reversed = comm.split(Some(4), (size - rank) as u32).unwrap().unwrap();
    expect_members(&*reversed, rank, &(0..size).rev().collect::<Vec<_>>());

    // The upper half first; within a half all keys are equal.
    let halves = comm.split(Some(4), u32::from(rank < size / 2)).unwrap().unwrap();
    let expected: Vec<usize> = (size / 2..size).chain(0..size / 2).collect();
    expect_members(&*halves, rank, &expected);
}

fn a_rank_without_a_colour_belongs_to_nothing(comm: &dyn Comm) {
    let (rank, size) = (comm.rank(), comm.size());
    for alone in 0..size {
        let part = comm.split((rank == alone).then_some(0), 0).unwrap();
        assert_eq!(part.is_some(), rank == alone);
        if let Some(part) = part {
            expect_members(&*part, rank, &[alone]);
        }
    }
    assert!(comm.split(None, 0).unwrap().is_none(), "nobody has a colour");
}

fn colours_and_keys_use_their_whole_range(comm: &dyn Comm) {
    let (rank, size) = (comm.rank(), comm.size());
    // The lower 31 bits of pairs of these are equal.
    let colours = [u32::MAX, u32::MAX >> 1, 0, 1 << 31];
    let keys = [u32::MAX, 1 << 31, (1 << 31) - 1, 0];
    let part = comm.split(Some(colours[rank % 4]), keys[rank / 4 % 4]).unwrap().unwrap();
    let mut expected: Vec<usize> = (0..size).filter(|other| other % 4 == rank % 4).collect();
    expected.sort_by_key(|other| (keys[other / 4 % 4], *other));
    expect_members(&*part, rank, &expected);

    let by_key = comm.split(Some(u32::MAX), keys[rank % 4]).unwrap().unwrap();
    let mut expected: Vec<usize> = (0..size).collect();
    expected.sort_by_key(|other| (keys[other % 4], *other));
    expect_members(&*by_key, rank, &expected);
}

/// Halves until single ranks are left; every level talks while the ones above are alive.
fn parts_can_be_split_again(comm: &dyn Comm) {
    let (rank, size) = (comm.rank(), comm.size());
    if size > 1 {
        let upper = rank >= size / 2;
        let half = comm.split(Some(u32::from(upper)), 0).unwrap().unwrap();
        let expected: Vec<usize> =
            if upper { (size / 2..size).collect() } else { (0..size / 2).collect() };
        expect_members(&*half, rank, &expected);
        parts_can_be_split_again(&*half);
    }
    assert_eq!(all_sum(comm, 1).unwrap(), size as u64, "the origin is as good as before");
}

fn a_part_goes_on_without_its_origin(comm: &dyn Comm) {
    let origin = comm.duplicate().unwrap();
    let part = origin.split(Some(1), 0).unwrap().unwrap();
    drop(origin);
    expect_members(&*part, comm.rank(), &(0..comm.size()).collect::<Vec<_>>());
}

fn a_duplicate_has_the_same_ranks(comm: &dyn Comm) {
    let copy = comm.duplicate().unwrap();
    assert_eq!((copy.rank(), copy.size()), (comm.rank(), comm.size()));
    assert_eq!(copy.concurrency(), comm.concurrency());
    expect_members(&*copy, comm.rank(), &(0..comm.size()).collect::<Vec<_>>());
}

/// Transports have room for a few thousand communicators at a time.
fn duplicates_are_let_go(comm: &dyn Comm) {
    for _ in 0..30 {
        let copy = comm.duplicate().unwrap();
        let (rank, size) = (copy.rank(), copy.size());
        copy.exchange((rank + 1) % size, b"", (rank + size - 1) % size, TAG).unwrap();
    }
}

/// The same ranks talk under the same tag on the duplicate and on the origin, in turns and, where
/// that is allowed, at once. Each message shows where it belongs.
fn messages_of_duplicates_do_not_meet(comm: &dyn Comm) {
    let copy = comm.duplicate().unwrap();
    let (rank, size) = (comm.rank(), comm.size());
    let (right, left) = ((rank + 1) % size, (rank + size - 1) % size);
    let ring = |on: &dyn Comm, seed: usize, round: usize| {
        let own = pattern(round * 50, seed + rank);
        expect_pattern(&on.exchange(right, &own, left, TAG).unwrap(), round * 50, seed + left);
    };
    for round in 0..20 {
        ring(comm, 0, round);
        ring(&*copy, 1000, round);
    }
    if comm.concurrency() == Concurrency::AnyThread {
        std::thread::scope(|scope| {
            scope.spawn(|| (0..50).for_each(|round| ring(comm, 0, round)));
            scope.spawn(|| (0..50).for_each(|round| ring(&*copy, 1000, round)));
        });
    }
}
