use standfast_format::Kind;

use super::super::ObjectStore;
use super::*;
use crate::contract::Store;

fn lease(time_ms: u64, beat_ms: u64) -> ObjectStore {
    let lease =
        Lease { time: Duration::from_millis(time_ms), beat: Duration::from_millis(beat_ms) };
    ObjectStore::in_memory().unwrap().with_lease(lease)
}

/// As if its holder had been killed.
fn orphan(store: &ObjectStore, lock: Lock) {
    let held = store.lock(lock).unwrap();
    let copy = store.service.list("").unwrap();
    let texts: Vec<_> = copy
        .iter()
        .map(|object| holder_of(&store.service, &object.name).unwrap().unwrap())
        .collect();
    drop(held);
    for (object, text) in copy.iter().zip(texts) {
        store.service.put(&object.name, text, PutMode::Overwrite).unwrap();
    }
}

#[test]
fn a_lock_outlives_its_killed_holder_for_a_while_only() {
    for (left, wanted) in [
        (Lock::Writer, Lock::Writer),
        (Lock::ReadShared, Lock::ReadExclusive),
        (Lock::ReadExclusive, Lock::ReadShared),
        (Lock::Keep(3), Lock::Drop(3)),
    ] {
        let store = lease(300, 50);
        orphan(&store, left);
        let refused = store.lock(wanted).unwrap_err();
        assert_eq!(refused.kind(), Kind::Busy, "{left}: {refused}");
        std::thread::sleep(Duration::from_millis(400));
        drop(store.lock(wanted).expect("left behind"));
        assert!(store.service.list("").unwrap().is_empty(), "{left}: all gone");
    }
}

#[test]
fn a_living_holder_keeps_its_lock() {
    let store = lease(400, 40);
    let held = store.lock(Lock::Writer).unwrap();
    let reading = store.lock(Lock::ReadShared).unwrap();
    std::thread::sleep(Duration::from_millis(1000));
    assert_eq!(store.lock(Lock::Writer).unwrap_err().kind(), Kind::Busy);
    assert_eq!(store.lock(Lock::ReadExclusive).unwrap_err().kind(), Kind::Busy);
    drop((held, reading));
    drop(store.lock(Lock::Writer).unwrap());
    drop(store.lock(Lock::ReadExclusive).unwrap());
}
