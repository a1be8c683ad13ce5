//! Virtual ranks on virtual nodes, each node with a store of its own that can be wiped.

use std::sync::Arc;

use standfast::config::Loaded;
use standfast::{Job, Level, Protected, Restarted, Result, Version};
use standfast_comm::Comm;
use standfast_store::{MemoryStore, Store};
use standfast_testkit::{FaultyStore, run_threads};

const WORDS: usize = 128;
const PAGES: u64 = 60;

/// The stores of the nodes, and the node of every rank.
pub(crate) struct World {
    pub(crate) stores: Vec<Arc<dyn Store>>,
    pub(crate) node_of: Vec<usize>,
    settings: Vec<(&'static str, &'static str)>,
}

/// One rank of an open job.
pub(crate) struct Member {
    pub(crate) job: Job,
    pub(crate) faults: FaultyStore,
    field: Protected<u64>,
    rank: usize,
}

impl World {
    /// A job whose ranks are on these nodes.
    pub(crate) fn new(node_of: &[usize]) -> Self {
        let nodes = node_of.iter().max().map_or(0, |last| last + 1);
        let store = |_| Arc::new(MemoryStore::new()) as Arc<dyn Store>;
        let stores = (0..nodes).map(store).collect();
        Self { stores, node_of: node_of.to_vec(), settings: Vec::new() }
    }

    pub(crate) fn with(mut self, name: &'static str, text: &'static str) -> Self {
        self.settings.push((name, text));
        self
    }

    /// A node loses everything it has stored.
    pub(crate) fn wipe(&mut self, node: usize) {
        self.stores[node] = Arc::new(MemoryStore::new());
    }

    /// The names of what a node has, below a prefix.
    pub(crate) fn names(&self, node: usize, prefix: &str) -> Vec<String> {
        let objects = self.stores[node].list(prefix).unwrap();
        let mut names: Vec<String> = objects.into_iter().map(|object| object.name).collect();
        names.retain(|name| !standfast_format::name::HEADERS.contains(&name.as_str()));
        names.sort();
        names
    }

    fn loaded(&self, rank: usize) -> Loaded {
        let base = [
            ("job", "nodes"),
            ("lab.page", "1KiB"),
            ("lab.block", "4KiB"),
            ("lab.pool", "64KiB"),
            ("lab.segment", "16KiB"),
            ("lab.threads", "2"),
            ("keep", "3"),
        ];
        let own = |(name, text): (&str, &str)| (name.into(), text.into());
        let node = format!("n{}", self.node_of[rank]);
        let base = base.into_iter().chain([("lab.node", node.as_str())]);
        let all =
            standfast_testkit::last_of_each(base.chain(self.settings.iter().copied()).map(own));
        Loaded::load(&all).unwrap()
    }

    pub(crate) fn run<T: Send>(&self, body: impl Fn(Member) -> T + Sync) -> Vec<T> {
        run_threads(self.node_of.len(), |comm| body(self.member(&comm).unwrap()))
    }

    pub(crate) fn member(&self, comm: &dyn Comm) -> Result<Member> {
        let faults = FaultyStore::new(Arc::clone(&self.stores[self.node_of[comm.rank()]]));
        self.member_on(comm, faults)
    }

    /// One whose store may fail already while the job is opened.
    pub(crate) fn member_on(&self, comm: &dyn Comm, faults: FaultyStore) -> Result<Member> {
        let rank = comm.rank();
        let job = Job::open_store_comm(self.loaded(rank), Arc::new(faults.clone()), comm)?;
        // Not a whole number of pages.
        let field = job.alloc("field", PAGES as usize * WORDS - 1)?;
        Ok(Member { job, faults, field, rank })
    }

    /// Takes the checkpoints of these steps.
    pub(crate) fn checkpoint(&self, steps: std::ops::RangeInclusive<u64>) {
        self.run(|member| {
            for step in steps.clone() {
                member.checkpoint(step).unwrap();
            }
            member.job.close().unwrap();
        });
    }

    /// Restarts, checks every byte, and returns the step, the same on all ranks.
    pub(crate) fn restart(&self) -> u64 {
        let steps = self.run(|member| member.restart().unwrap());
        assert!(steps.iter().all(|step| *step == steps[0]), "{steps:?}");
        steps[0]
    }
}

/// Pages common to all ranks, a rank's own, ones that change, and ones that wander from rank to
/// rank with the steps.
fn contents(rank: usize, step: u64) -> Vec<u64> {
    let rank = rank as u64;
    let page = |at: u64| match at % 4 {
        0 => at + 1,
        1 => 1_000_000 * (rank + 1) + at,
        2 => 1_000_000 * (rank + 1) + 1000 * step + at,
        _ => 500_000 + 100 * (rank + 4000 - step) + at,
    };
    let words = (0..PAGES)
        .map(page)
        .flat_map(|number| (0..WORDS as u64).map(move |at| number.wrapping_mul(at + 1)));
    let mut words: Vec<u64> = words.collect();
    words.pop();
    words
}

impl Member {
    pub(crate) fn checkpoint(&self, step: u64) -> Result<Version> {
        self.field.write().copy_from_slice(&contents(self.rank, step));
        let version = self.job.checkpoint(Some(Version(step)))?;
        self.job.wait(version, Level::Local)?;
        Ok(version)
    }

    pub(crate) fn restart(&self) -> Result<u64> {
        Ok(self.come_back()?.version.0)
    }

    pub(crate) fn restart_with_notes(&self) -> Result<(u64, Vec<String>)> {
        let restarted = self.come_back()?;
        Ok((restarted.version.0, restarted.notes))
    }

    /// Restarts and checks every byte.
    pub(crate) fn come_back(&self) -> Result<Restarted> {
        self.field.write().fill(0xdead);
        let restarted = self.job.restart()?.expect("there is a checkpoint");
        let expected = contents(self.rank, restarted.version.0);
        assert!(self.field.read()[..] == expected[..], "rank {}: wrong data", self.rank);
        Ok(restarted)
    }
}
