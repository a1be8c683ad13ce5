//! Products of matrices and shards in host memory, made on the device.
//!
//! Data: pieces of the shards -> pinned buffers -> device -> product -> pinned buffers -> rows.
//!
//! Three pieces are on their way: up, product and down overlap. Shards that are in pinned memory
//! already, and rows that go there, cross without a copy on the host; shards that lie on the device
//! do not cross at all.
//!
//! Memory: three times a piece of every shard and row ([`Room`]), pinned on the host and on the
//! device; none that grows with the length of the shards.

use std::ops::Range;

use crate::device::{DeviceSlice, Gpu};
use crate::erasure::lane::{CudaLane, Lane};
use crate::erasure::{Matrix, PIECES_MAX};
use crate::error::{Error, Result};
use crate::lanes::{LANES, Move, in_turns};

/// What pieces are cut at a multiple of.
pub(super) const ALIGN: usize = 16;

/// Where a shard is.
#[derive(Clone, Copy, Debug)]
pub enum Input<'a> {
    /// In ordinary memory: copied to a pinned buffer first, by a few threads.
    Pageable(&'a [u8]),
    /// In memory that the device reads itself. Other memory is only slower here.
    Pinned(&'a [u8]),
    /// On the device.
    Device(DeviceSlice<'a>),
}

impl Input<'_> {
    fn bytes(&self) -> usize {
        match self {
            Input::Pageable(bytes) | Input::Pinned(bytes) => bytes.len(),
            Input::Device(slice) => slice.bytes(),
        }
    }

    fn part(&self, range: Range<usize>) -> Self {
        match *self {
            Input::Pageable(bytes) => Input::Pageable(&bytes[range]),
            Input::Pinned(bytes) => Input::Pinned(&bytes[range]),
            Input::Device(slice) => Input::Device(slice.part(range.start, range.len())),
        }
    }
}

/// Where a row of the product goes.
#[derive(Debug)]
pub enum Output<'a> {
    /// To ordinary memory, by way of a pinned buffer.
    Pageable(&'a mut [u8]),
    /// To memory that the device writes itself. Other memory is only slower here.
    Pinned(&'a mut [u8]),
}

impl Output<'_> {
    pub(super) fn bytes(&self) -> usize {
        match self {
            Output::Pageable(bytes) | Output::Pinned(bytes) => bytes.len(),
        }
    }

    fn part(&mut self, range: Range<usize>) -> Output<'_> {
        match self {
            Output::Pageable(bytes) => Output::Pageable(&mut bytes[range]),
            Output::Pinned(bytes) => Output::Pinned(&mut bytes[range]),
        }
    }
}

/// The largest matrix that buffers are for, and the bytes of each shard and row that are on their way
/// at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Room {
    /// Most shards.
    pub columns: usize,
    /// Most rows.
    pub rows: usize,
    /// Bytes of a piece, a multiple of 16.
    pub piece_bytes: usize,
}

/// Multiplies shards in host memory, with all its buffers, for any number of products one after the
/// other.
pub struct HostErasure {
    lanes: Vec<Box<dyn Lane>>,
    room: Room,
}

impl HostErasure {
    /// On a device.
    pub fn new(gpu: &Gpu, room: Room) -> Result<Self> {
        Self::with(room, || Ok(Box::new(CudaLane::new(gpu, room)?)))
    }

    /// On whatever these lanes are: tests have some that need no device.
    pub fn with(room: Room, lane: impl Fn() -> Result<Box<dyn Lane>>) -> Result<Self> {
        let Room { columns, rows, piece_bytes } = room;
        if columns > PIECES_MAX || rows > PIECES_MAX {
            let why = format!("a matrix of {rows} by {columns}, at most {PIECES_MAX}");
            return Err(Error::invalid(why));
        }
        if piece_bytes == 0 || !piece_bytes.is_multiple_of(ALIGN) {
            return Err(Error::invalid(format!("pieces of {piece_bytes} bytes: a multiple of 16")));
        }
        Ok(Self { lanes: (0..LANES).map(|_| lane()).collect::<Result<_>>()?, room })
    }

    /// `out` becomes the matrix times `shards`, all of one length. After an error `out` may hold
    /// anything, and nothing uses the caller's memory any more.
    pub fn multiply(
        &mut self,
        matrix: &Matrix,
        shards: &[Input<'_>],
        out: &mut [Output<'_>],
    ) -> Result<()> {
        let bytes = self.check(matrix, shards, out)?;
        let piece_bytes = self.room.piece_bytes;
        let pieces = bytes.div_ceil(piece_bytes);
        let mut outcome = in_turns(&mut self.lanes, pieces, |lane, at, moved| {
            let range = at * piece_bytes..((at + 1) * piece_bytes).min(bytes);
            let mut rows: Vec<Output<'_>> =
                out.iter_mut().map(|row| row.part(range.clone())).collect();
            match moved {
                Move::Start => {
                    let shards: Vec<Input<'_>> =
                        shards.iter().map(|shard| shard.part(range.clone())).collect();
                    lane.start(matrix, &shards, &mut rows)
                }
                Move::Finish => lane.finish(&mut rows),
            }
        });
        for lane in &self.lanes {
            outcome = outcome.and(lane.wait());
        }
        outcome
    }

    /// The length of all shards and rows.
    fn check(&self, matrix: &Matrix, shards: &[Input<'_>], out: &[Output<'_>]) -> Result<usize> {
        let (rows, columns) = (matrix.rows(), matrix.columns());
        let fits = columns <= self.room.columns && rows <= self.room.rows;
        if !fits || rows == 0 || columns == 0 {
            let why = format!("a matrix of {rows} by {columns} in {:?}", self.room);
            return Err(Error::invalid(why));
        }
        if shards.len() != columns || out.len() != rows {
            let (ins, outs) = (shards.len(), out.len());
            let why =
                format!("{ins} shards in and {outs} out with a matrix of {rows} by {columns}");
            return Err(Error::invalid(why));
        }
        let lengths = shards.iter().map(Input::bytes).chain(out.iter().map(Output::bytes));
        let bytes = lengths.clone().next().unwrap_or(0);
        match lengths.into_iter().all(|length| length == bytes) {
            true => Ok(bytes),
            false => Err(Error::invalid("shards of different lengths")),
        }
    }
}
