//! A store that wraps another and fails as told.
//!
//! Data: every call passes through; the plan decides whether it fails, waits, or comes back
//! damaged. The wrapped store is never damaged itself: clear the faults and all is well again,
//! except for what the fault kept from being written.
//!
//! What is injected ([`Fault`]), and what the code above must make of it:
//!
//! | fault | must be survived as |
//! |---|---|
//! | the nth call of a sort fails | the old state stays, the error reaches the caller with its kind |
//! | the nth call is done, but its answer is lost | the new state is there, the caller thinks not |
//! | an append is torn: some bytes, then an error | nothing visible; no further call works |
//! | a read is torn: fewer bytes than asked for | the rest is asked for; what stays short is damaged |
//! | nothing below a prefix can be created | the old state stays, the error has its kind |
//! | an object cannot be opened | no step back: an error that names it |
//! | full after so many bytes | `Kind::Full`, older checkpoints whole |
//! | a bit reads flipped | found by a checksum, reported with the object's name, never returned |
//! | an object is truncated | the same |
//! | an object is missing | reported with its name; an older checkpoint may serve |
//! | two objects are swapped | found: a checksum alone cannot see it, the identity inside must |
//! | calls take long | nothing but time is lost |
//!
//! Not injected: bytes that change between two reads, or a store that forgets what it sealed
//! after having listed it. With no faults set the wrapper passes the conformance suite.
//!
//! Everything is decided by the plan and by counting calls; nothing is random, so a failing run
//! can be repeated. [`Fault::damage`] picks one from a seed.

mod plan;
mod streams;

use std::sync::Arc;

use standfast_format::Kind;
use standfast_store::{
    Error, Lock, LockGuard, Object, ObjectMeta, ObjectReader, ObjectWriter, Result, Store,
};

pub use plan::{Fault, Op};
use plan::{Plan, When};
use streams::{FaultyReader, FaultyWriter};

/// A store with a plan of faults. Clones share the plan.
#[derive(Clone, Debug)]
pub struct FaultyStore {
    inner: Arc<dyn Store>,
    plan: Arc<Plan>,
}

impl FaultyStore {
    /// Wraps a store; no faults yet.
    pub fn new(inner: Arc<dyn Store>) -> Self {
        FaultyStore { inner, plan: Arc::default() }
    }

    /// Adds a fault. Calls are counted from the store's creation or the last [`reset`](Self::reset).
    pub fn inject(&self, fault: Fault) {
        self.plan.lock().faults.push(fault);
    }

    /// Forgets all faults, counts and firings; the wrapped store is as it is.
    pub fn reset(&self) {
        *self.plan.lock() = plan::State::default();
    }

    /// Calls of a sort so far: a first run without faults tells how many there are to fail.
    pub fn calls(&self, op: Op) -> u64 {
        self.plan.lock().calls[op as usize]
    }

    /// How often a fault really happened; a test that expects one should see it here.
    pub fn fired(&self) -> u64 {
        self.plan.lock().fired
    }

    /// Passes through one call, with what the plan has for it.
    fn call<T>(&self, op: Op, name: &str, call: impl FnOnce() -> Result<T>) -> Result<T> {
        let verdict = self.plan.begin(op);
        verdict.wait();
        match verdict.fail {
            Some((When::Before, kind)) => Err(self.injected(op, name, kind)),
            Some((When::After, kind)) => call().and(Err(self.injected(op, name, kind))),
            None => call(),
        }
    }

    fn injected(&self, op: Op, name: &str, kind: Kind) -> Error {
        plan::error(op, name, &self.inner.describe(), kind)
    }

    fn put_bytes(
        &self,
        op: Op,
        name: &str,
        bytes: &[u8],
        put: impl FnOnce() -> Result<()>,
    ) -> Result<()> {
        self.call(op, name, || {
            if self.plan.take_room(bytes.len()) < bytes.len() {
                return Err(self.injected(op, name, Kind::Full));
            }
            put()
        })
    }

    /// A hidden object is not there, whatever the wrapped store says.
    fn seen(&self, name: &str) -> Result<String> {
        if self.plan.is_hidden(name) {
            return Err(Error::Missing(Object::new(name, self.inner.describe())));
        }
        Ok(self.plan.swapped(name))
    }
}

impl Store for FaultyStore {
    fn describe(&self) -> String {
        self.inner.describe()
    }

    fn create(&self, name: &str, size_hint: Option<u64>) -> Result<Box<dyn ObjectWriter>> {
        if let Some(kind) = self.plan.refuses(Op::Create, name) {
            return Err(self.injected(Op::Create, name, kind));
        }
        let inner = self.call(Op::Create, name, || self.inner.create(name, size_hint))?;
        Ok(Box::new(FaultyWriter::new(inner, self.plan.clone(), name, self.inner.describe())))
    }

    fn put(&self, name: &str, bytes: &[u8]) -> Result<()> {
        self.put_bytes(Op::Put, name, bytes, || self.inner.put(name, bytes))
    }

    fn put_new(&self, name: &str, bytes: &[u8]) -> Result<()> {
        self.put_bytes(Op::PutNew, name, bytes, || self.inner.put_new(name, bytes))
    }

    fn open(&self, name: &str) -> Result<Box<dyn ObjectReader>> {
        if let Some(kind) = self.plan.refuses(Op::Open, name) {
            return Err(self.injected(Op::Open, name, kind));
        }
        let inner = self.call(Op::Open, name, || self.inner.open(&self.seen(name)?))?;
        Ok(Box::new(FaultyReader::new(inner, self.plan.clone(), name, self.inner.describe())))
    }

    fn list(&self, prefix: &str) -> Result<Vec<ObjectMeta>> {
        let mut objects = self.call(Op::List, prefix, || self.inner.list(prefix))?;
        objects.retain(|object| !self.plan.is_hidden(&object.name));
        for object in &mut objects {
            let source = self.plan.swapped(&object.name);
            if source != object.name {
                object.bytes = self.inner.open(&source)?.bytes();
            }
            object.bytes = self.plan.visible_bytes(&object.name, object.bytes);
        }
        Ok(objects)
    }

    fn remove(&self, name: &str) -> Result<()> {
        self.call(Op::Remove, name, || {
            self.seen(name)?;
            self.inner.remove(name)
        })
    }

    fn discard_unsealed(&self) -> Result<u64> {
        self.call(Op::DiscardUnsealed, ".", || self.inner.discard_unsealed())
    }

    fn lock(&self, lock: Lock) -> Result<LockGuard> {
        self.call(Op::Lock, ".", || self.inner.lock(lock))
    }

    fn free_bytes(&self) -> Result<Option<u64>> {
        let inner = self.inner.free_bytes()?;
        Ok(match (self.plan.room(), inner) {
            (Some(room), Some(inner)) => Some(room.min(inner)),
            (room, inner) => room.or(inner),
        })
    }
}
