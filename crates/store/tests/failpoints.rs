//! Every durable step fails once: the old object or the new one is there, whole, and nothing
//! else; the space comes back; later operations work.

#![cfg(feature = "failpoints")]

use std::path::Path;

use standfast_format::Kind;
use standfast_store::{DirStore, FAILPOINTS, Lock, Options, Result, Store};
use tempfile::TempDir;

const OLD: &[u8] = b"old";

fn write(store: &DirStore, bytes: &[u8]) -> Result<()> {
    let mut writer = store.create("segments/1", None)?;
    writer.append(bytes)?;
    writer.seal().map(drop)
}

/// The ways an object comes and goes, and whether a point lies on that way.
type Way = (&'static str, fn(&DirStore, &[u8]) -> Result<()>, fn(&str) -> bool);

const WAYS: [Way; 3] = [
    ("seal", write, |point| !point.starts_with("store.remove")),
    ("put", |store, bytes| store.put("segments/1", bytes), |p| !p.starts_with("store.remove")),
    ("remove", |store, _| store.remove("segments/1"), |point| point.starts_with("store.remove")),
];

fn part_files(dir: &Path) -> usize {
    let entries = std::fs::read_dir(dir.join("segments")).unwrap();
    entries.filter(|e| e.as_ref().unwrap().path().extension().is_some_and(|e| e == "part")).count()
}

/// All in one test: failpoints are the process's.
#[test]
fn each_step_may_fail() {
    let scenario = fail::FailScenario::setup();
    for (way, run, passes) in WAYS {
        for point in FAILPOINTS.iter().filter(|point| passes(point)) {
            for (action, kind) in [("return", Kind::Io), ("return(ENOSPC)", Kind::Full)] {
                let dir = TempDir::new_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
                let store = DirStore::open(dir.path(), &Options::default()).unwrap();
                store.put("segments/1", OLD).unwrap();
                let new = vec![7; (5 << 20) + 123];
                fail::cfg(*point, action).unwrap();
                let error = run(&store, &new).expect_err("the point is on the way");
                fail::remove(point);
                let told = format!("{way} at {point}: {error}");
                assert_eq!(error.kind(), kind, "{told}");
                assert!(error.to_string().contains("segments/1"), "{told}");
                assert_eq!(part_files(dir.path()), 0, "{told}");
                match store.get("segments/1", u64::MAX) {
                    Ok(bytes) => {
                        assert!(bytes == OLD || bytes == new, "{told}: neither old nor new")
                    }
                    Err(error) => {
                        assert!(way == "remove" && error.kind() == Kind::Missing, "{told}")
                    }
                }
                write(&store, &new).expect("works again");
                assert!(store.get("segments/1", u64::MAX).unwrap() == new, "{told}");
                drop(store.lock(Lock::Writer).unwrap());
            }
        }
    }
    scenario.teardown();
}
