//! Messages between two ranks, between all, and the barrier.

use std::time::{Duration, SystemTime};

use standfast_comm::{Comm, Tag};
use standfast_format::Kind;

use super::{Case, LENGTHS, TAG, each_pair, expect_kind, expect_pattern, pattern};
use crate::case_table;

pub(super) const CASES: &[Case] = case_table![
    every_rank_has_a_number_of_its_own,
    messages_of_every_length_arrive_whole,
    messages_with_one_tag_keep_their_order,
    every_tag_can_be_used,
    ranks_exchange_in_a_ring,
    a_rank_exchanges_with_itself,
    buffers_are_used_again,
    large_messages_cross_without_waiting_in_a_circle,
    all_to_all_delivers_unequal_messages,
    all_to_all_delivers_large_messages,
    all_to_all_of_nothing,
    nobody_leaves_a_barrier_before_the_last_has_come,
    ranks_that_do_not_exist_are_refused,
];

fn every_rank_has_a_number_of_its_own(comm: &dyn Comm) {
    assert!(comm.rank() < comm.size());
    let own = vec![comm.rank().to_le_bytes().to_vec(); comm.size()];
    let expected: Vec<Vec<u8>> = (0..comm.size()).map(|rank| rank.to_le_bytes().to_vec()).collect();
    assert_eq!(comm.all_to_all(own).unwrap(), expected);
}

fn messages_of_every_length_arrive_whole(comm: &dyn Comm) {
    each_pair(comm, |from, to| {
        // The longest ones between neighbours only.
        let len_max = if to == from + 1 { usize::MAX } else { 70_000 };
        for len in LENGTHS.into_iter().filter(|len| *len < len_max) {
            let seed = from * 1000 + to * 20 + len;
            if comm.rank() == from {
                comm.send(to, TAG, &pattern(len, seed)).unwrap();
            } else {
                expect_pattern(&comm.receive(from, TAG).unwrap(), len, seed);
            }
        }
    });
}

fn messages_with_one_tag_keep_their_order(comm: &dyn Comm) {
    each_pair(comm, |from, to| {
        for number in 0..60 {
            // Short after long: a short one must not overtake.
            let len = if number % 5 == 0 { 20_000 } else { number };
            if comm.rank() == from {
                comm.send(to, TAG, &pattern(len, number)).unwrap();
            } else {
                expect_pattern(&comm.receive(from, TAG).unwrap(), len, number);
            }
        }
    });
}

fn every_tag_can_be_used(comm: &dyn Comm) {
    let (right, left) = neighbours(comm, 1);
    for tag in [0, 1, 0x7fff, 0x8000, 0xfeff, 0xffff] {
        let own = pattern(usize::from(tag) % 100, comm.rank());
        let received = comm.exchange(right, &own, left, Tag(tag)).unwrap();
        expect_pattern(&received, usize::from(tag) % 100, left);
    }
}

/// The ranks so far to the right and to the left, in a ring.
fn neighbours(comm: &dyn Comm, distance: usize) -> (usize, usize) {
    let (rank, size) = (comm.rank(), comm.size());
    ((rank + distance) % size, (rank + size - distance % size) % size)
}

fn ranks_exchange_in_a_ring(comm: &dyn Comm) {
    for distance in 0..=comm.size() {
        let (right, left) = neighbours(comm, distance);
        let len = |rank: usize| rank * 777 + distance;
        let own = pattern(len(comm.rank()), comm.rank());
        expect_pattern(&comm.exchange(right, &own, left, TAG).unwrap(), len(left), left);
    }
}

fn a_rank_exchanges_with_itself(comm: &dyn Comm) {
    let rank = comm.rank();
    for len in LENGTHS {
        let received = comm.exchange(rank, &pattern(len, rank), rank, TAG).unwrap();
        expect_pattern(&received, len, rank);
    }
}

fn buffers_are_used_again(comm: &dyn Comm) {
    let (right, left) = neighbours(comm, 1);
    let (mut buffer, mut message) = (pattern(100, 99), Vec::new());
    // Longer and shorter than what is there; none of it may be seen again.
    for (number, len) in LENGTHS.into_iter().chain([3, 0, 70_000]).enumerate() {
        message.clear();
        message.extend_from_slice(&pattern(len, comm.rank() + number));
        comm.exchange_into(right, &mut message, left, TAG, &mut buffer).unwrap();
        expect_pattern(&buffer, len, left + number);
        let own = pattern(len, comm.rank() + number + 1);
        comm.exchange_over(right, &own, left, TAG, &mut buffer).unwrap();
        expect_pattern(&buffer, len, left + number + 1);
    }
    each_pair(comm, |from, to| {
        for number in 0..8 {
            let len = (number * 5000) % 17_000;
            if comm.rank() == from {
                message.clear();
                message.extend_from_slice(&pattern(len, number));
                comm.send_from(to, TAG, &mut message).unwrap();
            } else {
                comm.receive_into(from, TAG, &mut buffer).unwrap();
                expect_pattern(&buffer, len, number);
            }
        }
    });
}

fn large_messages_cross_without_waiting_in_a_circle(comm: &dyn Comm) {
    let (right, left) = neighbours(comm, 1);
    // More than any transport would keep for a rank that is not looking.
    let len = |rank: usize| (6 << 20) + rank * 4096;
    for _ in 0..2 {
        let own = pattern(len(comm.rank()), comm.rank());
        expect_pattern(&comm.exchange(right, &own, left, TAG).unwrap(), len(left), left);
    }
}

/// Every pair has a message of its own length, and of its own bytes.
fn check_all_to_all(comm: &dyn Comm, len: impl Fn(usize, usize) -> usize) {
    let (rank, size) = (comm.rank(), comm.size());
    let seed = |from: usize, to: usize| from * size + to;
    let outgoing = (0..size).map(|to| pattern(len(rank, to), seed(rank, to))).collect();
    let incoming = comm.all_to_all(outgoing).unwrap();
    assert_eq!(incoming.len(), size);
    for (from, message) in incoming.iter().enumerate() {
        expect_pattern(message, len(from, rank), seed(from, rank));
    }
}

fn all_to_all_delivers_unequal_messages(comm: &dyn Comm) {
    check_all_to_all(comm, |from, to| from * 100 + to);
    check_all_to_all(comm, |from, to| if from == 0 { 0 } else { to * 5000 });
    // Several in a row must not be mixed up, though ranks are not equally fast.
    for round in 0..20 {
        check_all_to_all(comm, |from, to| (from * 31 + to * 17 + round * 7) % 97);
    }
}

fn all_to_all_delivers_large_messages(comm: &dyn Comm) {
    check_all_to_all(comm, |from, to| (1 << 20) + from * 64 + to);
    // One pair has nearly everything.
    let last = comm.size() - 1;
    check_all_to_all(comm, |from, to| if (from, to) == (last, 0) { 7 << 20 } else { 3 });
}

fn all_to_all_of_nothing(comm: &dyn Comm) {
    check_all_to_all(comm, |_, _| 0);
}

fn nobody_leaves_a_barrier_before_the_last_has_come(comm: &dyn Comm) {
    let now = || SystemTime::UNIX_EPOCH.elapsed().unwrap().as_nanos() as u64;
    for late in 0..comm.size() {
        if comm.rank() == late {
            std::thread::sleep(Duration::from_millis(3));
        }
        let came = now();
        comm.barrier().unwrap();
        let left = now();
        let last_came = standfast_comm::collective::all_max(comm, came).unwrap();
        assert!(left >= last_came, "left {} ns before the last came", last_came - left);
    }
}

fn ranks_that_do_not_exist_are_refused(comm: &dyn Comm) {
    let (right, left) = neighbours(comm, 1);
    for nobody in [comm.size(), usize::MAX, 1 << 32, i32::MAX as usize] {
        expect_kind(comm.send(nobody, TAG, b"x"), Kind::Invalid);
        expect_kind(comm.receive(nobody, TAG), Kind::Invalid);
        expect_kind(comm.exchange(nobody, b"x", left, TAG), Kind::Invalid);
        expect_kind(comm.exchange(right, b"x", nobody, TAG), Kind::Invalid);
        let (mut message, mut buffer) = (b"x".to_vec(), Vec::new());
        expect_kind(comm.send_from(nobody, TAG, &mut message), Kind::Invalid);
        expect_kind(comm.receive_into(nobody, TAG, &mut buffer), Kind::Invalid);
        let exchanged = comm.exchange_into(right, &mut message, nobody, TAG, &mut buffer);
        expect_kind(exchanged, Kind::Invalid);
        let exchanged = comm.exchange_over(nobody, b"x", left, TAG, &mut buffer);
        expect_kind(exchanged, Kind::Invalid);
    }
    // A refused call has sent nothing, and the communicator is as good as before.
    let own = pattern(50, comm.rank());
    expect_pattern(&comm.exchange(right, &own, left, TAG).unwrap(), 50, left);
}
