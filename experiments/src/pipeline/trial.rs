//! One checkpoint's bytes through the write path, and its stages each alone.

use std::hint::black_box;
use std::sync::Arc;
use std::time::{Duration, Instant};

use standfast_format::{HashKind, JobId, Rank, SegmentId};
use standfast_pack::{PackSettings, Packer, Pipeline, SegmentSettings};
use standfast_reduce::{BlockEncoder, CodecChoice, CodecSpec, FilterChoice, PageHasher};
use standfast_store::Store;

use super::limited::Limited;

/// Faster than any path here: only what leads to the store counts.
const ENDLESS: f64 = 1e12;

/// How one checkpoint is written.
#[derive(Clone, Copy)]
pub(super) struct Trial {
    pub(super) pipeline: Pipeline,
    pub(super) codec: CodecChoice,
    pub(super) block_bytes: usize,
    pub(super) threads: usize,
    pub(super) bytes_per_s: f64,
}

/// What became of two checkpoints of the same bytes.
#[derive(Clone, Copy)]
pub(super) struct Outcome {
    /// The first one, until its segment was sealed: memory is touched for the first time, and
    /// nothing is known about data and store.
    pub(super) first_s: f64,
    /// The second one.
    pub(super) total_s: f64,
    /// Of that, until all pages were in the pool or beyond.
    pub(super) blocked_s: f64,
    pub(super) stored_bytes: u64,
}

impl Trial {
    fn settings(&self, data_bytes: usize) -> PackSettings {
        PackSettings {
            // Nobody waits for a buffer: what is measured are the stages, not the pool.
            pool_bytes: data_bytes + (16 << 20),
            block_bytes: self.block_bytes,
            page_bytes: self.block_bytes.min(4096),
            pipeline: self.pipeline,
            threads: self.threads,
            codec: self.codec,
            filter: FilterChoice::Auto,
        }
    }

    /// The quickest of several rounds, each with a write path that knows nothing at first.
    pub(super) fn best(&self, data: &[u8], rounds: usize) -> anyhow::Result<Outcome> {
        let mut best = self.run(data)?;
        for _ in 1..rounds {
            let next = self.run(data)?;
            let first_s = best.first_s.min(next.first_s);
            best = if next.total_s < best.total_s { next } else { best };
            best.first_s = first_s;
        }
        Ok(best)
    }

    fn run(&self, data: &[u8]) -> anyhow::Result<Outcome> {
        let store: Arc<dyn Store> = Arc::new(Limited::new(self.bytes_per_s));
        let packer = Packer::new(store, self.settings(data.len()), hasher());
        let (first_s, ..) = self.checkpoint(&packer, data)?;
        let (total_s, blocked_s, stored_bytes) = self.checkpoint(&packer, data)?;
        Ok(Outcome { first_s, total_s, blocked_s, stored_bytes })
    }

    fn checkpoint(&self, packer: &Packer, data: &[u8]) -> anyhow::Result<(f64, f64, u64)> {
        let page_bytes = self.settings(0).page_bytes;
        let segments = SegmentSettings {
            job: JobId([1; 16]),
            rank: Rank(0),
            hash: HashKind::Xxh3,
            page_bytes: page_bytes as u32,
            created_ns: 0,
        };
        let started = Instant::now();
        let mut batch = packer.begin(segments);
        let mut hashes = Vec::with_capacity(data.len() / page_bytes * HASH_BYTES);
        batch.open_segment(SegmentId([2; 16]), None);
        for page in data.chunks_exact(page_bytes) {
            let mut hash = [0; HASH_BYTES];
            batch.stage(page, 0, &mut hash)?;
            batch.keep_staged();
            hashes.extend_from_slice(&hash);
        }
        batch.close_segment(Arc::new(hashes));
        let pending = batch.finish();
        let blocked_s = started.elapsed().as_secs_f64();
        let sealed = pending.seal()?;
        let total_s = started.elapsed().as_secs_f64();
        Ok((total_s, blocked_s, sealed.iter().map(|segment| segment.compressed_bytes).sum()))
    }
}

const HASH_BYTES: usize = 16;

fn hasher() -> PageHasher {
    PageHasher::new(HashKind::Xxh3, &[7; 32])
}

/// The time that each stage needs for some bytes when it has the machine to itself.
#[derive(Clone, Copy)]
pub(super) struct Alone {
    pub(super) collect_s: f64,
    /// Processor time of one thread: what else runs on the machine must not count.
    pub(super) zip_s: f64,
    /// What is stored of it.
    pub(super) stored_bytes: u64,
}

impl Alone {
    pub(super) fn measure(
        data: &[u8],
        codec: CodecSpec,
        block_bytes: usize,
        rounds: usize,
    ) -> anyhow::Result<Self> {
        let collecting = Trial {
            pipeline: Pipeline::None,
            codec: CodecSpec::NONE.into(),
            block_bytes,
            threads: 1,
            bytes_per_s: ENDLESS,
        };
        let collect_s = collecting.best(data, rounds)?.blocked_s;
        let (mut zip_s, mut stored_bytes) = (f64::INFINITY, 0);
        let mut encoder = BlockEncoder::new(codec, FilterChoice::Auto, block_bytes);
        for _ in 0..rounds.max(1) {
            let started = thread_time();
            let sizes = data.chunks(block_bytes).map(|block| encoder.encode(block, 0).bytes.len());
            stored_bytes = black_box(sizes.sum::<usize>()) as u64;
            zip_s = zip_s.min((thread_time() - started).as_secs_f64());
        }
        Ok(Self { collect_s, zip_s, stored_bytes })
    }
}

/// Processor time of this thread.
fn thread_time() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}
