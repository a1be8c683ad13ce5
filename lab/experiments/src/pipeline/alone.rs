//! The stages each alone: what no pipeline of them can beat.

use std::hint::black_box;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use standfast_format::CodecKind;
use standfast_gpu::gpu_queue::{self, GpuQueue};
use standfast_reduce::{BlockEncoder, CodecSpec, FilterChoice, Offload};
use standfast_write::Pipeline;

use super::trial::{Device, Rounds, Trial, together};

/// Faster than any path here: only what leads to the store counts.
const ENDLESS: Device<'_> = Device::Limited(1e12);

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
        let mut encoder = BlockEncoder::new(codec, FilterChoice::Auto, block_bytes);
        let (mut zip_s, mut stored_bytes) = (f64::INFINITY, 0);
        for _ in 0..rounds.max(1) {
            let (once_s, bytes) = zip(&mut encoder, data, block_bytes);
            (zip_s, stored_bytes) = (zip_s.min(once_s), bytes);
        }
        Ok(Self { collect_s: collect_s(data, block_bytes, rounds)?, zip_s, stored_bytes })
    }
}

/// Some bytes, block by block in their order.
pub(super) struct Order(Vec<Zipped>);

impl Order {
    pub(super) fn measure(data: &[u8], codec: CodecSpec, block_bytes: usize) -> Self {
        let mut encoder = BlockEncoder::new(codec, FilterChoice::Auto, block_bytes);
        Self(zip_blocks(&mut encoder, data, block_bytes))
    }

    /// Processor time of compressing all of them.
    pub(super) fn zip_s(&self) -> f64 {
        self.0.iter().map(|block| block.zip_s).sum()
    }

    /// The time that no pipeline of one compressing thread can beat, by that of its slowest stage,
    /// however long its queues are: nothing is stored before it is compressed, so the store waits
    /// where blocks that take long come first.
    pub(super) fn times(&self, bytes_per_s: f64) -> f64 {
        let store_s = |block: &Zipped| block.bytes as f64 / bytes_per_s;
        let (mut zipped_s, mut stored_s) = (0.0, 0.0_f64);
        for block in &self.0 {
            zipped_s += block.zip_s;
            stored_s = stored_s.max(zipped_s) + store_s(block);
        }
        stored_s / self.0.iter().map(store_s).sum::<f64>().max(zipped_s)
    }
}

/// As [`Alone::measure`] with the device: as many threads as keep it busy hand it blocks, and
/// nothing is stored.
pub(super) fn alone_on_gpu(
    data: &[u8],
    elem: u8,
    queue: &GpuQueue,
    rounds: usize,
) -> anyhow::Result<Alone> {
    let blocks: Vec<&[u8]> = data.chunks_exact(gpu_queue::BLOCK_BYTES).collect();
    let (next, stored) = (AtomicUsize::new(0), AtomicU64::new(0));
    let work = || {
        let mut out = Vec::new();
        while let Some(block) = blocks.get(next.fetch_add(1, Ordering::Relaxed)) {
            let bytes = match queue.encode(0, block, elem, &mut out) {
                Some((codec, _)) if codec != CodecKind::None => out.len(),
                _ => block.len(),
            };
            stored.fetch_add(bytes as u64, Ordering::Relaxed);
        }
    };
    let mut zip_s = f64::INFINITY;
    for _ in 0..rounds.max(1) {
        next.store(0, Ordering::Relaxed);
        stored.store(0, Ordering::Relaxed);
        let started = Instant::now();
        std::thread::scope(|scope| {
            (0..queue.callers()).for_each(|_| drop(scope.spawn(work)));
        });
        zip_s = zip_s.min(started.elapsed().as_secs_f64());
    }
    let collect_s = collect_s(data, gpu_queue::BLOCK_BYTES, rounds)?;
    Ok(Alone { collect_s, zip_s, stored_bytes: stored.into_inner() })
}

/// The time of collecting alone.
fn collect_s(data: &[u8], block_bytes: usize, rounds: usize) -> anyhow::Result<f64> {
    let trial = Trial {
        pipeline: Pipeline::None,
        codec: CodecSpec::NONE.into(),
        block_bytes,
        elem: 0,
        threads: 1,
        device: ENDLESS,
        gpu: None,
    };
    Ok(together(&[trial], data, None, Rounds { starts: 1, later: rounds })?[0].blocked_s)
}

/// Processor time of this thread.
fn thread_time() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

/// Processor time of compressing everything, and what is left of it.
pub(super) fn zip(encoder: &mut BlockEncoder, data: &[u8], block_bytes: usize) -> (f64, u64) {
    let zipped = zip_blocks(encoder, data, block_bytes);
    (zipped.iter().map(|block| block.zip_s).sum(), zipped.iter().map(|block| block.bytes).sum())
}

/// What a block takes to be compressed, and what is left of it.
struct Zipped {
    zip_s: f64,
    bytes: u64,
}

fn zip_blocks(encoder: &mut BlockEncoder, data: &[u8], block_bytes: usize) -> Vec<Zipped> {
    let mut before = thread_time();
    let mut zip = |block| {
        let bytes = black_box(encoder.encode(block, 0).bytes.len()) as u64;
        let (began, now) = (before, thread_time());
        before = now;
        Zipped { zip_s: (now - began).as_secs_f64(), bytes }
    };
    data.chunks(block_bytes).map(&mut zip).collect()
}
