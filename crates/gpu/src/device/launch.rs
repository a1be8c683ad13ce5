//! How a kernel is started: its shape and its arguments.

use super::DeviceSlice;

/// How many blocks of how many threads, with how much dynamic shared memory.
#[derive(Clone, Copy)]
#[cfg_attr(not(feature = "cuda"), expect(dead_code, reason = "only a driver reads it"))]
pub(crate) struct Shape {
    pub(crate) grid: (u32, u32),
    pub(crate) threads: u32,
    pub(crate) shared_bytes: u32,
}

impl Shape {
    pub(crate) fn blocks(blocks: u64, threads: u32) -> Self {
        let blocks = u32::try_from(blocks).expect("a grid's blocks fit 32 bits");
        Shape { grid: (blocks, 1), threads, shared_bytes: 0 }
    }

    pub(crate) fn shared(self, shared_bytes: u32) -> Self {
        Shape { shared_bytes, ..self }
    }
}

/// A kernel's arguments, each in memory of its own.
#[derive(Default)]
pub(crate) struct Args(pub(super) Vec<Box<[u64]>>);

impl Args {
    pub(crate) fn new() -> Self {
        Args::default()
    }

    pub(crate) fn word(mut self, value: u64) -> Self {
        self.0.push(Box::new([value]));
        self
    }

    /// Little-endian, so the low half is what a 32-bit argument reads.
    pub(crate) fn half(self, value: u32) -> Self {
        self.word(u64::from(value))
    }

    pub(crate) fn slice(self, slice: DeviceSlice<'_>) -> Self {
        self.word(slice.address())
    }

    /// A structure of 64-bit words.
    pub(crate) fn words(mut self, words: &[u64]) -> Self {
        self.0.push(words.into());
        self
    }
}
