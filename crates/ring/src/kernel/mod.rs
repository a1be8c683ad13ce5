//! Products of matrices and slices of bytes, as fast as the processor can.
//!
//! Data: [`Combine`] holds a matrix ready for one [`Kernel`]; [`Combine::set`] and
//! [`Combine::add`] run it over slices. Encoding, rebuilding and one product of a star all are the
//! same operation.
//!
//! Why slices: a pass makes up to eight rows from up to sixteen sources in registers. A larger
//! matrix needs several passes; they go over a stretch that stays in the cache, so that memory is
//! read once.
//!
//! Invariants:
//! - Every kernel gives the same bytes as [`crate::field`].
//! - A kernel runs only where the processor has its instructions.

#[cfg(target_arch = "aarch64")]
mod arm;
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
mod lanes;
mod portable;
#[cfg(target_arch = "x86_64")]
mod x86;

use std::sync::OnceLock;

use crate::matrix::Matrix;

/// Rows and columns of one pass.
const ROWS: usize = 8;
const COLUMNS: usize = 16;

/// Bytes of each slice that several passes go over: two dozen of them fit in a core's cache.
const SLICE_BYTES: usize = 16 << 10;

/// Which instructions multiply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kernel {
    /// A table of 256 products for each factor; any processor.
    Portable,
    /// 16 bytes at once, by two shuffles of 16 products.
    Neon,
    /// 32 bytes at once, by two shuffles of 16 products.
    Avx2,
    /// 64 bytes at once, by two shuffles of 16 products.
    Avx512,
    /// 64 bytes at once, by one product with a matrix of bits.
    Gfni,
}

impl Kernel {
    /// Every kernel, from the slowest to the fastest.
    pub const ALL: [Kernel; 5] =
        [Kernel::Portable, Kernel::Neon, Kernel::Avx2, Kernel::Avx512, Kernel::Gfni];

    /// The fastest one that this processor has.
    pub fn best() -> Self {
        let fastest = Self::ALL.into_iter().rev().find(|kernel| kernel.is_available());
        fastest.expect("the portable kernel runs anywhere")
    }

    /// Whether this processor has the instructions.
    #[cfg(target_arch = "x86_64")]
    pub fn is_available(self) -> bool {
        let wide = || is_x86_feature_detected!("avx512f") && is_x86_feature_detected!("avx512bw");
        match self {
            Kernel::Portable => true,
            Kernel::Neon => false,
            Kernel::Avx2 => is_x86_feature_detected!("avx2"),
            Kernel::Avx512 => wide(),
            Kernel::Gfni => wide() && is_x86_feature_detected!("gfni"),
        }
    }

    /// Whether this processor has the instructions.
    #[cfg(not(target_arch = "x86_64"))]
    pub fn is_available(self) -> bool {
        match self {
            Kernel::Portable => true,
            Kernel::Neon => cfg!(target_arch = "aarch64"),
            Kernel::Avx2 | Kernel::Avx512 | Kernel::Gfni => false,
        }
    }

    /// The word for this kernel.
    pub fn name(self) -> &'static str {
        match self {
            Kernel::Portable => "portable",
            Kernel::Neon => "neon",
            Kernel::Avx2 => "avx2",
            Kernel::Avx512 => "avx512",
            Kernel::Gfni => "gfni",
        }
    }
}

/// A matrix ready to multiply.
pub struct Combine {
    rows: usize,
    columns: usize,
    factors: Factors,
}

/// The cells of a matrix as a kernel wants them, row by row.
enum Factors {
    Portable(Vec<u8>),
    #[cfg(target_arch = "aarch64")]
    Neon(Vec<lanes::Shuffle>),
    #[cfg(target_arch = "x86_64")]
    Avx2(Vec<lanes::Shuffle>),
    #[cfg(target_arch = "x86_64")]
    Avx512(Vec<lanes::Shuffle>),
    #[cfg(target_arch = "x86_64")]
    Gfni(Vec<x86::Bits>),
}

impl Factors {
    fn new(matrix: &Matrix, kernel: Kernel) -> Self {
        let cells = matrix.cells();
        #[cfg(target_arch = "aarch64")]
        if kernel == Kernel::Neon {
            return Self::Neon(cells.iter().map(|&f| f.into()).collect());
        }
        #[cfg(target_arch = "x86_64")]
        match kernel {
            Kernel::Portable | Kernel::Neon => {}
            Kernel::Avx2 => return Self::Avx2(cells.iter().map(|&f| f.into()).collect()),
            Kernel::Avx512 => return Self::Avx512(cells.iter().map(|&f| f.into()).collect()),
            Kernel::Gfni => return Self::Gfni(cells.iter().map(|&f| f.into()).collect()),
        }
        Self::Portable(cells.to_vec())
    }
}

/// One pass: a part of the matrix over a stretch of the slices.
struct Pass<'a, 'b> {
    /// Where the first factor is, and how many there are in a row of the whole matrix.
    first: usize,
    stride: usize,
    sources: &'a [&'b [u8]],
    start: usize,
    bytes: usize,
    /// Whether the products are added to what is there.
    add: bool,
}

impl Combine {
    /// For the fastest kernel.
    pub fn new(matrix: &Matrix) -> Self {
        Self::with_kernel(matrix, Kernel::best())
    }

    /// For a given kernel.
    ///
    /// # Panics
    /// If the processor does not have it.
    pub fn with_kernel(matrix: &Matrix, kernel: Kernel) -> Self {
        assert!(kernel.is_available(), "this processor has no {}", kernel.name());
        let (rows, columns) = (matrix.rows(), matrix.columns());
        Self { rows, columns, factors: Factors::new(matrix, kernel) }
    }

    /// A single factor.
    pub fn factor(factor: u8) -> Self {
        Self::new(&Matrix::new(1, 1, |_, _| factor))
    }

    /// `out` becomes the matrix times the sources.
    ///
    /// # Panics
    /// Unless there is a source for each column and an output for each row, all of one length.
    pub fn set(&self, out: &mut [&mut [u8]], sources: &[&[u8]]) {
        self.run(out, sources, false);
    }

    /// The matrix times the sources is added to `out`.
    ///
    /// # Panics
    /// As [`Combine::set`].
    pub fn add(&self, out: &mut [&mut [u8]], sources: &[&[u8]]) {
        self.run(out, sources, true);
    }

    fn run(&self, out: &mut [&mut [u8]], sources: &[&[u8]], add: bool) {
        assert_eq!(sources.len(), self.columns, "a source for each column");
        assert_eq!(out.len(), self.rows, "an output for each row");
        let bytes = out.first().map_or(0, |out| out.len());
        assert!(out.iter().all(|out| out.len() == bytes), "outputs of one length");
        assert!(sources.iter().all(|source| source.len() == bytes), "sources of that length");
        if self.columns == 0 && !add {
            out.iter_mut().for_each(|out| out.fill(0));
        }
        let once = self.rows <= ROWS && self.columns <= COLUMNS;
        let slice = if once { bytes.max(1) } else { SLICE_BYTES };
        for start in (0..bytes).step_by(slice) {
            let length = slice.min(bytes - start);
            for (column, sources) in sources.chunks(COLUMNS).enumerate() {
                for (row, out) in out.chunks_mut(ROWS).enumerate() {
                    let first = row * ROWS * self.columns + column * COLUMNS;
                    let add = add || column > 0;
                    let stride = self.columns;
                    self.pass(Pass { first, stride, sources, start, bytes: length, add }, out);
                }
            }
        }
    }

    fn pass(&self, pass: Pass<'_, '_>, out: &mut [&mut [u8]]) {
        match &self.factors {
            Factors::Portable(cells) => portable::pass(cells, &pass, out),
            #[cfg(target_arch = "aarch64")]
            Factors::Neon(cells) => arm::neon(cells, &pass, out),
            #[cfg(target_arch = "x86_64")]
            Factors::Avx2(cells) => x86::avx2(cells, &pass, out),
            #[cfg(target_arch = "x86_64")]
            Factors::Avx512(cells) => x86::avx512(cells, &pass, out),
            #[cfg(target_arch = "x86_64")]
            Factors::Gfni(cells) => x86::gfni(cells, &pass, out),
        }
    }
}

/// `sum += bytes`, byte by byte: exclusive or.
///
/// # Panics
/// Unless both have one length.
pub fn add(sum: &mut [u8], bytes: &[u8]) {
    add_all(sum, &[bytes]);
}

/// Adds several in one pass.
///
/// # Panics
/// Unless all have one length.
pub fn add_all(sum: &mut [u8], parts: &[&[u8]]) {
    // Products with one: in vectors as wide as the processor has them.
    static ONES: [OnceLock<Combine>; COLUMNS] = [const { OnceLock::new() }; COLUMNS];
    for parts in parts.chunks(COLUMNS) {
        let ones = || Combine::new(&Matrix::new(1, parts.len(), |_, _| 1));
        ONES[parts.len() - 1].get_or_init(ones).add(&mut [&mut *sum], parts);
    }
}

#[cfg(test)]
mod tests;
