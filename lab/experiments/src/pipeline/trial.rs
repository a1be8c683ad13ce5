//! Checkpoints of some bytes through the write path.

use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use standfast_format::{HashKind, JobId, Rank, SegmentId, name};
use standfast_gpu::gpu_queue::GpuQueue;
use standfast_reduce::{BlockEncoder, CodecChoice, CodecSpec, FilterChoice, PageHasher};
use standfast_store::{DirStore, Options, Store};
use standfast_write::{PackSettings, Packer, Pipeline, SegmentSettings};

use super::alone::zip;
use super::limited::Limited;
use super::program::Program;

/// Writes under way, as a job's default is.
const IO_THREADS: usize = 8;
const HASH_BYTES: usize = 16;

/// Where checkpoints go.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Device<'a> {
    /// A device of so many bytes a second, the same on every machine.
    Limited(f64),
    /// A directory of this machine.
    Disk(&'a Path),
}

impl Device<'_> {
    fn open(self) -> anyhow::Result<Arc<dyn Store>> {
        Ok(match self {
            Device::Limited(bytes_per_s) => Arc::new(Limited::new(bytes_per_s)),
            Device::Disk(dir) => {
                let options = Options { io_threads: IO_THREADS, ..Options::default() };
                Arc::new(DirStore::open(dir, &options)?)
            }
        })
    }

    /// The time that it takes for so many bytes, when they are all there.
    pub(super) fn store_s(self, bytes: u64, rounds: usize) -> anyhow::Result<f64> {
        if let Device::Limited(bytes_per_s) = self {
            return Ok(bytes as f64 / bytes_per_s);
        }
        let store = self.open()?;
        let piece = vec![0x5A; 1 << 20];
        let mut least_s = f64::INFINITY;
        for _ in 0..=rounds {
            let started = Instant::now();
            let mut writer = store.create("alone", None)?;
            let mut left = bytes as usize;
            while left > 0 {
                let now = left.min(piece.len());
                writer.append(&piece[..now])?;
                left -= now;
            }
            writer.seal()?;
            least_s = least_s.min(started.elapsed().as_secs_f64());
            store.remove("alone")?;
        }
        Ok(least_s)
    }
}

/// How checkpoints are written.
#[derive(Clone, Copy)]
pub(super) struct Trial<'a> {
    pub(super) pipeline: Pipeline,
    pub(super) codec: CodecChoice,
    pub(super) block_bytes: usize,
    /// Size of the numbers, 0 if unknown.
    pub(super) elem: u8,
    pub(super) threads: usize,
    pub(super) device: Device<'a>,
    /// Compresses in mode `gpu`.
    pub(super) gpu: Option<&'a Arc<GpuQueue>>,
}

/// What became of several checkpoints of the same bytes; of each figure the least.
#[derive(Clone, Copy)]
pub(super) struct Outcome {
    /// The first one of a write path, until its segment was sealed: memory is touched for the
    /// first time, and nothing is known about data and store.
    pub(super) first_s: f64,
    /// A later one.
    pub(super) total_s: f64,
    /// Of that, until all pages were in the pool or beyond.
    pub(super) blocked_s: f64,
    pub(super) stored_bytes: u64,
    /// What a program beside it lost meanwhile, in seconds of all its threads; 0 without one.
    pub(super) lost_s: f64,
}

/// How often is measured.
#[derive(Clone, Copy)]
pub(super) struct Rounds {
    /// Write paths that know nothing at first.
    pub(super) starts: usize,
    /// Checkpoints of each of them after its first.
    pub(super) later: usize,
}

/// All trials on the same bytes, taking turns: what disturbs the machine for a while disturbs all
/// of them.
pub(super) fn together(
    trials: &[Trial<'_>],
    data: &[u8],
    program: Option<&Program>,
    rounds: Rounds,
) -> anyhow::Result<Vec<Outcome>> {
    let mut outcomes = vec![Outcome::NONE; trials.len()];
    in_turn(trials, data, program, rounds, |at, is_first, once| match is_first {
        true => outcomes[at].first_s = outcomes[at].first_s.min(once.total_s),
        false => outcomes[at].take(once),
    })?;
    Ok(outcomes)
}

/// Times of all trials, round by round: those of one round can be compared, whatever the machine
/// was doing in another.
pub(super) struct Times {
    /// First checkpoints of write paths.
    pub(super) first_s: Vec<Vec<Option<f64>>>,
    /// Later ones.
    pub(super) later_s: Vec<Vec<Option<f64>>>,
}

/// As [`together`], every time kept. All trials run in the first start. In the others only those that
/// may still be the quickest, and the last one, with which they are compared: so there is time for more
/// rounds of those that matter.
pub(super) fn race(trials: &[Trial<'_>], data: &[u8], rounds: Rounds) -> anyhow::Result<Times> {
    let mut times = Times { first_s: Vec::new(), later_s: Vec::new() };
    let mut running: Vec<usize> = (0..trials.len()).collect();
    for _ in 0..rounds.starts.max(1) {
        let now: Vec<Trial<'_>> = running.iter().map(|at| trials[*at]).collect();
        in_turn(&now, data, None, Rounds { starts: 1, ..rounds }, |at, is_first, once| {
            let rows = if is_first { &mut times.first_s } else { &mut times.later_s };
            if at == 0 {
                rows.push(vec![None; trials.len()]);
            }
            rows.last_mut().expect("one was begun")[running[at]] = Some(once.total_s);
        })?;
        let least = |at: usize| {
            let rows = times.first_s.iter().chain(&times.later_s);
            rows.filter_map(|row| row[at]).fold(f64::INFINITY, f64::min)
        };
        let last = trials.len() - 1;
        let best = (0..last).map(least).fold(f64::INFINITY, f64::min);
        running =
            (0..trials.len()).filter(|at| *at == last || least(*at) <= SLOWER * best).collect();
    }
    Ok(times)
}

/// A trial that never came nearer to the quickest one is out of the race.
const SLOWER: f64 = 1.25;

/// Runs all trials in turn; `each` is told the trial, whether it was its first, and what came of it.
fn in_turn(
    trials: &[Trial<'_>],
    data: &[u8],
    program: Option<&Program>,
    rounds: Rounds,
    mut each: impl FnMut(usize, bool, Once),
) -> anyhow::Result<()> {
    for _ in 0..rounds.starts.max(1) {
        let mut paths = trials
            .iter()
            .map(|trial| trial.start(data))
            .collect::<anyhow::Result<Vec<WritePath>>>()?;
        for round in 0..=rounds.later.max(1) {
            for (at, path) in paths.iter_mut().enumerate() {
                each(at, round == 0, path.checkpoint(data, program)?);
            }
        }
    }
    Ok(())
}

/// Trials beside compressing by itself, in turn, of each the least time. The same work takes a third
/// longer at one moment than at another on a machine that others use too: what is compared must have had
/// the same chances. Each start has buffers of its own, for some lie better in memory than others.
pub(super) fn beside_zip(
    trials: &[Trial<'_>],
    data: &[u8],
    codec: CodecSpec,
    rounds: Rounds,
) -> anyhow::Result<BesideZip> {
    let block_bytes = trials[0].block_bytes;
    let mut least = BesideZip { zip_s: f64::INFINITY, total_s: vec![f64::INFINITY; trials.len()] };
    for _ in 0..rounds.starts.max(1) {
        let starts = trials.iter().map(|trial| trial.start(data));
        let mut paths = starts.collect::<anyhow::Result<Vec<WritePath>>>()?;
        let mut encoder = BlockEncoder::new(codec, FilterChoice::Auto, block_bytes);
        for _ in 0..=rounds.later {
            for (path, total_s) in paths.iter_mut().zip(&mut least.total_s) {
                *total_s = total_s.min(path.checkpoint(data, None)?.total_s);
                least.zip_s = least.zip_s.min(zip(&mut encoder, data, block_bytes).0);
            }
        }
    }
    Ok(least)
}

/// The least times of all rounds.
pub(super) struct BesideZip {
    /// Processor time of compressing, one thread.
    pub(super) zip_s: f64,
    /// Of each trial.
    pub(super) total_s: Vec<f64>,
}

impl Outcome {
    const NONE: Self = Self {
        first_s: f64::INFINITY,
        total_s: f64::INFINITY,
        blocked_s: f64::INFINITY,
        stored_bytes: 0,
        lost_s: f64::INFINITY,
    };

    fn take(&mut self, once: Once) {
        self.lost_s = self.lost_s.min(once.lost_s);
        if once.total_s < self.total_s {
            self.total_s = once.total_s;
            self.blocked_s = once.blocked_s;
            self.stored_bytes = once.stored_bytes;
        }
    }
}

/// One checkpoint.
struct Once {
    total_s: f64,
    blocked_s: f64,
    stored_bytes: u64,
    lost_s: f64,
}

/// A write path that lives on from checkpoint to checkpoint.
struct WritePath {
    store: Arc<dyn Store>,
    packer: Packer,
    page_bytes: usize,
    elem: u8,
    checkpoints: u8,
}

impl Trial<'_> {
    fn start(&self, data: &[u8]) -> anyhow::Result<WritePath> {
        let page_bytes = self.block_bytes.min(4096);
        let settings = PackSettings {
            // Nobody waits for a buffer: what is measured are the stages, not the pool.
            pool_bytes: data.len() + (16 << 20),
            block_bytes: self.block_bytes,
            page_bytes,
            pipeline: self.pipeline,
            threads: self.threads,
            codec: self.codec,
            filter: FilterChoice::Auto,
        };
        let store = self.device.open()?;
        let mut packer = match self.gpu {
            Some(queue) => {
                Packer::offloaded(Arc::clone(&store), settings, hasher(), Arc::clone(queue) as _)
            }
            None => Packer::new(Arc::clone(&store), settings, hasher()),
        };
        // As a job does while its regions are protected.
        packer.warm(data.len());
        packer.wait_warm();
        Ok(WritePath { store, packer, page_bytes, elem: self.elem, checkpoints: 0 })
    }
}

impl WritePath {
    fn checkpoint(&mut self, data: &[u8], program: Option<&Program>) -> anyhow::Result<Once> {
        self.checkpoints += 1;
        let id = SegmentId([self.checkpoints; 16]);
        let segments = SegmentSettings {
            job: JobId([1; 16]),
            rank: Rank(0),
            hash: HashKind::Xxh3,
            page_bytes: self.page_bytes as u32,
            created_ns: 0,
        };
        let before = program.map_or(0, Program::units);
        let started = Instant::now();
        let mut batch = self.packer.begin(segments);
        batch.open_segment(id, None);
        for page in data.chunks_exact(self.page_bytes) {
            let mut hash = [0; HASH_BYTES];
            batch.stage(page, self.elem, &mut hash)?;
            batch.keep_staged()?;
        }
        batch.close_segment()?;
        let pending = batch.finish();
        let blocked_s = started.elapsed().as_secs_f64();
        let sealed = pending.seal()?;
        let total_s = started.elapsed().as_secs_f64();
        let lost_s =
            program.map_or(0.0, |program| program.lost_s(total_s, program.units() - before));
        if !self.store.list("segments")?.is_empty() {
            self.store.remove(&name::segment(id))?;
        }
        let stored_bytes = sealed.iter().map(|segment| segment.compressed_bytes).sum();
        Ok(Once { total_s, blocked_s, stored_bytes, lost_s })
    }
}

fn hasher() -> PageHasher {
    PageHasher::new(HashKind::Xxh3, &[7; 32])
}
