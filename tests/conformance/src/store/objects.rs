//! Whole objects: put, put_new, get, remove, and the names they accept.

use std::sync::Arc;
use std::thread;

use standfast_format::Kind;
use standfast_store::{NAME_BYTES_MAX, Store};

use super::{Case, expect_kind, pattern, read};
use crate::case_table;

pub(super) const CASES: &[Case] = case_table![
    put_then_get_returns_the_bytes,
    put_replaces,
    put_new_refuses_what_exists,
    put_new_has_one_winner,
    absent_objects_are_missing,
    a_directory_is_no_object,
    get_refuses_more_than_asked_for,
    remove_takes_only_its_object,
    bad_names_are_invalid_everywhere,
    the_longest_name_works,
    errors_name_object_and_store,
    free_bytes_answers,
];

fn put_then_get_returns_the_bytes(store: &Arc<dyn Store>) {
    for (number, len) in [0, 1, 4095, 4096, 4097, 300_001].into_iter().enumerate() {
        let name = format!("small/{number}");
        let bytes = pattern(len, number as u64);
        store.put(&name, &bytes).unwrap();
        assert_eq!(read(store, &name), bytes);
        assert_eq!(store.open(&name).unwrap().bytes(), len as u64);
    }
}

fn put_replaces(store: &Arc<dyn Store>) {
    store.put("a", &pattern(10_000, 1)).unwrap();
    store.put("a", b"short").unwrap();
    assert_eq!(read(store, "a"), b"short");
    store.put("a", &pattern(20_000, 2)).unwrap();
    assert_eq!(read(store, "a"), pattern(20_000, 2));
    assert_eq!(store.list("").unwrap().len(), 1);
}

fn put_new_refuses_what_exists(store: &Arc<dyn Store>) {
    store.put_new("manifests/1", b"first").unwrap();
    expect_kind(store.put_new("manifests/1", b"second"), Kind::Busy);
    assert_eq!(read(store, "manifests/1"), b"first");
    store.remove("manifests/1").unwrap();
    store.put_new("manifests/1", b"third").unwrap();
    assert_eq!(read(store, "manifests/1"), b"third");
    assert_eq!(store.list("").unwrap().len(), 1);
}

fn put_new_has_one_winner(store: &Arc<dyn Store>) {
    let contenders: Vec<Vec<u8>> = (0..8).map(|seed| pattern(5000, seed)).collect();
    let won: Vec<bool> = thread::scope(|scope| {
        let threads: Vec<_> = contenders
            .iter()
            .map(|bytes| scope.spawn(|| store.put_new("contested", bytes).is_ok()))
            .collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    assert_eq!(won.iter().filter(|&&won| won).count(), 1, "winners: {won:?}");
    let winner = won.iter().position(|&won| won).unwrap();
    assert_eq!(read(store, "contested"), contenders[winner]);
}

fn absent_objects_are_missing(store: &Arc<dyn Store>) {
    for name in ["a", "a/b", "a/b/c"] {
        expect_kind(store.open(name), Kind::Missing);
        expect_kind(store.get(name, 100), Kind::Missing);
        expect_kind(store.remove(name), Kind::Missing);
    }
    assert!(store.list("").unwrap().is_empty(), "asking created something");
}

fn a_directory_is_no_object(store: &Arc<dyn Store>) {
    store.put("segments/deep/1", b"x").unwrap();
    for name in ["segments", "segments/deep"] {
        expect_kind(store.open(name), Kind::Missing);
        expect_kind(store.remove(name), Kind::Missing);
    }
    assert_eq!(read(store, "segments/deep/1"), b"x");
}

fn get_refuses_more_than_asked_for(store: &Arc<dyn Store>) {
    store.put("a", &[7; 100]).unwrap();
    expect_kind(store.get("a", 99), Kind::Corrupt);
    expect_kind(store.get("a", 0), Kind::Corrupt);
    assert_eq!(store.get("a", 100).unwrap(), [7; 100]);
}

fn remove_takes_only_its_object(store: &Arc<dyn Store>) {
    for name in ["d/1", "d/2", "d/11"] {
        store.put(name, name.as_bytes()).unwrap();
    }
    store.remove("d/1").unwrap();
    expect_kind(store.open("d/1"), Kind::Missing);
    expect_kind(store.remove("d/1"), Kind::Missing);
    assert_eq!(read(store, "d/2"), b"d/2");
    assert_eq!(read(store, "d/11"), b"d/11");
    assert_eq!(store.list("d").unwrap().len(), 2);
}

fn bad_names_are_invalid_everywhere(store: &Arc<dyn Store>) {
    let long = "x".repeat(NAME_BYTES_MAX + 1);
    let bad = [
        "",
        "/",
        "/etc/passwd",
        "a/",
        "a//b",
        "..",
        "../a",
        "a/../../b",
        ".a",
        "a/.b",
        "a b",
        "a\0",
        "a\\b",
        "ä",
        "a%2e",
        "lock.writer",
        "lock.reader",
        "x~1.part",
        &long,
    ];
    for name in bad {
        expect_kind(store.create(name, None), Kind::Invalid);
        expect_kind(store.put(name, b"x"), Kind::Invalid);
        expect_kind(store.put_new(name, b"x"), Kind::Invalid);
        expect_kind(store.open(name), Kind::Invalid);
        expect_kind(store.get(name, 1), Kind::Invalid);
        expect_kind(store.remove(name), Kind::Invalid);
        if !name.is_empty() {
            expect_kind(store.list(name), Kind::Invalid);
        }
    }
    assert!(store.list("").unwrap().is_empty());
}

fn the_longest_name_works(store: &Arc<dyn Store>) {
    let flat = "n".repeat(NAME_BYTES_MAX);
    let deep = format!("{}x", "d/".repeat(NAME_BYTES_MAX / 2 - 1));
    for name in [&*flat, &*deep] {
        store.put(name, b"here").unwrap();
        super::write(store, name, b"there");
        assert_eq!(read(store, name), b"there");
    }
    assert_eq!(store.list("").unwrap().len(), 2);
}

fn errors_name_object_and_store(store: &Arc<dyn Store>) {
    store.put("there", b"123").unwrap();
    let place = store.describe();
    assert!(!place.is_empty());
    let errors = [
        ("absent", store.open("absent").err()),
        ("absent", store.remove("absent").err()),
        ("there", store.put_new("there", b"").err()),
        ("there", store.get("there", 1).err()),
        ("no such name", store.put("no such name", b"").err()),
    ];
    for (name, error) in errors {
        let text = error.expect("must fail").to_string();
        assert!(text.contains(name) && text.contains(&place), "{text}");
    }
}

fn free_bytes_answers(store: &Arc<dyn Store>) {
    store.free_bytes().unwrap();
}
