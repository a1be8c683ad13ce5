//! Who makes a star's products: the CPU, unless the caller brings another that gives the same bytes.

use crate::kernel::Combine;
use crate::matrix::Matrix;
use crate::topology::Piece;

/// Most factors of one call: as many rows as a kernel makes in one pass.
pub const FACTORS_MAX: usize = 8;

/// A block of a piece, read and checked.
#[derive(Clone, Copy, Debug)]
pub struct Block<'a> {
    /// Whose it is.
    pub piece: Piece,
    /// Where it starts in the piece's file.
    pub at: u64,
    /// All of it.
    pub bytes: &'a [u8],
}

/// Multiplies the blocks of a star, for encoding and rebuilding alike.
///
/// # Contract
/// - The products are those of [`Factors::multiply`], bit by bit.
/// - It always succeeds: whoever can fail does the same work by [`Factors::multiply`] then.
pub trait Arithmetic: Send {
    /// Every product becomes its factor times as much of the block as it is long.
    fn multiply(&mut self, factors: &Factors, block: Block<'_>, products: &mut [&mut [u8]]);
}

/// The kernels of this crate.
#[derive(Clone, Copy, Debug, Default)]
pub struct Cpu;

impl Arithmetic for Cpu {
    fn multiply(&mut self, factors: &Factors, block: Block<'_>, products: &mut [&mut [u8]]) {
        factors.multiply(block.bytes, products);
    }
}

/// What a block is multiplied with, at most [`FACTORS_MAX`], ready for the CPU.
pub struct Factors {
    values: Vec<u8>,
    together: Combine,
    /// Each by itself, for products of different lengths.
    single: Vec<Combine>,
}

impl Factors {
    pub(super) fn new(values: Vec<u8>) -> Self {
        let together = Combine::new(&Matrix::new(values.len(), 1, |row, _| values[row]));
        let single = values.iter().map(|factor| Combine::factor(*factor)).collect();
        Self { values, together, single }
    }

    /// The factors, one for each product.
    pub fn values(&self) -> &[u8] {
        &self.values
    }

    /// The products, on the CPU.
    ///
    /// # Panics
    /// Unless there is a product for each factor, none longer than the block.
    pub fn multiply(&self, block: &[u8], products: &mut [&mut [u8]]) {
        let length = products.first().map_or(0, |product| product.len());
        if products.iter().all(|product| product.len() == length) {
            return self.together.set(products, &[&block[..length]]);
        }
        assert_eq!(products.len(), self.single.len(), "a product for each factor");
        for (factor, product) in self.single.iter().zip(products) {
            let own = &block[..product.len()];
            factor.set(&mut [&mut **product], &[own]);
        }
    }
}
