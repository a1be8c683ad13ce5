use super::*;
use standfast_store::MemoryStore;

#[test]
fn a_mark_is_of_one_attempt_until_it_is_cleared() {
    let store = MemoryStore::new();
    let (version, attempt, other) = (Version(3), AttemptId([3; 8]), AttemptId([4; 8]));
    assert_eq!(find(&store, version, attempt), None);
    put(&store, version, attempt, "page 7").unwrap();
    assert_eq!(find(&store, version, attempt).as_deref(), Some("page 7"));
    assert_eq!(find(&store, version, other), None);
    assert_eq!(attempts(&store.list("").unwrap()), BTreeSet::from([attempt]));
    assert!(clear(&store, version, attempt).unwrap());
    assert!(!clear(&store, version, attempt).unwrap());
}

#[test]
fn whatever_lies_there_is_a_mark() {
    let store = MemoryStore::new();
    let (version, attempt) = (Version(3), AttemptId([3; 8]));
    put(&store, version, attempt, &"ä".repeat(TEXT_BYTES_MAX)).unwrap();
    assert_eq!(find(&store, version, attempt).unwrap().len(), TEXT_BYTES_MAX);
    for bytes in [&b""[..], b"\xff\xfe", &[b'x'; TEXT_BYTES_MAX + 1]] {
        store.put(&name::mark(version, attempt), bytes).unwrap();
        assert!(find(&store, version, attempt).is_some());
    }
}
