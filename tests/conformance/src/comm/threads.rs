//! Use from several threads at once, where [`Comm::concurrency`] allows it; nothing elsewhere.

use std::thread;

use standfast_comm::collective::{all_gather, all_sum};
use standfast_comm::{Comm, Concurrency, Tag};

use super::{Case, TAG, each_pair, expect_pattern, pattern};
use crate::case_table;

pub(super) const CASES: &[Case] = case_table![
    tags_are_conversations_of_their_own,
    two_duplicates_work_side_by_side,
    a_communicator_is_used_and_dropped_in_another_thread,
];

fn is_allowed(comm: &dyn Comm) -> bool {
    comm.concurrency() == Concurrency::AnyThread
}

/// Two threads send under two tags; the receiver takes them in one order, then in the other.
fn tags_are_conversations_of_their_own(comm: &dyn Comm) {
    if !is_allowed(comm) {
        return;
    }
    let len = |tag: Tag| usize::from(tag.0) * 40_000;
    each_pair(comm, |from, to| {
        for tags in [[Tag(1), Tag(2)], [Tag(2), Tag(1)]] {
            if comm.rank() == from {
                thread::scope(|scope| {
                    for tag in tags {
                        scope.spawn(move || {
                            comm.send(to, tag, &pattern(len(tag), tag.0.into())).unwrap();
                        });
                    }
                });
            } else {
                for tag in [Tag(1), Tag(2)] {
                    let message = comm.receive(from, tag).unwrap();
                    expect_pattern(&message, len(tag), tag.0.into());
                }
            }
        }
    });
}

/// Collective work on the one while the program exchanges on the other.
fn two_duplicates_work_side_by_side(comm: &dyn Comm) {
    if !is_allowed(comm) {
        return;
    }
    let (one, two) = (comm.duplicate().unwrap(), comm.duplicate().unwrap());
    let (rank, size) = (comm.rank(), comm.size());
    thread::scope(|scope| {
        scope.spawn(|| {
            for round in 0..30 {
                let outgoing = (0..size).map(|to| pattern(round * 100 + to, rank)).collect();
                let incoming = one.all_to_all(outgoing).unwrap();
                for (from, message) in incoming.iter().enumerate() {
                    expect_pattern(message, round * 100 + rank, from);
                }
                one.barrier().unwrap();
                assert_eq!(all_sum(&*one, 1).unwrap(), size as u64);
            }
        });
        scope.spawn(|| {
            for round in 0..30 {
                let own = pattern(round * 5000, rank);
                let (right, left) = ((rank + 1) % size, (rank + size - 1) % size);
                let received = two.exchange(right, &own, left, TAG).unwrap();
                expect_pattern(&received, round * 5000, left);
                two.barrier().unwrap();
            }
        });
    });
}

fn a_communicator_is_used_and_dropped_in_another_thread(comm: &dyn Comm) {
    if !is_allowed(comm) {
        return;
    }
    let copy = comm.duplicate().unwrap();
    let used = thread::spawn(move || {
        let part = copy.split(Some(0), 0).unwrap().unwrap();
        all_gather(&*part, &[part.rank() as u8]).unwrap().concat()
    });
    let expected: Vec<u8> = (0..comm.size()).map(|rank| rank as u8).collect();
    assert_eq!(used.join().unwrap(), expected);
    comm.barrier().unwrap();
}
