//! Virtual ranks on one store in memory, with contents that follow from rank and step.

use std::sync::Arc;
use std::thread::ThreadId;

use standfast::config::Loaded;
use standfast::{Job, Level, Protected, Result, Version};
use standfast_comm::{Comm, Concurrency, Tag};
use standfast_store::{MemoryStore, Store};
use standfast_testkit::{FaultyStore, run_threads};

const PAGE: usize = 1024;
const WORDS: usize = PAGE / 8;

/// What a page holds, given the rank and the step: a number; 0 is a page of zeros.
pub(crate) type Pages = fn(rank: usize, step: u64) -> Vec<u64>;

/// The store of a job, and how it is opened.
#[derive(Clone)]
pub(crate) struct World {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) settings: Vec<(&'static str, &'static str)>,
    pub(crate) pages: Pages,
}

/// One rank of an open job.
pub(crate) struct Member {
    pub(crate) job: Job,
    pub(crate) faults: FaultyStore,
    field: Protected<u64>,
    rank: usize,
    pages: Pages,
}

impl World {
    pub(crate) fn new(pages: Pages) -> Self {
        Self { store: Arc::new(MemoryStore::new()), settings: Vec::new(), pages }
    }

    pub(crate) fn with(mut self, name: &'static str, text: &'static str) -> Self {
        self.settings.push((name, text));
        self
    }

    fn loaded(&self) -> Loaded {
        let base = [
            ("job", "ranks"),
            ("lab.page", "1KiB"),
            ("lab.block", "4KiB"),
            ("lab.pool", "64KiB"),
            ("lab.segment", "16KiB"),
            ("lab.threads", "2"),
            ("keep", "3"),
        ];
        let own = |(name, text): (&str, &str)| (name.into(), text.into());
        let all = standfast_testkit::last_of_each(
            base.into_iter().chain(self.settings.iter().copied()).map(own),
        );
        Loaded::load(&all).unwrap()
    }

    /// Runs a job on so many ranks.
    pub(crate) fn run<T: Send>(&self, size: usize, body: impl Fn(Member) -> T + Sync) -> Vec<T> {
        run_threads(size, |comm| body(self.member(&comm).unwrap()))
    }

    /// The same where only the thread that opened the job may talk to other ranks.
    pub(crate) fn run_funneled<T: Send>(
        &self,
        size: usize,
        body: impl Fn(Member) -> T + Sync,
    ) -> Vec<T> {
        run_threads(size, |comm| {
            let funneled = Funneled { comm: Box::new(comm), thread: std::thread::current().id() };
            body(self.member(&funneled).unwrap())
        })
    }

    pub(crate) fn member(&self, comm: &dyn Comm) -> Result<Member> {
        let faults = FaultyStore::new(Arc::clone(&self.store));
        let job = Job::open_store_comm(self.loaded(), Arc::new(faults.clone()), comm)?;
        let rank = comm.rank();
        let pages = (self.pages)(rank, 0).len();
        // Not a whole number of pages, so that every region ends within one.
        let field = job.alloc("field", pages * WORDS - 1)?;
        Ok(Member { job, faults, field, rank, pages: self.pages })
    }
}

impl Member {
    fn contents(&self, step: u64) -> Vec<u64> {
        let pages = (self.pages)(self.rank, step);
        let mut words: Vec<u64> = pages
            .iter()
            .flat_map(|number| (0..WORDS as u64).map(move |at| number.wrapping_mul(at + 1)))
            .collect();
        words.pop();
        words
    }

    /// Goes to a step and takes its checkpoint.
    pub(crate) fn checkpoint(&self, step: u64) -> Result<Version> {
        self.field.write().copy_from_slice(&self.contents(step));
        let version = self.job.checkpoint(Some(Version(step)))?;
        self.job.wait(version, Level::Local)?;
        Ok(version)
    }

    /// Restarts from the newest checkpoint and checks every byte; returns its step.
    pub(crate) fn restart(&self) -> Result<u64> {
        self.field.write().fill(0xdead);
        let step = self.job.restart()?.expect("there is a checkpoint").version.0;
        assert!(self.field.read()[..] == self.contents(step)[..], "rank {}: wrong data", self.rank);
        Ok(step)
    }

    /// The bytes of another rank's region at a step.
    pub(crate) fn bytes_of(&self, rank: usize, step: u64) -> Vec<u8> {
        let other = (self.pages)(rank, step);
        let mut words: Vec<u64> = other
            .iter()
            .flat_map(|number| (0..WORDS as u64).map(move |at| number.wrapping_mul(at + 1)))
            .collect();
        words.pop();
        words.iter().flat_map(|word| word.to_ne_bytes()).collect()
    }
}

/// A communicator that only its own thread may use, and that notices if another does.
pub(crate) struct Funneled {
    pub(crate) comm: Box<dyn Comm>,
    pub(crate) thread: ThreadId,
}

impl Funneled {
    fn inner(&self) -> &dyn Comm {
        assert_eq!(std::thread::current().id(), self.thread, "only the program's thread may talk");
        &*self.comm
    }
}

impl Comm for Funneled {
    fn rank(&self) -> usize {
        self.comm.rank()
    }

    fn size(&self) -> usize {
        self.comm.size()
    }

    fn concurrency(&self) -> Concurrency {
        Concurrency::CallerOnly
    }

    fn send(&self, to: usize, tag: Tag, bytes: &[u8]) -> standfast_comm::Result<()> {
        self.inner().send(to, tag, bytes)
    }

    fn receive(&self, from: usize, tag: Tag) -> standfast_comm::Result<Vec<u8>> {
        self.inner().receive(from, tag)
    }

    fn exchange(
        &self,
        to: usize,
        bytes: &[u8],
        from: usize,
        tag: Tag,
    ) -> standfast_comm::Result<Vec<u8>> {
        self.inner().exchange(to, bytes, from, tag)
    }

    fn all_to_all(&self, outgoing: Vec<Vec<u8>>) -> standfast_comm::Result<Vec<Vec<u8>>> {
        self.inner().all_to_all(outgoing)
    }

    fn barrier(&self) -> standfast_comm::Result<()> {
        self.inner().barrier()
    }

    fn split(
        &self,
        colour: Option<u32>,
        key: u32,
    ) -> standfast_comm::Result<Option<Box<dyn Comm>>> {
        let thread = self.thread;
        let new = self.inner().split(colour, key)?;
        Ok(new.map(|comm| Box::new(Self { comm, thread }) as Box<dyn Comm>))
    }
}
