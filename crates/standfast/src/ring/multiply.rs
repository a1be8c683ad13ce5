//! Who multiplies for the ring: the CPU, or with `ring_arithmetic = gpu` a GPU, where there is one.
//!
//! The device is opened when there is something to multiply, and kept. Without a usable one, and from
//! the moment that it fails, the CPU makes the same products; that is noted once.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use standfast_gpu::erasure::{DeviceArithmetic, STAR_BLOCK_BYTES};
use standfast_ring::{Arithmetic, Block, Cpu, Factors, Options};

use crate::config::RingArithmetic;

/// What a job multiplies with; clones share it.
#[derive(Clone)]
pub(crate) struct Multiplier {
    on: RingArithmetic,
    device: Arc<Mutex<Option<DeviceArithmetic>>>,
    notes: Arc<Mutex<Vec<String>>>,
}

impl Multiplier {
    pub(crate) fn new(on: RingArithmetic) -> Self {
        Self { on, device: Arc::default(), notes: Arc::default() }
    }

    /// How to encode: by the setting, which all ranks share, whether or not each has a device.
    pub(super) fn options(&self) -> Options {
        match self.on {
            RingArithmetic::Cpu => Options::default(),
            RingArithmetic::Gpu => Options { block_bytes: STAR_BLOCK_BYTES, ..Options::default() },
        }
    }

    /// What there is to tell since the last call.
    pub(crate) fn notes(&self) -> Vec<String> {
        std::mem::take(&mut *lock(&self.notes))
    }
}

impl Arithmetic for Multiplier {
    fn multiply(&mut self, factors: &Factors, block: Block<'_>, products: &mut [&mut [u8]]) {
        if self.on == RingArithmetic::Cpu {
            return Cpu.multiply(factors, block, products);
        }
        let notes = &self.notes;
        let open = || {
            let notes = Arc::clone(notes);
            DeviceArithmetic::open(move |why| lock(&notes).push(format!("the ring: {why}")))
        };
        lock(&self.device).get_or_insert_with(open).multiply(factors, block, products);
    }
}

fn lock<T>(shared: &Mutex<T>) -> MutexGuard<'_, T> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}
