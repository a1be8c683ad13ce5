//! A job of virtual ranks that goes through one collective step.

use std::time::Instant;

use standfast_comm::Comm;
use standfast_format::{HashKind, SegmentId};
use standfast_share::{Exact, Location, Shares, Strategy, Threshold, TopK};
use standfast_testkit::run_threads;

use super::names;
use super::watch::{Path, Step, Watched};

/// How ranks agree on who stores what.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Way {
    /// By homes of hashes.
    Exact,
    /// By the most frequent hashes.
    TopK(u32),
}

impl Way {
    pub(super) fn strategy(self) -> Box<dyn Strategy> {
        match self {
            Way::Exact => Box::new(Exact::new(HashKind::Xxh3)),
            Way::TopK(entries) => Box::new(TopK::new(HashKind::Xxh3, Threshold::fixed(entries))),
        }
    }

    /// Name in results and plots.
    pub(super) fn name(self) -> String {
        match self {
            Way::Exact => "exact".to_owned(),
            Way::TopK(entries) => format!("top-k {entries}"),
        }
    }
}

/// What came out of a step, over all ranks.
#[derive(Clone, Debug)]
pub(super) struct Outcome {
    /// Pages that each rank stores.
    pub(super) stored: Vec<u64>,
    /// Pages that each rank stores although another could have.
    pub(super) chosen: Vec<u64>,
    pub(super) wall_s: f64,
    pub(super) path: Path,
}

impl Outcome {
    /// Pages stored by all ranks.
    pub(super) fn total(&self) -> u64 {
        self.stored.iter().sum()
    }

    /// How many more pages were stored than there are different ones among the candidates.
    pub(super) fn beyond(&self, candidates: &[&[u8]]) -> i64 {
        self.total() as i64 - names::distinct(candidates.iter().copied()) as i64
    }

    /// Most pages stored by a rank.
    pub(super) fn most(&self) -> u64 {
        self.stored.iter().copied().max().unwrap_or(0)
    }

    /// Pages stored by a rank on average.
    pub(super) fn average(&self) -> f64 {
        mean(&self.stored)
    }

    /// The most loaded rank against the average.
    pub(super) fn imbalance(&self) -> f64 {
        self.most() as f64 / self.average().max(f64::MIN_POSITIVE)
    }

    /// The same, of those pages that could have been stored by another rank.
    pub(super) fn chosen_imbalance(&self) -> f64 {
        let most = self.chosen.iter().copied().max().unwrap_or(0);
        if most == 0 { 1.0 } else { most as f64 / mean(&self.chosen) }
    }
}

/// Average of counts.
fn mean(values: &[u64]) -> f64 {
    values.iter().sum::<u64>() as f64 / values.len().max(1) as f64
}

/// Runs one step on so many ranks, whose candidates `hashes` makes; several times, of which the
/// undisturbed ones count.
pub(super) fn run(
    ranks: usize,
    way: Way,
    rounds: usize,
    hashes: impl Fn(usize) -> Vec<u8> + Sync,
) -> anyhow::Result<Outcome> {
    let told = run_threads(ranks, |comm| on_rank(&comm, way, rounds, &hashes(comm.rank())));
    let told = told.into_iter().collect::<standfast_comm::Result<Vec<Told>>>()?;
    Ok(Outcome {
        stored: told.iter().map(|told| told.shares.stored).collect(),
        chosen: told.iter().map(|told| told.shares.chosen).collect(),
        wall_s: told.iter().map(|told| told.wall_s).fold(0.0, f64::max),
        path: Path::of(told.into_iter().map(|told| told.steps).collect()),
    })
}

/// What a rank tells of a step.
struct Told {
    shares: Shares,
    steps: Vec<Step>,
    wall_s: f64,
}

impl Told {
    /// The quicker of two runs, step by step.
    fn quicker(mut self, other: Self) -> Self {
        self.wall_s = self.wall_s.min(other.wall_s);
        self.steps.iter_mut().zip(other.steps).for_each(|(step, other)| step.shorten(other));
        self
    }
}

/// One rank's part of [`run`], on any communicator. Collective.
fn on_rank(
    comm: &dyn Comm,
    way: Way,
    rounds: usize,
    hashes: &[u8],
) -> standfast_comm::Result<Told> {
    let mut best = one_step(comm, way, hashes)?;
    for _ in 1..rounds {
        best = best.quicker(one_step(comm, way, hashes)?);
    }
    Ok(best)
}

fn one_step(comm: &dyn Comm, way: Way, hashes: &[u8]) -> standfast_comm::Result<Told> {
    let mut strategy = way.strategy();
    comm.barrier()?;
    let started = Instant::now();
    let watched = Watched::new(comm);
    let shares = strategy.assign(&watched, hashes)?.shares;
    let steps = watched.finish();
    comm.barrier()?;
    Ok(Told { shares, steps, wall_s: started.elapsed().as_secs_f64() })
}

/// Pages that each rank stores of its second candidates, where the first ones are in a committed
/// checkpoint that all homes know.
pub(super) fn run_in_time(first: &[&[u8]], second: &[&[u8]]) -> anyhow::Result<Vec<u64>> {
    let told = run_threads(second.len(), |comm| {
        let mut strategy = Exact::with_index(HashKind::Xxh3, usize::MAX);
        let assignment = strategy.assign(&comm, first[comm.rank()])?;
        let segment = SegmentId((comm.rank() as u128).to_le_bytes());
        strategy.locate(&comm, &assignment, &[segment], &|slot| Location { segment: 0, slot })?;
        strategy.commit();
        Ok(strategy.assign(&comm, second[comm.rank()])?.shares.stored)
    });
    Ok(told.into_iter().collect::<standfast_comm::Result<Vec<u64>>>()?)
}
