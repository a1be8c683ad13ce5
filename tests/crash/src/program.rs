//! The program under test: a few regions whose contents follow from a seed and a step.
//!
//! Step `n` makes checkpoint version `n`, so whoever knows the seed knows what every version
//! must restore to. The contents are chosen to make every sort of reference: pages that never
//! change, pages new in every step, pages that return to what they were two steps ago, pages
//! that are zero in every other step, duplicates, and a region that ends within a page.

use std::sync::Arc;

use standfast::config::Loaded;
use standfast::{Job, Protected, Result};
use standfast_store::Store;

use crate::random;

/// Checkpoints that the program keeps.
pub const KEEP: usize = 2;
/// The job's name, and so the directory of its store.
pub const JOB: &str = "crash";

/// Words in a page of 4 KiB.
const PAGE: usize = 512;
/// Large enough that written pages are tracked by the kernel.
const FIELD_PAGES: usize = 300;
const NOISE_PAGES: usize = 40;
const MASK_BYTES: usize = 70_001;

/// How a program runs.
#[derive(Clone, Copy, Debug)]
pub struct Setup<'a> {
    /// Where the job's directory is.
    pub dir: &'a str,
    /// Decides the contents.
    pub seed: u64,
    /// Threads for hashing, compressing and writing. With one the order of steps never varies.
    pub threads: u32,
}

impl Setup<'_> {
    fn loaded(&self) -> Result<Loaded> {
        let threads = self.threads.to_string();
        let keep = KEEP.to_string();
        let settings = [
            ("store", self.dir),
            ("job", JOB),
            ("keep", &keep),
            ("lab.threads", &threads),
            ("lab.io_threads", &threads),
            // Small enough that a checkpoint has several segments.
            ("lab.segment", "512KiB"),
            ("lab.block", "64KiB"),
            ("lab.pool", "1MiB"),
        ];
        Loaded::load(&settings.map(|(name, text)| (name.into(), text.into())))
    }
}

/// A job and its regions.
pub struct Program {
    /// The job.
    pub job: Job,
    field: Protected<u64>,
    noise: Protected<u64>,
    mask: Protected<u8>,
    step: Protected<u64>,
    seed: u64,
}

/// What the regions hold after a step.
#[derive(Clone, PartialEq, Eq)]
pub struct Contents {
    field: Vec<u64>,
    noise: Vec<u64>,
    mask: Vec<u8>,
    step: u64,
}

impl Program {
    /// Opens the job on its directory and protects its regions.
    pub fn open(setup: &Setup<'_>) -> Result<Self> {
        Self::on(Job::open_loaded(setup.loaded()?)?, setup.seed)
    }

    /// The same on a store of the caller's making.
    pub fn open_store(setup: &Setup<'_>, store: Arc<dyn Store>) -> Result<Self> {
        Self::on(Job::open_store(setup.loaded()?, store)?, setup.seed)
    }

    fn on(job: Job, seed: u64) -> Result<Self> {
        Ok(Self {
            field: job.alloc("field", FIELD_PAGES * PAGE)?,
            noise: job.alloc("noise", NOISE_PAGES * PAGE)?,
            mask: job.alloc("mask", MASK_BYTES)?,
            step: job.alloc("step", 1)?,
            job,
            seed,
        })
    }

    /// Brings the regions to a step, writing only what differs, as a program would.
    pub fn go_to(&self, step: u64) {
        let wanted = contents(self.seed, step);
        write_changes(&mut self.field.write(), &wanted.field);
        write_changes(&mut self.noise.write(), &wanted.noise);
        write_changes(&mut self.mask.write(), &wanted.mask);
        self.step.write()[0] = step;
    }

    /// Whether the regions hold exactly what they held after a step.
    pub fn is_at(&self, step: u64) -> bool {
        let found = Contents {
            field: self.field.read().to_vec(),
            noise: self.noise.read().to_vec(),
            mask: self.mask.read().to_vec(),
            step: self.step.read()[0],
        };
        found == contents(self.seed, step)
    }

    /// Overwrites everything, so that a restore cannot succeed by doing nothing.
    pub fn scribble(&self) {
        self.field.write().fill(0xdead_beef);
        self.noise.write().fill(1);
        self.mask.write().fill(0xff);
        self.step.write()[0] = u64::MAX;
    }
}

/// What the regions hold after a step.
pub fn contents(seed: u64, step: u64) -> Contents {
    let field = (0..FIELD_PAGES).flat_map(|page| field_page(seed, step, page)).collect();
    let noise = (0..NOISE_PAGES).flat_map(|page| noise_page(seed ^ step, page)).collect();
    let mut mask = vec![0; MASK_BYTES];
    if step % 2 == 1 {
        mask[40_000..].fill(step as u8);
    }
    Contents { field, noise, mask, step }
}

/// Smooth numbers; a third of the pages never change, a third alternate between two states, a
/// tenth is new in every step.
fn field_page(seed: u64, step: u64, page: usize) -> impl Iterator<Item = u64> {
    let phase = match page % 10 {
        0..=2 => 0,
        3..=5 => step % 2,
        6 => step,
        7 => step / 3,
        // Equal pages: every multiple of ten plus eight or nine.
        _ => 7,
    };
    let base = if page % 10 >= 8 { 8.0 } else { page as f64 };
    let base = base + (seed % 1000) as f64;
    (0..PAGE).map(move |at| (base * 1000.0 + phase as f64 + at as f64 * 1e-3).to_bits())
}

/// Numbers that do not compress.
fn noise_page(seed: u64, page: usize) -> impl Iterator<Item = u64> {
    let mut state = seed.wrapping_mul(0x2545_f491_4f6c_dd1d) ^ page as u64;
    (0..PAGE).map(move |_| random(&mut state))
}

fn write_changes<T: Copy + PartialEq>(memory: &mut [T], wanted: &[T]) {
    for (memory, wanted) in memory.chunks_mut(PAGE).zip(wanted.chunks(PAGE)) {
        if memory != wanted {
            memory.copy_from_slice(wanted);
        }
    }
}
