//! Compressed chunks, one after the other, each at a multiple of 16.
//!
//! Why the padding: devices copy 16 bytes at once. It costs 8 bytes a chunk on average.

/// Chunks start at multiples of this.
pub const CHUNK_ALIGN: usize = 16;

/// `bytes` rounded up to where the next chunk may start.
pub fn aligned(bytes: usize) -> usize {
    bytes.next_multiple_of(CHUNK_ALIGN)
}

/// The lengths of packed chunks; with them every chunk's place is known.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Packed {
    sizes: Vec<u32>,
}

impl Packed {
    /// Of chunks with these lengths.
    pub fn new(sizes: Vec<u32>) -> Self {
        Packed { sizes }
    }

    /// Lengths of the chunks, without padding.
    pub fn sizes(&self) -> &[u32] {
        &self.sizes
    }

    /// Length of all, with padding.
    pub fn bytes(&self) -> usize {
        self.sizes.iter().map(|size| aligned(*size as usize)).sum()
    }

    /// Where each chunk is.
    pub fn ranges(&self) -> impl Iterator<Item = std::ops::Range<usize>> + '_ {
        let mut next = 0;
        self.sizes.iter().map(move |size| {
            let start = next;
            next += aligned(*size as usize);
            start..start + *size as usize
        })
    }
}

#[cfg(test)]
mod tests;
