//! A job on a faulty store in memory, with contents that follow from the step.

use std::collections::{BTreeMap, HashSet};
use std::sync::{Arc, Mutex};

use standfast::config::Loaded;
use standfast::{Error, Job, Level, Protected, Rank, Result, Version};
use standfast_format::name;
use standfast_restart::Inventory;
use standfast_store::{MemoryStore, Store};
use standfast_testkit::FaultyStore;

pub(crate) const KEEP: u64 = 3;
const PAGE: usize = 512;
const GROUP: usize = 16;
const TAIL: usize = 5000;

/// The job, its regions, and the store below it.
pub(crate) struct World {
    pub(crate) store: FaultyStore,
    pub(crate) job: Job,
    field: Protected<u64>,
    tail: Protected<u8>,
}

pub(crate) fn settings() -> Loaded {
    let keep = KEEP.to_string();
    let settings = [
        ("job", "faults"),
        ("keep", &keep),
        ("lab.threads", "1"),
        ("lab.block", "16KiB"),
        ("lab.segment", "64KiB"),
        ("lab.pool", "64KiB"),
    ];
    Loaded::load(&settings.map(|(name, text)| (name.into(), text.into()))).unwrap()
}

impl World {
    pub(crate) fn new() -> Self {
        Self::open(FaultyStore::new(Arc::new(MemoryStore::new()))).unwrap()
    }

    pub(crate) fn open(store: FaultyStore) -> Result<Self> {
        let job = Job::open_store(settings(), Arc::new(store.clone()))?;
        let field = job.alloc("field", 4 * GROUP * PAGE)?;
        let tail = job.alloc("tail", TAIL)?;
        Ok(Self { store, job, field, tail })
    }

    /// The end of this process and the start of the next.
    pub(crate) fn reopen(self) -> Result<Self> {
        let store = self.store.clone();
        drop(self);
        Self::open(store)
    }

    /// Takes the checkpoint of a step and waits until it is durable.
    pub(crate) fn checkpoint(&self, step: u64) -> Result<Version> {
        self.field.write().copy_from_slice(&field(step));
        self.tail.write().fill(step as u8);
        let version = self.job.checkpoint(Some(Version(step)))?;
        self.job.wait(version, Level::Local)?;
        Ok(version)
    }

    /// Restarts and tells which step the memory holds now; panics if it is none.
    pub(crate) fn restart(&self, version: Option<u64>) -> Result<(u64, Vec<(String, String)>)> {
        self.field.write().fill(u64::MAX);
        self.tail.write().fill(0xff);
        let restarted = match version {
            Some(version) => self.job.restart_from(Version(version))?,
            None => match self.job.restart()? {
                Some(restarted) => restarted,
                None => return Ok((0, Vec::new())),
            },
        };
        let step = restarted.version.0;
        assert!(self.field.read()[..] == field(step), "checkpoint {step} gave wrong bytes");
        assert!(self.tail.read().iter().all(|byte| *byte == step as u8), "checkpoint {step}");
        Ok((step, restarted.skipped))
    }

    /// The versions on offer, newest first.
    pub(crate) fn offered(&self) -> Vec<u64> {
        self.job.list().iter().map(|manifest| manifest.version.0).collect()
    }

    /// Every version on offer restores to its step.
    pub(crate) fn assert_all_restore(&self, context: &str) {
        for version in self.offered() {
            let restored = self.restart(Some(version));
            assert_eq!(restored.map_err(text), Ok((version, vec![])), "{context}");
        }
    }

    /// Objects with their bytes.
    pub(crate) fn store_objects(&self, prefix: &str) -> Vec<(String, Vec<u8>)> {
        let names = self.store.list(prefix).unwrap().into_iter().map(|object| object.name);
        names.map(|name| (name.clone(), self.store.get(&name, u64::MAX).unwrap())).collect()
    }

    /// No object belongs to no checkpoint.
    pub(crate) fn assert_no_leftovers(&self, context: &str) {
        let inventory = Inventory::read(&self.store).unwrap();
        assert!(inventory.damaged.is_empty(), "{context}: {:?}", inventory.damaged);
        let mut known = HashSet::from(name::HEADERS.map(str::to_owned));
        known.insert(name::HISTORY.to_owned());
        for manifest in &inventory.checkpoints {
            known.insert(name::manifest(manifest.version, Level::Local));
            known.insert(name::manifest_of(manifest.version, manifest.attempt, Level::Local));
            known.insert(name::image(manifest.version, manifest.attempt, Rank(0)));
            known.extend(manifest.segments.iter().map(|segment| name::segment(segment.id)));
        }
        let objects = self.store.list("").unwrap();
        let mut left = objects.iter().filter(|object| !known.contains(&object.name));
        assert_eq!(left.next(), None, "{context}: a leftover");
    }
}

pub(crate) fn text(error: Error) -> String {
    error.to_string()
}

/// Four groups of pages: constant, new in every step, alternating, and one that from step 6 on
/// returns to what it was four steps before, which has been pruned by then.
fn field(step: u64) -> Vec<u64> {
    let seeds = [0, step, step % 2, if step > 5 { step - 4 } else { step }];
    let groups = seeds.iter().zip(1u64..);
    groups.flat_map(|(seed, group)| noise(seed * 16 + group)).copied().collect()
}

/// Pages that do not compress, all different; made once, for making them takes longest.
fn noise(seed: u64) -> &'static [u64] {
    static MADE: Mutex<BTreeMap<u64, &'static [u64]>> = Mutex::new(BTreeMap::new());
    let mut made = MADE.lock().unwrap();
    made.entry(seed).or_insert_with(|| {
        let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
        let next = |_| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            state
        };
        Vec::leak((0..GROUP * PAGE).map(next).collect())
    })
}
