//! How fast shards are computed on one core.

use std::time::Instant;

use standfast_ring::Result;
use standfast_ring::code::{Code, Family};
use standfast_ring::kernel::{Combine, Kernel};

/// Buffers that stay in a core's cache, and buffers that do not fit in any.
const IN_CACHE_BYTES: usize = 16 << 10;
const STREAMED_BYTES: usize = 12 << 20;

/// Rates of computing all shards of a group, in members' bytes per second.
#[derive(Clone, Copy, Debug)]
pub struct Speed {
    /// Members.
    pub k: usize,
    /// Shards.
    pub m: usize,
    /// Whether the buffers stay in the cache.
    pub in_cache: bool,
    /// This crate's best kernel.
    pub ours: f64,
    /// ISA-L on the same buffers, where it is linked.
    pub isal: Option<f64>,
    /// Copying as many bytes as are written, and reading the others.
    pub memory: f64,
}

/// Computes shards from members.
type Run<'a> = dyn Fn(&mut [&mut [u8]], &[&[u8]]) + 'a;

/// Measures the best kernel for one code.
pub fn speeds(k: usize, m: usize, in_cache: bool, rounds: usize) -> Result<Speed> {
    let code = Code::new(Family::Cauchy, k, m)?;
    let bytes = if in_cache { IN_CACHE_BYTES } else { STREAMED_BYTES };
    // Short runs are repeated, so that the clock does not matter.
    let repeat = if in_cache { 2000 / k } else { 1 };
    let mut buffers = Buffers::new(k, m, bytes);
    let combine = Combine::with_kernel(code.parity(), Kernel::best());
    let theirs = isal(code.parity());
    let mut timed = |run: &Run<'_>| {
        let started = Instant::now();
        (0..repeat).for_each(|_| buffers.run(run));
        (k * bytes * repeat) as f64 / started.elapsed().as_secs_f64()
    };
    let (mut ours, mut memory, mut isal) = (0.0f64, 0.0f64, None);
    // In turns, so that a quiet or a busy moment of the machine is shared.
    for _ in 0..rounds.max(1) {
        memory = memory.max(timed(&move_bytes));
        ours = ours.max(timed(&|out, of| combine.set(out, of)));
        isal = theirs.as_ref().map(|run| timed(run).max(isal.unwrap_or(0.0)));
    }
    Ok(Speed { k, m, in_cache, ours, isal, memory })
}

/// Measures one product added to a sum, the step of a star: bytes per second of ours, and of ISA-L
/// (or of reading and writing the same bytes where it is not linked).
pub(super) fn multiply_add_speeds(in_cache: bool, rounds: usize) -> (f64, Option<f64>, f64) {
    let bytes = if in_cache { IN_CACHE_BYTES } else { STREAMED_BYTES };
    let repeat = if in_cache { 4000 } else { 2 };
    let matrix = standfast_ring::Matrix::new(1, 1, |_, _| 0x8e);
    let combine = Combine::with_kernel(&matrix, Kernel::best());
    let mut buffers = Buffers::new(1, 1, bytes);
    let mut timed = |run: &Run<'_>| {
        let started = Instant::now();
        (0..repeat).for_each(|_| buffers.run(run));
        (bytes * repeat) as f64 / started.elapsed().as_secs_f64()
    };
    let (mut ours, mut memory, mut isal) = (0.0f64, 0.0f64, None);
    for _ in 0..rounds.max(1) {
        memory = memory.max(timed(&move_bytes));
        ours = ours.max(timed(&|out, of| combine.add(out, of)));
        if let Some(theirs) = isal_add(&matrix) {
            isal = Some(timed(&theirs).max(isal.unwrap_or(0.0)));
        }
    }
    (ours, isal, memory)
}

#[cfg(feature = "isal")]
fn isal_add(matrix: &standfast_ring::Matrix) -> Option<Box<Run<'static>>> {
    let encoder = super::isal::Encoder::new(matrix);
    Some(Box::new(move |out, of| encoder.multiply_add(out[0], of[0])))
}

#[cfg(not(feature = "isal"))]
fn isal_add(_: &standfast_ring::Matrix) -> Option<Box<Run<'static>>> {
    None
}

#[cfg(feature = "isal")]
fn isal(matrix: &standfast_ring::Matrix) -> Option<Box<Run<'static>>> {
    let encoder = super::isal::Encoder::new(matrix);
    Some(Box::new(move |out, of| encoder.encode(out, of)))
}

#[cfg(not(feature = "isal"))]
fn isal(_: &standfast_ring::Matrix) -> Option<Box<Run<'static>>> {
    None
}

/// Members and shards of one group, all in this process.
struct Buffers {
    members: Vec<Vec<u8>>,
    shards: Vec<Vec<u8>>,
}

impl Buffers {
    fn new(k: usize, m: usize, bytes: usize) -> Self {
        let member = |i: usize| (0..bytes).map(|at| (at * 31 + i * 97 + (at >> 8)) as u8).collect();
        // Written to, so that no page is first touched while the clock runs.
        Self { members: (0..k).map(member).collect(), shards: vec![vec![1; bytes]; m] }
    }

    fn run(&mut self, run: &Run<'_>) {
        let members: Vec<&[u8]> = self.members.iter().map(Vec::as_slice).collect();
        let mut shards: Vec<&mut [u8]> = self.shards.iter_mut().map(Vec::as_mut_slice).collect();
        run(&mut shards, &members);
        std::hint::black_box(&mut shards);
    }
}

/// What no code can beat: reads every member and writes every shard.
fn move_bytes(shards: &mut [&mut [u8]], members: &[&[u8]]) {
    for (shard, member) in shards.iter_mut().zip(members) {
        shard.copy_from_slice(member);
    }
    for member in members.iter().skip(shards.len()) {
        let words = member.chunks_exact(8).map(|word| word.try_into().expect("8 bytes"));
        std::hint::black_box(words.fold(0, |sum, word| sum ^ u64::from_le_bytes(word)));
    }
}

#[cfg(all(test, feature = "isal"))]
mod tests {
    use super::*;

    #[test]
    fn isal_computes_the_same_shards() {
        for (k, m) in [(4, 2), (8, 8), (20, 5)] {
            let code = Code::new(Family::Cauchy, k, m).unwrap();
            let (combine, theirs) = (Combine::new(code.parity()), isal(code.parity()).unwrap());
            let mut buffers = Buffers::new(k, m, 1000);
            buffers.run(&|out, of| combine.set(out, of));
            let ours = buffers.shards.clone();
            buffers.run(&theirs);
            assert_eq!(buffers.shards, ours);
        }
        let matrix = standfast_ring::Matrix::new(1, 1, |_, _| 0x8e);
        let (combine, theirs) = (Combine::new(&matrix), isal_add(&matrix).unwrap());
        let mut buffers = Buffers::new(1, 1, 1000);
        let before = buffers.shards.clone();
        buffers.run(&|out, of| combine.add(out, of));
        buffers.run(&theirs);
        assert_eq!(buffers.shards, before, "added twice is not added");
    }
}
