//! Listing: sorted, recursive, by directory and not by leading letters.

use std::sync::Arc;

use standfast_store::{ObjectMeta, Store};

use super::Case;
use crate::case_table;

pub(super) const CASES: &[Case] =
    case_table![lists_are_sorted_and_recursive, prefixes_are_directories, lists_follow_changes];

fn names(objects: &[ObjectMeta]) -> Vec<&str> {
    objects.iter().map(|object| &*object.name).collect()
}

fn lists_are_sorted_and_recursive(store: &Arc<dyn Store>) {
    assert!(store.list("").unwrap().is_empty());
    let all = ["a", "a-b/1", "a.c", "b/10", "b/2", "b/c/d/1", "b0", "z.part"];
    for name in all.iter().rev() {
        store.put(name, name.as_bytes()).unwrap();
    }
    let listed = store.list("").unwrap();
    assert_eq!(names(&listed), all);
    for object in listed {
        assert_eq!(object.bytes, object.name.len() as u64);
    }
}

fn prefixes_are_directories(store: &Arc<dyn Store>) {
    for name in ["seg", "segments/1", "segments/x/2", "segments2/1"] {
        store.put(name, b"1").unwrap();
    }
    assert_eq!(names(&store.list("segments").unwrap()), ["segments/1", "segments/x/2"]);
    assert_eq!(names(&store.list("segments/x").unwrap()), ["segments/x/2"]);
    for prefix in ["seg", "se", "nothing", "segments/1", "segments/none"] {
        assert!(store.list(prefix).unwrap().is_empty(), "{prefix}");
    }
}

fn lists_follow_changes(store: &Arc<dyn Store>) {
    store.put("d/1", b"1").unwrap();
    store.put("d/2", b"22").unwrap();
    store.put("d/1", b"333").unwrap();
    store.remove("d/2").unwrap();
    let listed = store.list("d").unwrap();
    assert_eq!(listed, [ObjectMeta { name: "d/1".to_owned(), bytes: 3 }]);
    store.remove("d/1").unwrap();
    assert!(store.list("d").unwrap().is_empty());
    assert!(store.list("").unwrap().is_empty());
}
