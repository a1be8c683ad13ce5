//! Products of matrices and shards on the device.

use crate::device::{Args, DeviceBuffer, DeviceSlice, Gpu, Shape, Stream};
use crate::erasure::{Matrix, PIECES_MAX};
use crate::error::{Error, Result};
use crate::kernels::{ERASURE, Kernel};

/// Rows that one block takes, and the bytes of a coefficient's look-up tables; as in the source.
const ROWS: usize = 8;
const TABLE_BYTES: usize = 32;

const MULTIPLY_ROWS: Kernel =
    Kernel::new(&ERASURE, "multiply_rows").shared((ROWS * PIECES_MAX * TABLE_BYTES) as u32);
#[cfg(test)]
pub(crate) const KERNELS: &[Kernel] = &[MULTIPLY_ROWS];

const THREADS: u32 = 256;
/// Bytes of a shard that one thread takes at a time.
const PIECE: u64 = 16;

/// A matrix on the device, ready to multiply shards.
pub struct DeviceErasure {
    matrix: Matrix,
    cells: DeviceBuffer,
}

impl DeviceErasure {
    /// Puts the matrix there. At most [`PIECES_MAX`] rows and columns.
    pub fn new(stream: &Stream, matrix: Matrix) -> Result<Self> {
        if matrix.rows() > PIECES_MAX || matrix.columns() > PIECES_MAX {
            return Err(Error::invalid(format!(
                "a matrix of {} by {}, at most {PIECES_MAX}",
                matrix.rows(),
                matrix.columns()
            )));
        }
        let gpu: &Gpu = stream.gpu();
        let cells = gpu.allocate("a code's matrix", matrix.cells().len())?;
        stream.upload(matrix.cells(), cells.slice())?;
        Ok(DeviceErasure { matrix, cells })
    }

    /// What it multiplies with.
    pub(super) fn matrix(&self) -> &Matrix {
        &self.matrix
    }

    /// Queues the product: `out` becomes the matrix times `shards`. All have one length and start
    /// at multiples of 16; none of `out` is one of `shards`.
    pub fn queue(
        &self,
        stream: &Stream,
        shards: &[DeviceSlice<'_>],
        out: &[DeviceSlice<'_>],
    ) -> Result<()> {
        let (rows, columns) = (self.matrix.rows(), self.matrix.columns());
        if shards.len() != columns || out.len() != rows {
            return Err(Error::invalid(format!(
                "{} shards in and {} out with a matrix of {rows} by {columns}",
                shards.len(),
                out.len()
            )));
        }
        let bytes = shards.first().map_or(0, |shard| shard.bytes());
        let fits = |shard: &DeviceSlice<'_>| {
            shard.bytes() == bytes && shard.address().is_multiple_of(PIECE)
        };
        if !shards.iter().chain(out).all(fits) {
            return Err(Error::invalid("shards of one length, each at a multiple of 16"));
        }
        let mut addresses = [0; 2 * PIECES_MAX];
        let (inputs, outputs) = addresses.split_at_mut(PIECES_MAX);
        inputs.iter_mut().zip(shards).for_each(|(to, shard)| *to = shard.address());
        outputs.iter_mut().zip(out).for_each(|(to, shard)| *to = shard.address());
        let args = Args::new()
            .words(&addresses)
            .half(columns as u32)
            .half(rows as u32)
            .slice(self.cells.slice())
            .word(bytes as u64);
        // Blocks that stay: each builds its tables once.
        let blocks_max = u64::from(stream.gpu().multiprocessors()) * 16;
        let blocks = (bytes as u64).div_ceil(PIECE * u64::from(THREADS)).min(blocks_max);
        let mut shape = Shape::blocks(blocks, THREADS);
        shape.grid.1 = rows.div_ceil(ROWS) as u32;
        shape.shared_bytes = (rows.min(ROWS) * columns * TABLE_BYTES) as u32;
        // SAFETY: the kernel's arguments in order; lengths and alignment checked above.
        unsafe { stream.launch(MULTIPLY_ROWS, shape, args) }
    }
}
