//! Blocks of several ranks through the broker: each comes back, and how fast that is.

use std::time::Instant;

use anyhow::{Result, anyhow};
use standfast_format::CodecKind;
use standfast_gpu::gpu_queue::{BLOCK_BYTES, GpuQueue};
use standfast_reduce::{BlockDecoder, Offload};
use standfast_testkit::vectors;

use crate::report::Report;

/// Blocks of each thread.
const BLOCKS: usize = 64;

pub(crate) fn all(report: &mut Report) -> Result<()> {
    let broker = GpuQueue::open(|why| eprintln!("{why}")).ok_or_else(|| anyhow!("no broker"))?;
    for (name, make, elem) in [
        ("noisy f64, float codec", vectors::noisy_f64 as fn(usize, u64) -> Vec<u8>, 8),
        ("bf16 weights, float codec", vectors::bf16_weights, 2),
        ("records, Deflate", vectors::records, 0),
        ("noise, Deflate", vectors::random, 0),
    ] {
        let blocks: Vec<Vec<u8>> = (1..=8).map(|seed| make(BLOCK_BYTES, seed)).collect();
        let mut wrong = Vec::new();
        for raw in &blocks {
            let mut out = Vec::new();
            match broker.encode(0, raw, elem, &mut out) {
                None => wrong.push(format!("{name}: refused")),
                Some((CodecKind::None, _)) => {}
                Some((codec, filter)) => {
                    let mut decoder = BlockDecoder::new(BLOCK_BYTES);
                    if decoder.decode(codec, filter, &out, raw.len()).ok() != Some(raw) {
                        wrong.push(format!("{name}: does not come back"));
                    }
                }
            }
        }
        report.check(&format!("broker: {name}"), blocks.len(), &wrong)?;
        let threads = broker.callers();
        let started = Instant::now();
        std::thread::scope(|scope| {
            for thread in 0..threads {
                let (broker, blocks) = (&broker, &blocks);
                scope.spawn(move || {
                    let mut out = Vec::new();
                    for block in blocks.iter().cycle().take(BLOCKS) {
                        broker.encode(thread as u32 % 8, block, elem, &mut out);
                    }
                });
            }
        });
        let rate = (threads * BLOCKS * BLOCK_BYTES) as f64 / started.elapsed().as_secs_f64() / 1e9;
        let note = "8 ranks, both transfers and all copies included";
        report.bench(&format!("broker: {name}"), rate, "GB/s", note)?;
    }
    Ok(())
}
