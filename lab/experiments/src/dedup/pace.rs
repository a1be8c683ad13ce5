//! The collective phase against hashing: both are paid at every checkpoint.

use std::hint::black_box;
use std::time::{Duration, Instant};

use standfast_comm::collective::all_max;
use standfast_comm::{Comm, Result};
use standfast_format::HashKind;
use standfast_reduce::PageHasher;
use standfast_share::{Exact, Strategy, Threshold, TopK};
use standfast_testkit::run_threads;

use super::names::HASH_BYTES;

const PAGE_BYTES: usize = 4096;
/// Pages of one pass over memory: beyond the caches.
const PASS_PAGES: usize = 1 << 14;

/// The slowest rank's time of each phase, the best of several rounds.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pace {
    /// Deciding who stores what.
    pub(crate) collective_s: f64,
    /// Hashing as many pages.
    pub(crate) hashing_s: f64,
}

impl Pace {
    /// The collective phase as a share of hashing.
    pub(crate) fn share(&self) -> f64 {
        self.collective_s / self.hashing_s
    }
}

/// Measures a strategy (top-K with this threshold, else exact) on any communicator, with these
/// candidates on this rank, against hashing as many pages. Collective.
pub(crate) fn measure(
    comm: &dyn Comm,
    hashes: &[u8],
    rounds: usize,
    threshold: Option<u32>,
) -> Result<Pace> {
    let pages = hashes.len() / HASH_BYTES;
    let mut strategy: Box<dyn Strategy> = match threshold {
        None => Box::new(Exact::new(HashKind::Xxh3)),
        Some(pages) => Box::new(TopK::new(HashKind::Xxh3, Threshold::fixed(pages))),
    };
    let mut memory = vec![0u8; PASS_PAGES * PAGE_BYTES];
    memory.iter_mut().zip(0u32..).for_each(|(byte, at)| *byte = (at.wrapping_mul(at) >> 9) as u8);
    let hasher = PageHasher::new(HashKind::Xxh3, &[7; 32]);
    let (mut collective, mut hashing) = (Duration::MAX, Duration::MAX);
    for _ in 0..rounds.max(1) {
        let time = slowest(comm, || strategy.assign(comm, hashes).map(|_| ()))?;
        collective = collective.min(time);
        let time = slowest(comm, || {
            hash(&hasher, &memory, pages);
            Ok(())
        })?;
        hashing = hashing.min(time);
    }
    Ok(Pace { collective_s: collective.as_secs_f64(), hashing_s: hashing.as_secs_f64() })
}

/// The same on virtual ranks that share the cores of this machine in both phases, in words.
pub(super) fn on_threads(
    ranks: usize,
    pages: usize,
    sort: &str,
    hashes: impl Fn(usize) -> Vec<u8> + Sync,
) -> Result<String> {
    let told = run_threads(ranks, |comm| measure(&comm, &hashes(comm.rank()), 5, None));
    let pace = told.into_iter().collect::<Result<Vec<Pace>>>()?.remove(0);
    Ok(format!(
        "exact, {ranks} ranks of {pages} {sort} pages: {:.2} ms; hashing them: {:.2} ms; {:.3} of it",
        pace.collective_s * 1e3,
        pace.hashing_s * 1e3,
        pace.share(),
    ))
}

fn hash(hasher: &PageHasher, memory: &[u8], pages: usize) {
    let mut names = vec![0; PASS_PAGES * HASH_BYTES];
    let mut left = pages;
    while left > 0 {
        let now = left.min(PASS_PAGES);
        let names = &mut names[..now * HASH_BYTES];
        hasher.hash_pages(&memory[..now * PAGE_BYTES], PAGE_BYTES, names);
        black_box(names);
        left -= now;
    }
}

/// How long the slowest rank takes, when all start together.
fn slowest(comm: &dyn Comm, run: impl FnOnce() -> Result<()>) -> Result<Duration> {
    comm.barrier()?;
    let started = Instant::now();
    run()?;
    let time = started.elapsed().as_nanos() as u64;
    Ok(Duration::from_nanos(all_max(comm, time)?))
}
