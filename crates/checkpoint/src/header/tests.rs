use super::*;
use crate::Inventory;
use standfast_format::{JobId, SegmentId};
use standfast_store::MemoryStore;

fn header() -> StoreHeader {
    StoreHeader { id: JobId([3; 16]), job: "heat".into(), key: [7; 32], created_ns: 1 }
}

fn made() -> MemoryStore {
    let store = MemoryStore::new();
    complete_header(&store, &header()).unwrap();
    store
}

fn segment() -> String {
    name::segment(SegmentId([1; 16]))
}

#[test]
fn any_copy_that_is_intact_serves_and_restores_the_others() {
    for intact in name::HEADERS {
        for damage in [None, Some(b"garbage".as_slice())] {
            let store = made();
            for object in name::HEADERS.into_iter().filter(|object| *object != intact) {
                match damage {
                    None => store.remove(object).unwrap(),
                    Some(bytes) => store.put(object, bytes).unwrap(),
                }
            }
            assert_eq!(read_header(&store).unwrap(), header(), "{intact}");
            complete_header(&store, &header()).unwrap();
            store.remove(intact).unwrap();
            assert_eq!(read_header(&store).unwrap(), header(), "{intact}");
        }
    }
}

#[test]
fn a_store_with_files_and_no_header_is_not_empty() {
    assert!(matches!(read_header(&MemoryStore::new()), Err(Unreadable::NoStore(_))));
    for object in [segment(), "manifests/v0000000001.local".into()] {
        let store = MemoryStore::new();
        store.put(&object, b"x").unwrap();
        let error = read_header(&store).unwrap_err();
        assert!(matches!(error, Unreadable::NoHeader(_)), "{object}: {error}");
        assert_eq!(error.kind(), Kind::Corrupt);
    }
    let damaged = MemoryStore::new();
    damaged.put(name::STORE, b"garbage").unwrap();
    assert_eq!(read_header(&damaged).unwrap_err().kind(), Kind::Corrupt);
    // What is no file of ours makes no store.
    let other = MemoryStore::new();
    other.put("images/cat.png", b"x").unwrap();
    assert!(matches!(read_header(&other), Err(Unreadable::NoStore(_))));
}

#[test]
fn manifests_that_are_gone_are_missed() {
    let store = made();
    assert!(Inventory::read(&store).unwrap().checkpoints.is_empty());
    // An attempt that was never committed: nothing is lost.
    store.put(&segment(), b"x").unwrap();
    assert!(Inventory::read(&store).unwrap().checkpoints.is_empty());
    store.remove("manifests/header").unwrap();
    let error = Inventory::read(&store).unwrap_err();
    assert!(matches!(error, Unreadable::NoManifests(_)), "{error}");
    assert_eq!(error.kind(), Kind::Corrupt);
    assert!(check_manifests(&store).is_err());
    // Of an earlier version nobody knows; who would remove the segment refuses all the same.
    store.remove("copies/header").unwrap();
    assert!(Inventory::read(&store).unwrap().checkpoints.is_empty());
    assert!(check_manifests_strictly(&store).is_err());
}
