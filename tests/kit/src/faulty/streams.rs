//! Writers and readers of a faulty store.

use std::sync::Arc;

use standfast_format::Kind;
use standfast_store::{Error, Object, ObjectReader, ObjectWriter, Result, WriteMeter};

use super::plan::{self, Op, Plan, When};

pub(super) struct FaultyWriter {
    /// Gone after the first failure, and with it what was written.
    inner: Option<Box<dyn ObjectWriter>>,
    plan: Arc<Plan>,
    name: String,
    store: String,
    written: u64,
    failed: (Kind, String),
}

impl FaultyWriter {
    pub(super) fn new(
        inner: Box<dyn ObjectWriter>,
        plan: Arc<Plan>,
        name: &str,
        store: String,
    ) -> Self {
        let failed = (Kind::Bug, String::new());
        FaultyWriter { inner: Some(inner), plan, name: name.to_owned(), store, written: 0, failed }
    }

    fn injected(&self, op: Op, kind: Kind) -> Error {
        plan::error(op, &self.name, &self.store, kind)
    }

    fn given_up(&self) -> Error {
        let (kind, first) = self.failed.clone();
        Error::GivenUp { object: Object::new(&*self.name, &*self.store), kind, first }
    }

    /// Takes the first `count` bytes, then fails.
    fn tear(&mut self, bytes: &[u8], count: usize, kind: Kind) -> Result<()> {
        let count = count.min(bytes.len());
        self.pass(&bytes[..count])?;
        Err(self.injected(Op::Append, kind))
    }

    fn pass(&mut self, bytes: &[u8]) -> Result<()> {
        let Some(inner) = &mut self.inner else { return Err(self.given_up()) };
        inner.append(bytes)?;
        self.written += bytes.len() as u64;
        Ok(())
    }

    fn try_append(&mut self, bytes: &[u8]) -> Result<()> {
        let verdict = self.plan.begin(Op::Append);
        verdict.wait();
        if let Some((bytes_taken, kind)) = verdict.tear {
            return self.tear(bytes, bytes_taken, kind);
        }
        if let Some((when, kind)) = verdict.fail {
            let taken = if when == When::After { bytes.len() } else { 0 };
            return self.tear(bytes, taken, kind);
        }
        let fit = self.plan.take_room(bytes.len());
        if fit < bytes.len() { self.tear(bytes, fit, Kind::Full) } else { self.pass(bytes) }
    }
}

impl ObjectWriter for FaultyWriter {
    fn flush(&mut self) -> Result<()> {
        let Some(inner) = &mut self.inner else { return Err(self.given_up()) };
        inner.flush()
    }

    fn append(&mut self, bytes: &[u8]) -> Result<()> {
        if self.inner.is_none() {
            return Err(self.given_up());
        }
        self.try_append(bytes).inspect_err(|error| {
            self.failed = (error.kind(), error.to_string());
            self.inner = None;
        })
    }

    fn written(&self) -> u64 {
        self.written
    }

    fn settle(&mut self) -> Result<()> {
        match &mut self.inner {
            Some(inner) => inner.settle(),
            None => Err(self.given_up()),
        }
    }

    fn meter(&self) -> Option<Arc<WriteMeter>> {
        self.inner.as_ref().and_then(|inner| inner.meter())
    }

    fn seal(mut self: Box<Self>) -> Result<u64> {
        let Some(inner) = self.inner.take() else { return Err(self.given_up()) };
        let verdict = self.plan.begin(Op::Seal);
        verdict.wait();
        match verdict.fail {
            Some((When::Before, kind)) => Err(self.injected(Op::Seal, kind)),
            Some((When::After, kind)) => inner.seal().and(Err(self.injected(Op::Seal, kind))),
            None => inner.seal(),
        }
    }
}

pub(super) struct FaultyReader {
    inner: Box<dyn ObjectReader>,
    plan: Arc<Plan>,
    name: String,
    store: String,
}

impl FaultyReader {
    pub(super) fn new(
        inner: Box<dyn ObjectReader>,
        plan: Arc<Plan>,
        name: &str,
        store: String,
    ) -> Self {
        FaultyReader { inner, plan, name: name.to_owned(), store }
    }
}

impl ObjectReader for FaultyReader {
    fn bytes(&self) -> u64 {
        self.plan.visible_bytes(&self.name, self.inner.bytes())
    }

    fn read_at(&self, offset: u64, buf: &mut [u8]) -> Result<usize> {
        let verdict = self.plan.begin(Op::Read);
        verdict.wait();
        if let Some((_, kind)) = verdict.fail {
            return Err(plan::error(Op::Read, &self.name, &self.store, kind));
        }
        let visible = self.bytes().saturating_sub(offset);
        let count = buf.len().min(usize::try_from(visible).unwrap_or(usize::MAX));
        let count = verdict.short.map_or(count, |bytes| count.min(bytes.max(1)));
        let count = self.inner.read_at(offset, &mut buf[..count])?;
        self.plan.flip_bits(&self.name, offset, &mut buf[..count]);
        Ok(count)
    }
}
