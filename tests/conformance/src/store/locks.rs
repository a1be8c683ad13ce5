//! Locks: who excludes whom, and what the refused one is told.

use std::sync::Arc;

use standfast_format::Kind;
use standfast_store::{Lock, Store};

use super::{Case, expect_kind};
use crate::case_table;

pub(super) const CASES: &[Case] = case_table![
    one_writer_at_a_time,
    readers_share_and_exclude_pruning,
    writer_and_reader_locks_are_independent,
    one_drain_at_a_time,
    checkpoints_are_kept_one_by_one,
    the_refused_one_learns_who_holds_it,
    locks_are_no_objects,
];

fn one_writer_at_a_time(store: &Arc<dyn Store>) {
    let held = store.lock(Lock::Writer).unwrap();
    assert_eq!(held.lock(), Lock::Writer);
    expect_kind(store.lock(Lock::Writer), Kind::Busy);
    drop(held);
    drop(store.lock(Lock::Writer).unwrap());
    drop(store.lock(Lock::Writer).unwrap());
}

fn readers_share_and_exclude_pruning(store: &Arc<dyn Store>) {
    let one = store.lock(Lock::ReadShared).unwrap();
    let two = store.lock(Lock::ReadShared).unwrap();
    expect_kind(store.lock(Lock::ReadExclusive), Kind::Busy);
    drop(one);
    expect_kind(store.lock(Lock::ReadExclusive), Kind::Busy);
    drop(two);
    let alone = store.lock(Lock::ReadExclusive).unwrap();
    expect_kind(store.lock(Lock::ReadExclusive), Kind::Busy);
    expect_kind(store.lock(Lock::ReadShared), Kind::Busy);
    drop(alone);
    drop(store.lock(Lock::ReadShared).unwrap());
}

fn writer_and_reader_locks_are_independent(store: &Arc<dyn Store>) {
    let _writer = store.lock(Lock::Writer).unwrap();
    let reader = store.lock(Lock::ReadShared).unwrap();
    drop(reader);
    let _pruning = store.lock(Lock::ReadExclusive).unwrap();
}

fn one_drain_at_a_time(store: &Arc<dyn Store>) {
    let _writer = store.lock(Lock::Writer).unwrap();
    let one = store.lock(Lock::Drain).unwrap();
    expect_kind(store.lock(Lock::Drain), Kind::Busy);
    drop(one);
    drop(store.lock(Lock::Drain).unwrap());
}

fn checkpoints_are_kept_one_by_one(store: &Arc<dyn Store>) {
    let kept = store.lock(Lock::Keep(7)).unwrap();
    let again = store.lock(Lock::Keep(7)).unwrap();
    expect_kind(store.lock(Lock::Drop(7)), Kind::Busy);
    drop(store.lock(Lock::Drop(8)).unwrap());
    drop(kept);
    expect_kind(store.lock(Lock::Drop(7)), Kind::Busy);
    drop(again);
    drop(store.lock(Lock::Drop(7)).unwrap());
    assert!(store.list("").unwrap().is_empty(), "locks are no objects");
}

fn the_refused_one_learns_who_holds_it(store: &Arc<dyn Store>) {
    for lock in [Lock::Writer, Lock::ReadExclusive] {
        let _held = store.lock(lock).unwrap();
        let text = store.lock(lock).unwrap_err().to_string();
        let pid = format!("pid {}", std::process::id());
        assert!(text.contains(&pid) && text.contains(&store.describe()), "{text}");
    }
}

fn locks_are_no_objects(store: &Arc<dyn Store>) {
    let _writer = store.lock(Lock::Writer).unwrap();
    let _reader = store.lock(Lock::ReadShared).unwrap();
    assert!(store.list("").unwrap().is_empty());
}
