//! The products of a star on the device; when it fails, on the CPU.
//!
//! Data: a block, from the host or where it lies on the device -> products for up to eight rows ->
//! messages in host memory. Sums of what arrives stay with the CPU: it has them in its cache.
//!
//! Invariants:
//! - A fault is said once; the CPU makes the products of that block and of all that follow.
//! - Nothing of a product that failed on the device is sent.

use standfast_ring::topology::Piece;
use standfast_ring::{Arithmetic, Block, FACTORS_MAX, Factors};

use crate::device::{DeviceSlice, Gpu};
use crate::erasure::{HostErasure, Input, Matrix, Output, Room};
use crate::error::Result;

/// Blocks that are long enough for the device: several pieces of each are on their way.
pub const STAR_BLOCK_BYTES: u32 = 4 << 20;

/// Does something with a stretch of a piece, where that lies on the device.
pub type There<'a> = dyn FnMut(Option<DeviceSlice<'_>>) -> Result<()> + 'a;

/// Pieces of a star that may lie on the device.
pub trait PlacedPieces: Send {
    /// Finds a stretch of a piece's file. Nothing is freed while something is done with it.
    fn stretch(&self, piece: Piece, at: u64, bytes: usize, work: &mut There<'_>) -> Result<()>;
}

/// Multiplies for a star.
pub struct DeviceArithmetic {
    /// `None` from the first fault on.
    device: Option<HostErasure>,
    pieces: Option<Box<dyn PlacedPieces>>,
    say: Box<dyn FnMut(String) + Send>,
}

impl DeviceArithmetic {
    /// What a star needs of a device: 27 MiB there, and as much of pinned memory.
    pub const ROOM: Room = Room { columns: 1, rows: FACTORS_MAX, piece_bytes: 1 << 20 };

    /// On the first device. Without one `say` gets the reason now and the CPU multiplies; otherwise
    /// it is told when the device fails.
    pub fn open(mut say: impl FnMut(String) + Send + 'static) -> Self {
        let opened = Gpu::open().map_err(|why| why.to_string());
        let made = opened
            .and_then(|gpu| HostErasure::new(&gpu, Self::ROOM).map_err(|error| error.to_string()));
        let device = made.map_err(|why| say(format!("no GPU is used: {why}"))).ok();
        Self { device, pieces: None, say: Box::new(say) }
    }

    /// With a device that was opened elsewhere, with room for [`DeviceArithmetic::ROOM`]'s matrix;
    /// `say` is told if it fails.
    pub fn new(device: HostErasure, say: impl FnMut(String) + Send + 'static) -> Self {
        Self { device: Some(device), pieces: None, say: Box::new(say) }
    }

    /// Blocks of these pieces are multiplied where they lie.
    pub fn with_pieces(self, pieces: impl PlacedPieces + 'static) -> Self {
        Self { pieces: Some(Box::new(pieces)), ..self }
    }
}

impl Arithmetic for DeviceArithmetic {
    fn multiply(&mut self, factors: &Factors, block: Block<'_>, products: &mut [&mut [u8]]) {
        if let Some(device) = &mut self.device {
            match on_device(device, self.pieces.as_deref(), factors.values(), block, products) {
                Ok(()) => return,
                Err(error) => {
                    self.device = None;
                    (self.say)(format!("the CPU takes over from the GPU: {error}"));
                }
            }
        }
        factors.multiply(block.bytes, products);
    }
}

/// Makes the products of each length together: most often all have the same.
fn on_device(
    device: &mut HostErasure,
    pieces: Option<&dyn PlacedPieces>,
    factors: &[u8],
    block: Block<'_>,
    products: &mut [&mut [u8]],
) -> Result<()> {
    let mut lengths: Vec<usize> = products.iter().map(|product| product.len()).collect();
    lengths.sort_unstable();
    lengths.dedup();
    for length in lengths.into_iter().filter(|length| *length > 0) {
        let own = factors.iter().zip(products.iter_mut());
        let own = own.filter(|(_, product)| product.len() == length);
        let (factors, mut rows): (Vec<u8>, Vec<Output<'_>>) =
            own.map(|(factor, product)| (*factor, Output::Pageable(product))).unzip();
        let matrix = Matrix::new(factors.len(), 1, |row, _| factors[row]);
        let mut multiply = |input: Input<'_>| device.multiply(&matrix, &[input], &mut rows);
        match pieces {
            Some(pieces) => pieces.stretch(block.piece, block.at, length, &mut |there| {
                multiply(there.map_or(Input::Pageable(&block.bytes[..length]), Input::Device))
            })?,
            None => multiply(Input::Pageable(&block.bytes[..length]))?,
        }
    }
    Ok(())
}
