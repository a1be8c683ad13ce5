//! Each fault is really injected, does what it says, and nothing else.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::{Duration, Instant};

use standfast_conformance::store as conformance;
use standfast_format::Kind;
use standfast_store::{DirStore, Lock, MemoryStore, Options, Result, Store};
use standfast_testkit::{Fault, FaultyStore, Op};

fn faulty() -> FaultyStore {
    FaultyStore::new(Arc::new(MemoryStore::new()))
}

#[track_caller]
fn kind<T>(result: Result<T>) -> Kind {
    result.err().expect("must fail").kind()
}

fn write(store: &dyn Store, name: &str, bytes: &[u8]) -> Result<u64> {
    let mut writer = store.create(name, None)?;
    for piece in bytes.chunks(10) {
        writer.append(piece)?;
    }
    writer.seal()
}

/// One call of each sort, by itself.
fn call(store: &dyn Store, op: Op) -> Result<()> {
    match op {
        Op::Create => store.create("new", None).map(drop),
        Op::Append => store.create("new", None)?.append(b"x"),
        Op::Seal => store.create("new", None)?.seal().map(drop),
        Op::Put => store.put("new", b"x"),
        Op::PutNew => store.put_new("new", b"x"),
        Op::Open => store.open("old").map(drop),
        Op::Read => store.open("old")?.read_at(0, &mut [0; 3]).map(drop),
        Op::List => store.list("").map(drop),
        Op::Remove => store.remove("old"),
        Op::DiscardUnsealed => store.discard_unsealed().map(drop),
        Op::Lock => store.lock(Lock::Writer).map(drop),
    }
}

#[test]
fn without_faults_it_is_a_store() {
    conformance::run(|| Arc::new(faulty()));
    let base = tempfile::tempdir().unwrap();
    let next = std::sync::atomic::AtomicU64::new(0);
    conformance::run(|| {
        let number = next.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        let dir = DirStore::open(base.path().join(number.to_string()), &Options::default());
        Arc::new(FaultyStore::new(Arc::new(dir.unwrap())))
    });
}

#[test]
fn any_call_can_fail_with_any_kind() {
    for op in Op::ALL {
        for wanted in [Kind::Io, Kind::Full, Kind::Transient, Kind::Denied] {
            let store = faulty();
            store.put("old", b"old").unwrap();
            let nth = store.calls(op);
            store.inject(Fault::Fail { op, nth, kind: wanted });
            let error = call(&store, op).expect_err("the first one fails");
            assert_eq!(error.kind(), wanted, "{op:?}");
            assert!(error.to_string().contains("injected"), "{error}");
            assert_eq!(store.fired(), 1, "{op:?}");
            let left: Vec<String> = store.list("").unwrap().into_iter().map(|o| o.name).collect();
            assert_eq!(left, ["old"], "{op:?} did nothing");
            call(&store, op).expect("the second one works");
        }
    }
}

#[test]
fn from_then_on_means_for_ever() {
    let store = faulty();
    store.inject(Fault::FailFrom { op: Op::Put, nth: 2, kind: Kind::Io });
    let results: Vec<bool> = (0..5).map(|_| store.put("a", b"x").is_ok()).collect();
    assert_eq!(results, [true, true, false, false, false]);
}

#[test]
fn a_lost_answer_has_done_its_work() {
    let store = faulty();
    store.inject(Fault::FailAfter { op: Op::Seal, nth: 0, kind: Kind::Transient });
    store.inject(Fault::FailAfter { op: Op::Remove, nth: 0, kind: Kind::Transient });
    assert_eq!(kind(write(&store, "a", b"there")), Kind::Transient);
    assert_eq!(store.get("a", 10).unwrap(), b"there");
    assert_eq!(kind(store.remove("a")), Kind::Transient);
    assert_eq!(kind(store.remove("a")), Kind::Missing);
}

#[test]
fn a_torn_append_ends_the_writer() {
    let store = faulty();
    store.inject(Fault::TearAppend { nth: 1, bytes: 4, kind: Kind::Io });
    let mut writer = store.create("a", None).unwrap();
    writer.append(b"0123456789").unwrap();
    assert_eq!(kind(writer.append(b"0123456789")), Kind::Io);
    assert_eq!(writer.written(), 14);
    assert_eq!(kind(writer.append(b"more")), Kind::Io);
    assert_eq!(kind(writer.seal()), Kind::Io);
    assert!(store.list("").unwrap().is_empty());
    assert_eq!(store.fired(), 1);
}

#[test]
fn a_full_store_stays_full_until_reset() {
    let store = faulty();
    store.inject(Fault::FullAfter { bytes: 25 });
    assert_eq!(store.free_bytes().unwrap(), Some(25));
    store.put("a", &[1; 10]).unwrap();
    assert_eq!(kind(write(&store, "b", &[1; 20])), Kind::Full);
    assert_eq!(store.free_bytes().unwrap(), Some(0));
    assert_eq!(kind(store.put("c", &[1])), Kind::Full);
    assert_eq!(store.list("").unwrap().len(), 1);
    store.reset();
    write(&store, "b", &[1; 20]).unwrap();
}

#[test]
fn a_flipped_bit_reads_flipped_from_every_side() {
    let store = faulty();
    store.put("a", &[0; 100]).unwrap();
    store.put("b", &[0; 100]).unwrap();
    store.inject(Fault::FlipBit { object: "a".into(), offset: 50, bit: 3 });
    let reader = store.open("a").unwrap();
    for start in [0, 40, 50, 51] {
        let mut buf = [0; 30];
        reader.read_at(start, &mut buf).unwrap();
        let expected: Vec<u8> =
            (start..start + 30).map(|at| if at == 50 { 8 } else { 0 }).collect();
        assert_eq!(buf[..], expected, "from {start}");
    }
    assert_eq!(store.get("b", 100).unwrap(), [0; 100]);
    assert_eq!(store.fired(), 2);
    store.reset();
    assert_eq!(store.get("a", 100).unwrap(), [0; 100]);
}

#[test]
fn a_truncated_object_is_short_everywhere() {
    let store = faulty();
    store.put("a", b"0123456789").unwrap();
    store.inject(Fault::Truncate { object: "a".into(), bytes: 4 });
    assert_eq!(store.get("a", 100).unwrap(), b"0123");
    assert_eq!(store.open("a").unwrap().bytes(), 4);
    assert_eq!(store.list("").unwrap()[0].bytes, 4);
    assert_eq!(store.open("a").unwrap().read_at(6, &mut [0; 4]).unwrap(), 0);
}

#[test]
fn a_hidden_object_is_missing_everywhere() {
    let store = faulty();
    store.put("a", b"x").unwrap();
    store.inject(Fault::Hide { object: "a".into() });
    assert_eq!(kind(store.open("a")), Kind::Missing);
    assert_eq!(kind(store.get("a", 9)), Kind::Missing);
    assert_eq!(kind(store.remove("a")), Kind::Missing);
    assert!(store.list("").unwrap().is_empty());
    store.reset();
    assert_eq!(store.get("a", 9).unwrap(), b"x");
}

#[test]
fn swapped_objects_have_each_others_bytes() {
    let store = faulty();
    store.put("a", b"of a").unwrap();
    store.put("b", b"of b, longer").unwrap();
    store.inject(Fault::Swap { a: "a".into(), b: "b".into() });
    assert_eq!(store.get("a", 99).unwrap(), b"of b, longer");
    assert_eq!(store.get("b", 99).unwrap(), b"of a");
    assert_eq!(store.list("").unwrap()[0].bytes, 12);
}

#[test]
fn delays_only_cost_time() {
    let store = faulty();
    let by = Duration::from_millis(30);
    store.inject(Fault::Delay { op: Op::Append, by });
    let start = Instant::now();
    write(&store, "a", &[1; 30]).unwrap();
    assert!(start.elapsed() >= 3 * by);
    assert_eq!(store.get("a", 99).unwrap(), [1; 30]);
    assert_eq!(store.fired(), 3);
}

#[test]
fn seeds_repeat_and_reach_every_damage() {
    let store = faulty();
    for (name, bytes) in [("a", 10), ("b", 0), ("c", 5000)] {
        store.put(name, &vec![1; bytes]).unwrap();
    }
    let objects = store.list("").unwrap();
    let mut sorts = HashSet::new();
    for seed in 0..200 {
        let fault = Fault::damage(seed, &objects).unwrap();
        assert_eq!(Some(&fault), Fault::damage(seed, &objects).as_ref());
        sorts.insert(std::mem::discriminant(&fault));
        store.inject(fault);
        let before = store.fired();
        for object in ["a", "b", "c"] {
            let _ = store.get(object, 10_000);
        }
        assert!(store.fired() > before, "seed {seed} did nothing");
        store.reset();
    }
    assert_eq!(sorts.len(), 4);
    assert_eq!(Fault::damage(1, &[]), None);
}
