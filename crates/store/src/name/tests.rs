use std::path::{Component, Path};

use proptest::prelude::*;
use standfast_format::Kind;

use super::*;

#[test]
fn hostile_names_are_refused() {
    let long = "a".repeat(NAME_BYTES_MAX + 1);
    for name in [
        "",
        "/",
        "a/",
        "/a",
        "a//b",
        ".",
        "..",
        "a/..",
        "a/../b",
        ".hidden",
        "a/.b",
        "a b",
        "a\0b",
        "a\\b",
        "é",
        "a\nb",
        "lock.writer",
        "lock.reader",
        "lock.x/y",
        "a~1.part",
        &long,
    ] {
        let error = check_name(name, "s").expect_err(name);
        assert_eq!(error.kind(), Kind::Invalid, "{name:?}");
    }
}

#[test]
fn ordinary_names_pass() {
    let longest = "a".repeat(NAME_BYTES_MAX);
    for name in ["a", "segments/00000001.seg", "a/b/c/d", "x.part", "-", "_", "a..b", &longest] {
        check_name(name, "s").unwrap();
    }
    check_prefix("", "s").unwrap();
}

proptest! {
    #[test]
    fn whatever_passes_stays_below_its_root(name in "\\PC{0,220}") {
        if check_name(&name, "s").is_ok() {
            prop_assert!(Path::new(&name).components().all(|c| matches!(c, Component::Normal(_))));
            prop_assert!(name.len() <= NAME_BYTES_MAX);
        }
    }

    #[test]
    fn near_misses_stay_below_their_root(name in "[A-Za-z0-9._/~-]{0,40}") {
        if check_name(&name, "s").is_ok() {
            prop_assert!(Path::new(&name).components().all(|c| matches!(c, Component::Normal(_))));
            prop_assert_eq!(Path::new(&name).components().count(), name.split('/').count());
        }
    }

    #[test]
    fn the_alphabet_is_accepted(name in "[A-Za-z0-9_-][A-Za-z0-9._-]{0,30}(/[A-Za-z0-9_-][A-Za-z0-9._-]{0,30}){0,4}") {
        prop_assume!(!name.starts_with(RESERVED));
        prop_assert!(check_name(&name, "s").is_ok());
    }

    #[test]
    fn messages_stay_short(name in "\\PC{0,2000}") {
        if let Err(error) = check_name(&name, "s") {
            prop_assert!(error.to_string().chars().count() < 1500);
        }
    }
}
