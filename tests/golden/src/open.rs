//! Opening the job of a case, on all its ranks.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use standfast::Job;
use standfast::config::Loaded;
use standfast_comm::Comm;

use crate::cases::Case;
use standfast_testkit::{Funneled, run_threads};

/// The name of every job.
pub const JOB: &str = "golden";

/// Settings by name; of two with the same name the later one counts.
pub type Settings = Vec<(String, String)>;

/// The store of a node, below the directory of its case.
pub fn store(dir: &Path, case: &Case, node: usize) -> PathBuf {
    let store = dir.join("store");
    if case.apart { store.join(format!("n{node}")).join(JOB) } else { store.join(JOB) }
}

/// Global storage of a case.
pub fn global(dir: &Path) -> PathBuf {
    dir.join("global").join(JOB)
}

/// What a reader has to say: where the job is, and that nothing is to go. Everything else is told by the
/// stores, so frozen ones do not need settings that may be gone by then.
pub fn reading(dir: &Path, case: &Case) -> Settings {
    let place = dir.join(if case.apart { "store/{node}" } else { "store" });
    let mut all = settings(&[("job", JOB), ("keep", "all"), ("store", &place.to_string_lossy())]);
    if case.has_global() {
        all.push(("global".into(), dir.join("global").to_string_lossy().into()));
    }
    all
}

/// Settings of their own.
pub fn settings(all: &[(&str, &str)]) -> Settings {
    all.iter().map(|(name, text)| ((*name).into(), (*text).into())).collect()
}

/// Opens the job on all ranks, runs `body` on each, and returns what they returned, or the first error.
/// A job of one rank is opened as programs without ranks do it.
pub fn on_all_ranks<T: Send>(
    case: &Case,
    settings: &Settings,
    body: impl Fn(Job, usize) -> Result<T> + Sync,
) -> Result<Vec<T>> {
    if case.ranks() == 1 {
        let job = Job::open_loaded(loaded(case, settings, 0)?)?;
        return Ok(vec![body(job, 0)?]);
    }
    on_ranks_of(case, settings, |comm| comm, body)
}

/// The same where the ranks' threads alone may talk: what no call waits for is not finished.
pub(crate) fn on_funneled_ranks(
    case: &Case,
    settings: &Settings,
    body: impl Fn(Job, usize) -> Result<()> + Sync,
) -> Result<()> {
    on_ranks_of(case, settings, |comm| Box::new(Funneled(comm)), body).map(|_| ())
}

fn on_ranks_of<T: Send>(
    case: &Case,
    settings: &Settings,
    wrap: impl Fn(Box<dyn Comm>) -> Box<dyn Comm> + Sync,
    body: impl Fn(Job, usize) -> Result<T> + Sync,
) -> Result<Vec<T>> {
    let results = run_threads(case.ranks(), |comm| {
        let rank = comm.rank();
        let comm = wrap(comm.duplicate()?);
        let job = Job::open_comm(loaded(case, settings, rank)?, &*comm)?;
        body(job, rank).with_context(|| format!("rank {rank}"))
    });
    results.into_iter().collect()
}

/// Nodes have names of their own: that of the host would get into the stores.
fn loaded(case: &Case, settings: &Settings, rank: usize) -> Result<Loaded> {
    let node = ("lab.node".to_owned(), format!("n{}", case.node_of[rank]));
    let all = settings.iter().cloned().chain([node]);
    Ok(Loaded::load(&standfast_testkit::last_of_each(all))?)
}
