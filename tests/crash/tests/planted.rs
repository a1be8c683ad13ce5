//! The checker is proved: each planted bug of a store must be found, and none without a bug.
//!
//! The bugs are what a wrong order of commits or a forgotten sync would do: they live in a store
//! that says "durable" and is not. The crash is simulated by leaving the program alone and
//! looking at what has reached the medium below.

use std::sync::{Arc, Mutex};

use standfast::Level;
use standfast_crash_tests::checker::{Checked, check};
use standfast_crash_tests::program::{Program, Setup};
use standfast_crash_tests::report::Facts;
use standfast_store::{
    Lock, LockGuard, MemoryStore, ObjectMeta, ObjectReader, ObjectWriter, Result, Store,
};

/// What is wrong with a store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Bug {
    /// Nothing.
    None,
    /// Segments reach the medium only after a later object: manifests come before them.
    SegmentsLate,
    /// Images are acknowledged and never written.
    ImagesDropped,
    /// Manifests are acknowledged and never written.
    ManifestsDropped,
    /// The last bytes of segments are missing.
    SegmentsShort,
    /// Removing a manifest takes no effect.
    ManifestsStay,
}

/// Names and bytes.
type Objects = Vec<(String, Vec<u8>)>;

/// A store with a bug above a sound medium.
#[derive(Clone, Debug)]
struct Planted {
    medium: MemoryStore,
    bug: Bug,
    /// Segments on their way, for a process that dies before they arrive.
    late: Arc<Mutex<Objects>>,
}

impl Planted {
    fn write(&self, name: &str, bytes: &[u8]) -> Result<()> {
        let segment = name.starts_with("segments/");
        if segment {
            // What was on its way arrives with the next segment: too late for its manifest.
            let arrived = std::mem::take(&mut *self.late.lock().unwrap());
            arrived.iter().try_for_each(|(name, bytes)| self.medium.put(name, bytes))?;
        }
        match self.bug {
            Bug::SegmentsLate if segment => {
                self.late.lock().unwrap().push((name.into(), bytes.into()));
                Ok(())
            }
            Bug::ImagesDropped if name.starts_with("images/") => Ok(()),
            Bug::ManifestsDropped if name.starts_with("manifests/") => Ok(()),
            Bug::SegmentsShort if segment => self.medium.put(name, &bytes[..bytes.len() - 9]),
            _ => self.medium.put(name, bytes),
        }
    }
}

struct Writer(Planted, String, Vec<u8>);

impl ObjectWriter for Writer {
    fn append(&mut self, bytes: &[u8]) -> Result<()> {
        self.2.extend_from_slice(bytes);
        Ok(())
    }

    fn written(&self) -> u64 {
        self.2.len() as u64
    }

    fn seal(self: Box<Self>) -> Result<u64> {
        self.0.write(&self.1, &self.2)?;
        Ok(self.written())
    }
}

impl Store for Planted {
    fn describe(&self) -> String {
        format!("planted {:?}", self.bug)
    }

    fn create(&self, name: &str, _: Option<u64>) -> Result<Box<dyn ObjectWriter>> {
        Ok(Box::new(Writer(self.clone(), name.into(), Vec::new())))
    }

    fn put(&self, name: &str, bytes: &[u8]) -> Result<()> {
        self.write(name, bytes)
    }

    fn put_new(&self, name: &str, bytes: &[u8]) -> Result<()> {
        self.medium.put_new(name, bytes)
    }

    fn open(&self, name: &str) -> Result<Box<dyn ObjectReader>> {
        self.medium.open(name)
    }

    fn list(&self, prefix: &str) -> Result<Vec<ObjectMeta>> {
        self.medium.list(prefix)
    }

    fn remove(&self, name: &str) -> Result<()> {
        let stays = self.bug == Bug::ManifestsStay && name.starts_with("manifests/");
        if stays { Ok(()) } else { self.medium.remove(name) }
    }

    fn discard_unsealed(&self) -> Result<u64> {
        self.medium.discard_unsealed()
    }

    fn lock(&self, lock: Lock) -> Result<LockGuard> {
        self.medium.lock(lock)
    }

    fn free_bytes(&self) -> Result<Option<u64>> {
        self.medium.free_bytes()
    }
}

/// A first life on a store with a bug, and what the checker says of the medium afterwards.
fn live_and_check(bug: Bug) -> Checked {
    const STEPS: u64 = 4;
    let setup = Setup { dir: "unused", seed: 1, threads: 1 };
    let medium = MemoryStore::new();
    let store = Planted { medium: medium.clone(), bug, late: Arc::default() };
    let program = Program::open_store(&setup, Arc::new(store)).unwrap();
    for step in 1..=STEPS {
        program.go_to(step);
        let version = program.job.checkpoint(None).unwrap();
        program.job.wait(version, Level::Local).unwrap();
    }
    // Its death: the lock goes, nothing else happens.
    drop(program);
    check(&setup, Arc::new(medium), Facts { durable: STEPS, begun: STEPS })
}

#[test]
fn a_sound_store_has_no_findings() {
    assert_eq!(live_and_check(Bug::None).findings, Vec::<String>::new());
}

#[test]
fn every_planted_bug_is_found() {
    let bugs = [
        (Bug::SegmentsLate, "is lost"),
        (Bug::ImagesDropped, "is lost"),
        (Bug::ManifestsDropped, "the newest checkpoint is 0"),
        (Bug::SegmentsShort, "is lost"),
        (Bug::ManifestsStay, "are offered"),
    ];
    for (bug, word) in bugs {
        let findings = live_and_check(bug).findings;
        let found = findings.iter().any(|finding| finding.contains(word));
        assert!(found, "{bug:?} was not found: {findings:?}");
    }
}

/// The checker must also see through a program that claims more than happened.
#[test]
fn a_false_acknowledgement_is_found() {
    let setup = Setup { dir: "unused", seed: 1, threads: 1 };
    let medium = MemoryStore::new();
    let program = Program::open_store(&setup, Arc::new(medium.clone())).unwrap();
    program.go_to(1);
    let version = program.job.checkpoint(None).unwrap();
    program.job.wait(version, Level::Local).unwrap();
    drop(program);
    let checked = check(&setup, Arc::new(medium), Facts { durable: 2, begun: 2 });
    assert!(!checked.findings.is_empty());
}
