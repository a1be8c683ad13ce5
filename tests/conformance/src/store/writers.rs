//! Objects in the making: invisible until sealed, gone when dropped, whole afterwards.

use std::sync::Arc;
use std::thread;

use standfast_format::Kind;
use standfast_store::Store;

use super::{Case, expect_kind, pattern, read, write};
use crate::case_table;

pub(super) const CASES: &[Case] = case_table![
    unsealed_objects_are_invisible,
    dropped_writers_leave_nothing,
    sealing_replaces_whole,
    an_empty_object_can_be_sealed,
    appends_of_any_size_add_up,
    large_objects_come_back_whole,
    settling_in_between_changes_nothing,
    a_wrong_size_hint_does_no_harm,
    many_writers_in_one_thread,
    the_last_seal_wins,
    writers_in_many_threads,
    discard_spares_objects_and_living_writers,
];

fn unsealed_objects_are_invisible(store: &Arc<dyn Store>) {
    let bytes = pattern(3_000_000, 1);
    let mut writer = store.create("segments/1", None).unwrap();
    writer.append(&bytes).unwrap();
    assert_eq!(writer.written(), bytes.len() as u64);
    expect_kind(store.open("segments/1"), Kind::Missing);
    assert!(store.list("").unwrap().is_empty());
    assert_eq!(writer.seal().unwrap(), bytes.len() as u64);
    assert_eq!(read(store, "segments/1"), bytes);
    assert_eq!(store.list("segments").unwrap()[0].bytes, bytes.len() as u64);
}

fn dropped_writers_leave_nothing(store: &Arc<dyn Store>) {
    store.put("b", b"old").unwrap();
    for name in ["a", "b"] {
        let mut writer = store.create(name, Some(10_000_000)).unwrap();
        writer.append(&pattern(2_000_000, 1)).unwrap();
    }
    assert_eq!(store.list("").unwrap().len(), 1);
    assert_eq!(read(store, "b"), b"old");
}

fn sealing_replaces_whole(store: &Arc<dyn Store>) {
    write(store, "a", &pattern(2_000_000, 1));
    let mut writer = store.create("a", None).unwrap();
    writer.append(b"new").unwrap();
    assert_eq!(read(store, "a"), pattern(2_000_000, 1));
    writer.seal().unwrap();
    assert_eq!(read(store, "a"), b"new");
}

fn an_empty_object_can_be_sealed(store: &Arc<dyn Store>) {
    let mut writer = store.create("empty", None).unwrap();
    writer.append(b"").unwrap();
    assert_eq!(writer.seal().unwrap(), 0);
    assert_eq!(store.create("emptier", Some(0)).unwrap().seal().unwrap(), 0);
    assert_eq!(read(store, "empty"), b"");
    assert_eq!(store.list("").unwrap().len(), 2);
}

fn appends_of_any_size_add_up(store: &Arc<dyn Store>) {
    let bytes = pattern(5_000_000 + 4321, 3);
    let mut writer = store.create("a", None).unwrap();
    let (mut rest, mut size) = (&*bytes, 1);
    while !rest.is_empty() {
        let (now, later) = rest.split_at(size.min(rest.len()));
        writer.append(now).unwrap();
        assert_eq!(writer.written(), (bytes.len() - later.len()) as u64);
        rest = later;
        size = size * 7 % 1_500_007;
    }
    assert_eq!(writer.seal().unwrap(), bytes.len() as u64);
    assert!(read(store, "a") == bytes, "the bytes differ");
}

/// Large enough for every backend to cut it into several requests.
fn large_objects_come_back_whole(store: &Arc<dyn Store>) {
    let bytes = pattern((34 << 20) + 4097, 9);
    write(store, "large", &bytes);
    assert!(read(store, "large") == bytes, "the bytes differ");
    let mut dropped = store.create("dropped", None).unwrap();
    dropped.append(&bytes).unwrap();
    drop(dropped);
    assert_eq!(store.list("").unwrap().len(), 1);
}

fn settling_in_between_changes_nothing(store: &Arc<dyn Store>) {
    let bytes = pattern(7_000_001, 5);
    let mut writer = store.create("settled", None).unwrap();
    writer.settle().unwrap();
    for part in bytes.chunks(3_000_000) {
        writer.append(part).unwrap();
        writer.settle().unwrap();
    }
    let meter = writer.meter();
    assert_eq!(writer.seal().unwrap(), bytes.len() as u64);
    assert_eq!(read(store, "settled"), bytes);
    if let Some(meter) = meter {
        let pace = meter.pace();
        assert!(pace.landed_bytes >= bytes.len() as u64, "what is sealed has landed");
        assert_eq!(meter.tally().total().bytes, pace.landed_bytes);
    }
}

fn a_wrong_size_hint_does_no_harm(store: &Arc<dyn Store>) {
    let bytes = pattern(1_234_567, 4);
    for hint in [None, Some(0), Some(1), Some(100_000_000), Some(1 << 50), Some(u64::MAX)] {
        let mut writer = store.create("a", hint).unwrap();
        writer.append(&bytes).unwrap();
        assert_eq!(writer.seal().unwrap(), bytes.len() as u64, "hint {hint:?}");
        assert!(read(store, "a") == bytes, "the bytes differ, hint {hint:?}");
        assert_eq!(store.list("").unwrap()[0].bytes, bytes.len() as u64);
    }
}

fn many_writers_in_one_thread(store: &Arc<dyn Store>) {
    const WRITERS: usize = 24;
    let part = |writer: usize, round: u64| pattern(70_001, writer as u64 * 100 + round);
    let mut writers: Vec<_> =
        (0..WRITERS).map(|number| store.create(&format!("w/{number}"), None).unwrap()).collect();
    for round in 0..4 {
        for (number, writer) in writers.iter_mut().enumerate() {
            writer.append(&part(number, round)).unwrap();
        }
    }
    for writer in writers {
        writer.seal().unwrap();
    }
    for number in 0..WRITERS {
        let expected: Vec<u8> = (0..4).flat_map(|round| part(number, round)).collect();
        assert!(read(store, &format!("w/{number}")) == expected, "writer {number}");
    }
}

fn the_last_seal_wins(store: &Arc<dyn Store>) {
    let mut early = store.create("a", None).unwrap();
    let mut late = store.create("a", None).unwrap();
    late.append(&pattern(100_000, 1)).unwrap();
    early.append(&pattern(50_000, 2)).unwrap();
    late.seal().unwrap();
    early.seal().unwrap();
    assert_eq!(read(store, "a"), pattern(50_000, 2));
}

fn writers_in_many_threads(store: &Arc<dyn Store>) {
    let bytes =
        |thread: u64, object: u64| pattern(400_000 + 777 * thread as usize, thread * 10 + object);
    thread::scope(|scope| {
        for thread in 0..4 {
            scope.spawn(move || {
                for object in 0..3 {
                    write(store, &format!("t{thread}/{object}"), &bytes(thread, object));
                }
            });
        }
    });
    assert_eq!(store.list("").unwrap().len(), 12);
    for thread in 0..4 {
        for object in 0..3 {
            assert!(read(store, &format!("t{thread}/{object}")) == bytes(thread, object));
        }
    }
}

fn discard_spares_objects_and_living_writers(store: &Arc<dyn Store>) {
    store.put("kept/1", b"kept").unwrap();
    let mut writer = store.create("kept/2", None).unwrap();
    writer.append(&pattern(1_500_000, 5)).unwrap();
    let _lock = store.lock(standfast_store::Lock::Writer).unwrap();
    assert_eq!(store.discard_unsealed().unwrap(), 0);
    writer.seal().unwrap();
    assert_eq!(store.discard_unsealed().unwrap(), 0);
    assert_eq!(read(store, "kept/1"), b"kept");
    assert!(read(store, "kept/2") == pattern(1_500_000, 5));
}
