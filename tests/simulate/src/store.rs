//! A simulated store: what a node has on its disk, and how a process reaches it.
//!
//! A [`Disk`] keeps sealed objects. What is not sealed belongs to a process and ends with it. A crash
//! in the middle of a call leaves the old state or the new one, as the contract of stores says. What
//! was done and not answered may be undone by a power cut, each change for itself, until the next one is
//! answered: file systems with a journal sync all earlier changes with it. Global storage is none, and
//! undoes nothing. A planted bug may leave objects unsynced: a power cut then tears them
//! or takes them away.
//!
//! A disk watches what must never happen: that a file which a manifest names is removed, and that a
//! sealed or committed file is replaced by another.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use standfast_format::{Kind, Manifest, Pledge, name};
use standfast_store::{
    Error, Lock, LockGuard, ObjectMeta, ObjectReader, ObjectWriter, Result, Store, check_name,
    check_prefix,
};

use crate::Planted;
use crate::chance::Chance;
use crate::fibers;
use crate::life::{Fate, Life, Op, failure, failure_name};
use crate::world::World;

/// The name of the disk that survives the nodes.
pub const GLOBAL: &str = "global";

/// What one node has stored.
pub struct Disk {
    name: String,
    world: Arc<World>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    objects: BTreeMap<String, Object>,
    /// Changes that nobody was told are durable: the name, and what was there before.
    unanswered: Vec<(String, Option<Object>)>,
    /// Who holds the locks of a place: the life, and whether it shares.
    locks: BTreeMap<String, Vec<(u64, bool)>>,
    /// Disks of the same job, whose manifests count too.
    beside: Vec<std::sync::Weak<Disk>>,
    /// Somebody has damaged it on purpose: what is replaced or lost then is no surprise.
    is_damaged: bool,
}

#[derive(Clone)]
struct Object {
    bytes: Arc<[u8]>,
    /// Whether it outlives a power cut.
    is_synced: bool,
    /// Whether somebody was told that it is committed.
    is_committed: bool,
}

impl Disk {
    /// An empty disk.
    pub fn new(world: &Arc<World>, name: impl Into<String>) -> Arc<Self> {
        let (name, world) = (name.into(), Arc::clone(world));
        Arc::new(Self { name, world, state: Mutex::default() })
    }

    /// These disks hold one job together.
    pub fn join(disks: &[Arc<Disk>]) {
        for disk in disks {
            disk.state().beside = disks.iter().map(Arc::downgrade).collect();
        }
    }

    /// A process's way to it.
    pub fn store(self: &Arc<Self>, life: &Arc<Life>) -> Arc<dyn Store> {
        life.uses(self);
        Arc::new(SimStore { disk: Arc::clone(self), life: Arc::clone(life) })
    }

    pub(crate) fn release(&self, life: u64) {
        let mut state = self.state();
        for holders in state.locks.values_mut() {
            holders.retain(|(holder, _)| *holder != life);
        }
    }

    /// The checkpoint of this manifest is promised to somebody: it stays.
    pub fn commit(&self, manifest: &str) {
        if let Some(object) = self.state().objects.get_mut(manifest) {
            object.is_committed = true;
        }
    }

    /// What was promised of it is not any more.
    pub fn release_promises(&self) {
        self.state().objects.values_mut().for_each(|object| object.is_committed = false);
    }

    /// The power goes: what was not synced is lost or torn.
    pub fn cut_power(&self, chance: &mut Chance) {
        let mut state = self.state();
        for (name, before) in std::mem::take(&mut state.unanswered).into_iter().rev() {
            if chance.one_in(2) {
                continue;
            }
            self.world.trace(|| format!("{}: a power cut undoes the change of {name}", self.name));
            match before {
                Some(object) => state.objects.insert(name, object),
                None => state.objects.remove(&name),
            };
        }
        let mut lost = Vec::new();
        for (name, object) in &mut state.objects {
            if !object.is_synced && chance.one_in(2) {
                lost.push(name.clone());
            } else if !object.is_synced && chance.one_in(2) {
                let left = chance.below(object.bytes.len() as u64) as usize;
                object.bytes = object.bytes[..left].into();
            }
            object.is_synced = true;
        }
        for name in &lost {
            self.world.trace(|| format!("{}: a power cut takes {name}", self.name));
            state.objects.remove(name);
        }
    }

    /// Damages one object below one of these prefixes; false if there is none.
    pub fn damage(&self, chance: &mut Chance, prefixes: &[&str]) -> bool {
        let mut state = self.state();
        let names: Vec<String> = state
            .objects
            .keys()
            .filter(|name| prefixes.iter().any(|prefix| name.starts_with(prefix)))
            .cloned()
            .collect();
        if names.is_empty() {
            return false;
        }
        let name = chance.pick(&names).clone();
        state.is_damaged = true;
        let Some(object) = state.objects.get_mut(&name) else { return false };
        let mut bytes = object.bytes.to_vec();
        let how = match chance.below(3) {
            0 if !bytes.is_empty() => {
                let at = chance.below(bytes.len() as u64) as usize;
                bytes[at] ^= 1 << chance.below(8);
                "has a flipped bit"
            }
            1 => {
                bytes.truncate(chance.below(bytes.len() as u64) as usize);
                "is cut short"
            }
            _ => {
                state.objects.remove(&name);
                self.world.trace(|| format!("{}: {name} disappears", self.name));
                return true;
            }
        };
        object.bytes = bytes.into();
        self.world.trace(|| format!("{}: {name} {how}", self.name));
        true
    }

    /// The names of what is there, below a prefix.
    pub fn names(&self, prefix: &str) -> Vec<String> {
        let state = self.state();
        state.objects.keys().filter(|name| name.starts_with(prefix)).cloned().collect()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Manifests that are there, as far as they can be read.
    fn manifests(&self) -> Vec<Manifest> {
        let state = self.state();
        let found = state.objects.iter().filter(|(name, _)| name.starts_with(name::MANIFESTS));
        found.filter_map(|(_, object)| Manifest::decode(&object.bytes).ok()).collect()
    }

    /// Pledges that are there, as far as they can be read.
    pub(crate) fn pledges(&self) -> Vec<Pledge> {
        let state = self.state();
        let found = state.objects.iter().filter(|(name, _)| name.starts_with(name::PLEDGES));
        found.filter_map(|(_, object)| Pledge::decode(&object.bytes).ok()).collect()
    }

    /// The manifest of a version.
    pub(crate) fn manifest(&self, version: u64) -> Option<Manifest> {
        self.manifests().into_iter().find(|manifest| manifest.version.0 == version)
    }

    /// Makes a change that may be undone by a power cut, for its answer is lost.
    fn unanswered<T>(&self, object: &str, change: impl FnOnce() -> T) -> T {
        let before = self.state().objects.get(object).cloned();
        let changed = change();
        if self.name != GLOBAL {
            self.state().unanswered.push((object.to_owned(), before));
        }
        changed
    }

    /// A change was answered: all that was changed before is synced with it.
    fn answered(&self) {
        self.state().unanswered.clear();
    }

    /// Nothing that a checkpoint needs may go.
    fn check_removal(&self, object: &str) {
        let segment = name::parse_segment(object);
        let image = name::parse_image(object);
        if segment.is_none() && image.is_none() {
            return;
        }
        let beside: Vec<Arc<Disk>> =
            self.state().beside.iter().filter_map(std::sync::Weak::upgrade).collect();
        let manifests = match beside.is_empty() {
            true => self.manifests(),
            false => beside.iter().flat_map(|disk| disk.manifests()).collect(),
        };
        for manifest in manifests {
            let names_segment = manifest.segments.iter().any(|own| Some(own.id) == segment);
            let names_image = image.is_some_and(|(_, attempt, _)| attempt == manifest.attempt);
            if (names_segment || names_image) && !self.is_damaged() {
                let version = manifest.version;
                self.world.wrong(format!(
                    "{}: {object} is removed, and checkpoint {version} needs it",
                    self.name
                ));
            }
        }
    }

    fn is_damaged(&self) -> bool {
        let state = self.state();
        let beside: Vec<Arc<Disk>> =
            state.beside.iter().filter_map(std::sync::Weak::upgrade).collect();
        let own = state.is_damaged;
        drop(state);
        own || beside.iter().any(|disk| disk.state().is_damaged)
    }

    fn write(&self, object: &str, bytes: &[u8]) {
        let is_damaged = self.is_damaged();
        let mut state = self.state();
        if let Some(old) = state.objects.get(object) {
            let sealed = object.starts_with("segments/") || object.starts_with("images/");
            let other = *old.bytes != *bytes;
            if (sealed || old.is_committed) && other && !is_damaged {
                let what = if sealed { "sealed" } else { "committed" };
                self.world.wrong(format!("{}: {object}, which is {what}, is replaced", self.name));
            }
        }
        if self.world.has(Planted::ShardLost) && object.starts_with("shards/") {
            return;
        }
        let is_synced = match self.world.planted {
            Some(Planted::ImageUnsynced) => !object.starts_with("images/"),
            Some(Planted::UploadUnsynced) => {
                !(object.starts_with("segments/") && self.name == GLOBAL)
            }
            _ => true,
        };
        if self.world.has(Planted::CompactEager) {
            state.remove_unreferred(object, bytes);
        }
        let is_committed = state.objects.get(object).is_some_and(|old| old.is_committed);
        let object = object.to_owned();
        state.objects.insert(object, Object { bytes: bytes.into(), is_synced, is_committed });
    }
}

impl State {
    /// Removes segments that the newest checkpoint named and this manifest does not.
    fn remove_unreferred(&mut self, object: &str, bytes: &[u8]) {
        let Ok(new) = Manifest::decode(bytes) else { return };
        let manifests = self.objects.iter().filter(|(name, _)| name.starts_with(name::MANIFESTS));
        let manifests = manifests.filter(|(name, _)| *name != object);
        let decoded = manifests.filter_map(|(_, old)| Manifest::decode(&old.bytes).ok());
        let Some(newest) = decoded.max_by_key(|manifest| manifest.sequence) else { return };
        for segment in newest.segments.iter().filter(|old| !new.segments.contains(old)) {
            self.objects.remove(&name::segment(segment.id));
        }
    }
}

/// A process's way to a disk.
struct SimStore {
    disk: Arc<Disk>,
    life: Arc<Life>,
}

impl std::fmt::Debug for SimStore {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "SimStore({} for {})", self.disk.name, self.life.name)
    }
}

impl SimStore {
    fn dead(&self, op: &'static str, object: &str) -> Error {
        failure(0, op, object, self.describe())
    }

    /// Makes a call, with what befalls it.
    fn call<T>(
        &self,
        (op, verb): (Op, &'static str),
        object: &str,
        call: impl FnOnce() -> Result<T>,
    ) -> Result<T> {
        fibers::give_way();
        // Who goes on for ever must come to an end.
        if !self.life.is_alive() || self.disk.world.clock.is_stuck() {
            return Err(self.dead(verb, object));
        }
        let fate = self.life.fate(op, object);
        let world = &self.disk.world;
        let told = |what: &str| {
            world.trace(|| {
                format!("{}: {verb} {object} in {}{what}", self.life.name, self.disk.name)
            });
        };
        match fate {
            Fate::Works => {
                if !matches!(op, Op::Read | Op::Append | Op::Open) {
                    told("");
                }
                let done = call();
                if op.changes() && done.is_ok() {
                    self.disk.answered();
                }
                done
            }
            Fate::Fails(which) => {
                told(&format!(" fails: {}", failure_name(which)));
                Err(failure(which, verb, object, self.describe()))
            }
            Fate::AnswerLost(which) => {
                told(&format!(" is done, but answered with {}", failure_name(which)));
                let done = self.disk.unanswered(object, call);
                done.and(Err(failure(which, verb, object, self.describe())))
            }
            Fate::DiesBefore => {
                told(": not done");
                self.life.kill();
                Err(self.dead(verb, object))
            }
            Fate::DiesAfter => {
                told(": done");
                let done = match op.changes() {
                    true => self.disk.unanswered(object, call),
                    false => call(),
                };
                self.life.kill();
                done.and(Err(self.dead(verb, object)))
            }
        }
    }

    fn missing(&self, object: &str) -> Error {
        Error::Missing(standfast_store::Object::new(object, self.describe()))
    }

    fn clone_handle(&self) -> Self {
        Self { disk: Arc::clone(&self.disk), life: Arc::clone(&self.life) }
    }
}

impl Store for SimStore {
    fn describe(&self) -> String {
        format!("sim:{}", self.disk.name)
    }

    fn create(&self, name: &str, _size_hint: Option<u64>) -> Result<Box<dyn ObjectWriter>> {
        check_name(name, &self.describe())?;
        self.call((Op::Create, "create"), name, || {
            let (store, name) = (self.clone_handle(), name.to_owned());
            Ok(Box::new(SimWriter { store, name, bytes: Vec::new(), failed: None }) as _)
        })
    }

    fn put(&self, name: &str, bytes: &[u8]) -> Result<()> {
        check_name(name, &self.describe())?;
        self.call((Op::Put, "write"), name, || {
            self.disk.write(name, bytes);
            Ok(())
        })
    }

    fn put_new(&self, name: &str, bytes: &[u8]) -> Result<()> {
        check_name(name, &self.describe())?;
        self.call((Op::PutNew, "write"), name, || {
            if self.disk.state().objects.contains_key(name) {
                return Err(Error::Exists(standfast_store::Object::new(name, self.describe())));
            }
            self.disk.write(name, bytes);
            Ok(())
        })
    }

    fn open(&self, name: &str) -> Result<Box<dyn ObjectReader>> {
        check_name(name, &self.describe())?;
        self.call((Op::Open, "open"), name, || {
            let bytes = self.disk.state().objects.get(name).map(|object| Arc::clone(&object.bytes));
            let bytes = bytes.ok_or_else(|| self.missing(name))?;
            let (store, name) = (self.clone_handle(), name.to_owned());
            Ok(Box::new(SimReader { store, name, bytes }) as _)
        })
    }

    fn list(&self, prefix: &str) -> Result<Vec<ObjectMeta>> {
        check_prefix(prefix, &self.describe())?;
        self.call((Op::List, "list"), prefix, || {
            let below = |name: &str| {
                prefix.is_empty()
                    || name.strip_prefix(prefix).is_some_and(|rest| rest.starts_with('/'))
            };
            let state = self.disk.state();
            let found = state.objects.iter().filter(|(name, _)| below(name));
            let meta = |(name, object): (&String, &Object)| ObjectMeta {
                name: name.clone(),
                bytes: object.bytes.len() as u64,
            };
            Ok(found.map(meta).collect())
        })
    }

    fn remove(&self, name: &str) -> Result<()> {
        check_name(name, &self.describe())?;
        self.call((Op::Remove, "remove"), name, || {
            self.disk.check_removal(name);
            let removed = self.disk.state().objects.remove(name);
            removed.map(drop).ok_or_else(|| self.missing(name))
        })
    }

    fn discard_unsealed(&self) -> Result<u64> {
        // What is not sealed ended with its process.
        self.call((Op::List, "clean"), "", || Ok(0))
    }

    fn lock(&self, lock: Lock) -> Result<LockGuard> {
        // As object stores do: nobody on one thread can wait for somebody who is busy.
        if matches!(lock, Lock::Busy | Lock::Idle) {
            return Ok(LockGuard::new(lock, ()));
        }
        let place = lock.place();
        self.call((Op::Lock, "lock"), &place, || {
            let mut state = self.disk.state();
            let holders = state.locks.entry(place.clone()).or_default();
            let free = match lock.is_shared() {
                true => holders.iter().all(|(_, shared)| *shared),
                false => holders.is_empty(),
            };
            if !free {
                let holder = format!("pid {}", std::process::id());
                return Err(Error::Locked { lock, store: self.describe(), holder });
            }
            holders.push((self.life.id, lock.is_shared()));
            let held = Held { store: self.clone_handle(), place: place.clone(), lock };
            Ok(LockGuard::new(lock, held))
        })
    }

    fn free_bytes(&self) -> Result<Option<u64>> {
        Ok(None)
    }
}

struct Held {
    store: SimStore,
    place: String,
    lock: Lock,
}

impl Drop for Held {
    fn drop(&mut self) {
        let mut state = self.store.disk.state();
        let own = (self.store.life.id, self.lock.is_shared());
        let Some(holders) = state.locks.get_mut(&self.place) else { return };
        // The locks of a killed process are free already.
        if let Some(at) = holders.iter().position(|holder| *holder == own) {
            holders.swap_remove(at);
        }
    }
}

struct SimWriter {
    store: SimStore,
    name: String,
    bytes: Vec<u8>,
    failed: Option<(Kind, String)>,
}

impl SimWriter {
    fn usable(&self) -> Result<()> {
        let Some((kind, first)) = &self.failed else { return Ok(()) };
        let object = standfast_store::Object::new(&*self.name, self.store.describe());
        Err(Error::GivenUp { object, kind: *kind, first: first.clone() })
    }
}

impl ObjectWriter for SimWriter {
    fn append(&mut self, bytes: &[u8]) -> Result<()> {
        self.usable()?;
        let appended = self.store.call((Op::Append, "append to"), &self.name, || Ok(()));
        self.failed = appended.as_ref().err().map(|error| (error.kind(), error.to_string()));
        appended?;
        self.bytes.extend_from_slice(bytes);
        Ok(())
    }

    fn written(&self) -> u64 {
        self.bytes.len() as u64
    }

    fn seal(self: Box<Self>) -> Result<u64> {
        self.usable()?;
        self.store.call((Op::Seal, "seal"), &self.name, || {
            self.store.disk.write(&self.name, &self.bytes);
            Ok(self.bytes.len() as u64)
        })
    }
}

struct SimReader {
    store: SimStore,
    name: String,
    bytes: Arc<[u8]>,
}

impl ObjectReader for SimReader {
    fn bytes(&self) -> u64 {
        self.bytes.len() as u64
    }

    fn read_at(&self, offset: u64, buf: &mut [u8]) -> Result<usize> {
        self.store.call((Op::Read, "read"), &self.name, || {
            let start = usize::try_from(offset).unwrap_or(usize::MAX).min(self.bytes.len());
            let count = buf.len().min(self.bytes.len() - start);
            buf[..count].copy_from_slice(&self.bytes[start..start + count]);
            Ok(count)
        })
    }
}
