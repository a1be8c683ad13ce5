//! Every call of an opening and a restart fails, in every way that a file system or an object store
//! knows: the newest checkpoint comes back, or an error says why it does not. Nothing else.

use standfast::{Kind, Level, Version};
use standfast_format::name;
use standfast_testkit::{Fault, FaultyStore, Op};

use crate::world::{KEEP, World, text};

const STEPS: u64 = 4;

/// What callers of a store may meet that proves nothing of what is stored. `Missing` is one of them:
/// the listing has what the call does not find.
const KINDS: [Kind; 9] = [
    Kind::Denied,
    Kind::Exhausted,
    Kind::Transient,
    Kind::Busy,
    Kind::Io,
    Kind::Full,
    Kind::Unsupported,
    Kind::Invalid,
    Kind::Missing,
];

fn store() -> FaultyStore {
    let world = World::new();
    for step in 1..=STEPS {
        world.checkpoint(step).unwrap();
    }
    let store = world.store.clone();
    drop(world);
    store.reset();
    store
}

/// What a sweep has found. The first three must stay 0.
#[derive(Debug, Default, PartialEq, Eq)]
struct Swept {
    wrong_bytes: u64,
    silent_steps_back: u64,
    overwritten: u64,
    faults: u64,
    errors: u64,
}

/// One life under a fault: open, restart; whoever came back goes on and takes a checkpoint.
fn live(fault: &Fault, swept: &mut Swept) {
    let store = store();
    store.inject(fault.clone());
    let restarted = World::open(store.clone()).and_then(|world| {
        let back = world.restart(None)?;
        Ok((world, back))
    });
    swept.faults += u64::from(store.fired() > 0);
    match restarted {
        Ok((world, (version, passed_over))) => {
            let went_back = version != STEPS || !passed_over.is_empty();
            if went_back {
                eprintln!("{fault:?}: {version}, {passed_over:?}");
            }
            swept.silent_steps_back += u64::from(went_back);
            let _ = world.checkpoint(version + 1);
        }
        Err(error) => {
            assert!(!error.to_string().contains("please report"), "{fault:?}: {error}");
            assert_ne!(error.kind(), Kind::Corrupt, "{fault:?}: {error}");
            swept.errors += 1;
        }
    }
    store.reset();
    // The program ends; the next one meets a store that is well again.
    let world = World::open(store).unwrap();
    let offered = world.offered();
    swept.overwritten += u64::from(!offered.contains(&STEPS));
    swept.silent_steps_back += u64::from(offered[0] < STEPS);
    for version in offered {
        let restored = world.restart(Some(version));
        swept.wrong_bytes += u64::from(restored.map_err(text) != Ok((version, vec![])));
    }
}

#[test]
fn no_failure_of_a_call_makes_a_restart_go_back() {
    let counted = store();
    World::open(counted.clone()).unwrap().restart(None).unwrap();
    let mut swept = Swept::default();
    for op in Op::ALL {
        for nth in 0..counted.calls(op) {
            for kind in KINDS {
                live(&Fault::Fail { op, nth, kind }, &mut swept);
            }
            for kind in [Kind::Exhausted, Kind::Io, Kind::Transient] {
                live(&Fault::FailFrom { op, nth, kind }, &mut swept);
            }
        }
    }
    for nth in 0..counted.calls(Op::Read) {
        for bytes in [0, 1, 100, 5000] {
            live(&Fault::TearRead { nth, bytes }, &mut swept);
        }
    }
    eprintln!("{swept:?}");
    assert!(swept.faults > 300 && swept.errors > 200, "the case is too simple: {swept:?}");
    let Swept { wrong_bytes, silent_steps_back, overwritten, .. } = swept;
    assert_eq!((wrong_bytes, silent_steps_back, overwritten), (0, 0, 0), "{swept:?}");
}

/// A medium that has lost its bytes is damage: then the one before serves, and it is told.
#[test]
fn a_medium_that_fails_for_good_is_passed_over_and_told() {
    let counted = store();
    let world = World::open(counted.clone()).unwrap();
    let opened = counted.calls(Op::Read);
    world.restart(None).unwrap();
    let mut stepped = 0;
    for nth in opened..counted.calls(Op::Read) {
        let store = store();
        let world = World::open(store.clone()).unwrap();
        store.inject(Fault::Fail { op: Op::Read, nth, kind: Kind::Corrupt });
        let (version, passed_over) = world.restart(None).unwrap();
        assert_eq!((version, passed_over.len()), (STEPS - 1, 1), "read {nth}");
        stepped += 1;
    }
    assert!(stepped > 2, "only {stepped} reads");
}

/// The message names the manifest, the reason and the way on; and the way works.
#[test]
fn an_unread_manifest_is_named_with_the_way_back() {
    let store = store();
    let deny = |version: u64| {
        let object = name::manifest(Version(version), Level::Local);
        store.reset();
        store.inject(Fault::Deny { object, kind: Kind::Denied });
    };
    // Nobody knows whether one that cannot be read is the newest.
    for version in STEPS + 1 - KEEP..=STEPS {
        deny(version);
        let world = World::open(store.clone()).map_err(text).unwrap();
        let error = world.restart(None).unwrap_err();
        assert_eq!(error.kind(), Kind::Denied, "{error}");
        let unread = format!("v{version:010}.local cannot be read");
        assert!(error.to_string().contains(&unread), "{error}");
        store.reset();
        assert_eq!(world.restart(None).map_err(text), Ok((STEPS, vec![])), "it has passed");
    }
    deny(STEPS);
    let world = World::open(store.clone()).map_err(text).unwrap();
    let error = world.restart(None).unwrap_err().to_string();
    assert!(error.contains(&format!("v{STEPS:010}.local cannot be read")), "{error}");
    assert!(error.contains(&format!("--restart {}", STEPS - 1)), "{error}");
    assert_eq!(world.restart(Some(STEPS - 1)).map_err(text), Ok((STEPS - 1, vec![])));
}
