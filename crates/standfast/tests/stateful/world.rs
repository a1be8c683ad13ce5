//! The job, the memory it protects, and the model of what must come back.

use std::collections::BTreeMap;
use std::sync::Arc;

use standfast::config::Loaded;
use standfast::{Job, Kind, Level, Version};
use standfast_store::MemoryStore;

use crate::{Action, LARGE_BYTES, NAMES, Settings};

/// Contents of all regions by name.
type Contents = BTreeMap<&'static str, Vec<u8>>;

/// A committed checkpoint.
#[derive(Clone)]
struct Taken {
    version: u64,
    contents: Contents,
    /// Its place in the order of commits.
    place: usize,
    /// Places that its run, or one that this run went on from, has left behind.
    abandoned: Vec<usize>,
}

/// The job, the memory it protects, and what must be in the store.
pub(crate) struct World {
    store: MemoryStore,
    job: Option<Job>,
    keep: usize,
    /// The protected memory. A region's buffer is never moved while it is protected. Region
    /// "twin" has the length of "large" and exchanges memory with it.
    memory: BTreeMap<&'static str, Vec<u8>>,
    /// Committed checkpoints, newest first.
    model: Vec<Taken>,
    /// Places that the next checkpoint leaves behind, where a run went back.
    leaves: Option<Vec<usize>>,
}

impl World {
    pub(crate) fn new(settings: Settings) -> Self {
        let lens = [("large", LARGE_BYTES), ("twin", LARGE_BYTES), ("small", 4096), ("odd", 777)];
        let memory = lens.into_iter().map(|(name, len)| (name, vec![0; len])).collect();
        let store = MemoryStore::new();
        let mut world = Self { store, job: None, keep: 0, memory, model: Vec::new(), leaves: None };
        world.open(settings);
        world
    }

    fn job(&self) -> &Job {
        self.job.as_ref().expect("open")
    }

    fn open(&mut self, settings: Settings) {
        (self.job, self.leaves) = (None, None);
        let Settings { hash, codec, page, mode, track, capture, keep } = settings;
        let keep_text = if keep == 0 { "all".into() } else { keep.to_string() };
        let settings = [
            ("job", "stateful"),
            ("lab.hash", hash),
            ("codec", codec),
            ("lab.page", page),
            ("lab.mode", mode),
            ("lab.track", track),
            ("capture", capture),
            ("memory", "2MiB"),
            ("keep", &keep_text),
            ("lab.block", "64KiB"),
            ("lab.pool", "256KiB"),
            ("lab.segment", "256KiB"),
            ("lab.threads", "2"),
        ];
        let loaded = Loaded::load(&settings.map(|(name, text)| (name.into(), text.into())));
        self.job = Some(Job::open_store(loaded.unwrap(), Arc::new(self.store.clone())).unwrap());
        self.keep = keep;
        let names: Vec<&'static str> = self.memory.keys().copied().collect();
        names.into_iter().for_each(|name| self.protect(name));
    }

    fn protect(&mut self, name: &'static str) {
        let memory = self.memory.get_mut(name).unwrap();
        let (start, bytes) = (memory.as_mut_ptr(), memory.len());
        let job = self.job.as_ref().expect("open");
        // SAFETY: the buffer lives in `self.memory` and is replaced only after `unprotect`; the
        // one thread of this test writes to it between the library's calls only.
        unsafe { job.protect(name, start, bytes, 8).unwrap() };
    }

    /// What the newest checkpoint has left behind.
    fn abandoned(&self) -> Vec<usize> {
        self.model.first().map(|newest| newest.abandoned.clone()).unwrap_or_default()
    }

    fn checkpoint(&mut self, version: Option<u64>, wait: bool) {
        let newest = self.model.iter().map(|taken| taken.version + 1).max();
        let expected = version.unwrap_or_else(|| newest.unwrap_or(1));
        let taken = self.job().checkpoint(version.map(Version)).unwrap();
        assert_eq!(taken.0, expected);
        if wait {
            self.job().wait(taken, Level::Local).unwrap();
        }
        let abandoned = self.leaves.take().unwrap_or_else(|| self.abandoned());
        let is_left = |taken: &Taken| abandoned.contains(&taken.place);
        // Only its own line is replaced and pruned.
        self.model.retain(|taken| taken.version != expected || is_left(taken));
        let (mut kept, most) = (1, if self.keep == 0 { usize::MAX } else { self.keep });
        self.model.retain(|taken| {
            kept += usize::from(!is_left(taken));
            kept <= most || is_left(taken)
        });
        let place = self.model.iter().map(|taken| taken.place + 1).max().unwrap_or(0);
        let contents = self.memory.clone();
        self.model.insert(0, Taken { version: expected, contents, place, abandoned });
    }

    /// One of the checkpoints there are; `None` if there is none. Of those that share a version it is
    /// the one that was not left behind.
    fn pick(&self, pick: usize) -> Option<Taken> {
        let version = self.model.get(pick % self.model.len().max(1))?.version;
        let abandoned = self.abandoned();
        let mut same: Vec<&Taken> =
            self.model.iter().filter(|taken| taken.version == version).collect();
        same.sort_by_key(|taken| abandoned.contains(&taken.place));
        Some(same[0].clone())
    }

    /// The newest that was not left behind.
    fn newest(&self) -> Option<Taken> {
        let abandoned = self.abandoned();
        self.model.iter().find(|taken| !abandoned.contains(&taken.place)).cloned()
    }

    fn restart(&mut self, pick: Option<usize>) {
        let wanted = pick.map_or_else(|| self.newest(), |pick| self.pick(pick));
        let version = wanted.as_ref().filter(|_| pick.is_some()).map(|taken| taken.version);
        let outcome = match version {
            Some(version) => self.job().restart_from(Version(version)).map(Some),
            None => self.job().restart(),
        };
        let Some(Taken { version, contents, place, mut abandoned }) = wanted else {
            return assert!(outcome.unwrap().is_none());
        };
        let fits = contents.iter().all(|(name, bytes)| self.memory[name].len() == bytes.len());
        if !fits {
            return assert_eq!(outcome.unwrap_err().kind(), Kind::Invalid);
        }
        assert_eq!(outcome.unwrap().unwrap().version.0, version);
        assert!(self.memory == contents, "restart of {version} gave something else");
        abandoned.extend(self.model.iter().map(|taken| taken.place).filter(|one| *one > place));
        self.leaves = Some(abandoned);
    }

    fn recover(&self, region: usize, pick: usize) {
        let Some(Taken { version, contents, .. }) = self.pick(pick) else { return };
        let (version, expected) = (Version(version), &contents[NAMES[region]]);
        let bytes = self.job().region_bytes(version, NAMES[region]).unwrap();
        assert_eq!(bytes, expected.len() as u64);
        let mut buf = vec![0xaa; expected.len()];
        self.job().read_region(version, NAMES[region], &mut buf).unwrap();
        assert!(buf == *expected, "recovery of {version} gave something else");
    }

    fn resize(&mut self, name: &'static str, bytes: usize) {
        self.job().unprotect(name).unwrap();
        self.memory.get_mut(name).unwrap().resize(bytes, 7);
        self.protect(name);
    }

    fn renew(&mut self, name: &'static str, byte: u8) {
        self.job().unprotect(name).unwrap();
        let bytes = self.memory.insert(name, Vec::new()).unwrap().len();
        self.memory.insert(name, vec![byte; bytes]);
        self.protect(name);
    }

    fn exchange(&mut self) {
        for name in ["large", "twin"] {
            self.job().unprotect(name).unwrap();
        }
        let large = std::mem::take(self.memory.get_mut("large").unwrap());
        let twin = self.memory.insert("twin", large).unwrap();
        self.memory.insert("large", twin);
        for name in ["large", "twin"] {
            self.protect(name);
        }
    }

    pub(crate) fn write(&mut self, region: usize, stretches: u8, bytes: usize, seed: u64) {
        let memory = self.memory.get_mut(NAMES[region]).unwrap();
        let mut state = seed | 1;
        let mut next = move || {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            state as usize
        };
        for _ in 0..stretches {
            let from = next() % memory.len().max(1);
            let stretch = memory[from..].iter_mut().take(bytes);
            // Few different values: equal pages are wanted.
            let (first, step) = (next() % 3, next() % 3);
            stretch.zip(0..).for_each(|(byte, at): (_, usize)| *byte = (first + step * at) as u8);
        }
    }

    fn write_old(&mut self, region: usize, pick: usize) {
        let Some(Taken { contents, .. }) = self.pick(pick) else { return };
        let old = contents[NAMES[region]].clone();
        let memory = self.memory.get_mut(NAMES[region]).unwrap();
        memory.iter_mut().zip(old).for_each(|(byte, old)| *byte = old);
    }

    pub(crate) fn act(&mut self, action: &Action) {
        match *action {
            Action::Write { region, stretches, bytes, seed } => {
                self.write(region, stretches, bytes, seed);
            }
            Action::WriteOld { region, pick } => self.write_old(region, pick),
            Action::Zero { region } => self.memory.get_mut(NAMES[region]).unwrap().fill(0),
            Action::Resize { region, bytes } => self.resize(NAMES[region], bytes),
            Action::Exchange => self.exchange(),
            Action::Renew { region, byte } => self.renew(NAMES[region], byte),
            Action::Checkpoint { version, wait } => self.checkpoint(version, wait),
            Action::Restart { pick } => self.restart(pick),
            Action::Recover { region, pick } => self.recover(region, pick),
            Action::Reopen { settings } => self.open(settings),
        }
        let listed: Vec<u64> = self.job().list().iter().map(|m| m.version.0).collect();
        let expected: Vec<u64> = self.model.iter().map(|taken| taken.version).collect();
        assert_eq!(listed, expected, "after {action:?}");
    }

    /// At the end everything that is there comes back.
    pub(crate) fn finish(mut self) {
        for pick in 0..self.model.len() {
            self.resize_to(pick);
            self.restart(Some(pick));
        }
    }

    fn resize_to(&mut self, pick: usize) {
        for name in ["small", "odd"] {
            let bytes = self.pick(pick).expect("there").contents[name].len();
            self.resize(name, bytes);
        }
    }
}
