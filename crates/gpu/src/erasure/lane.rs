//! One piece's way through the device: up, product, down, on a stream of its own.

use crate::device::{DeviceBuffer, DeviceSlice, Gpu, PinnedBuffer, Stream};
use crate::erasure::host::{ALIGN, Input, Output, Room};
use crate::erasure::{DeviceErasure, Matrix};
use crate::error::Result;
use crate::lanes::copy_on_threads;

/// Matrices that a lane keeps on the device: more than a star alternates between.
const MATRICES_MAX: usize = 16;

/// Takes one piece at a time.
pub trait Lane: Send {
    /// Queues a piece. Whoever calls leaves shards and rows alone until the lane was waited for.
    fn start(
        &mut self,
        matrix: &Matrix,
        shards: &[Input<'_>],
        out: &mut [Output<'_>],
    ) -> Result<()>;

    /// Waits for the piece; its rows are in `out` then, the same as at its start.
    fn finish(&mut self, out: &mut [Output<'_>]) -> Result<()>;

    /// Waits until nothing is on its way.
    fn wait(&self) -> Result<()>;
}

/// Through an NVIDIA device.
pub(super) struct CudaLane {
    stream: Stream,
    /// The newest last.
    known: Vec<DeviceErasure>,
    host_in: PinnedBuffer,
    input: DeviceBuffer,
    product: DeviceBuffer,
    host_out: PinnedBuffer,
}

impl CudaLane {
    pub(super) fn new(gpu: &Gpu, room: Room) -> Result<Self> {
        let (ins, outs) = (room.columns * room.piece_bytes, room.rows * room.piece_bytes);
        Ok(Self {
            stream: gpu.stream()?,
            known: Vec::new(),
            host_in: gpu.pinned("pieces of shards", ins)?,
            input: gpu.allocate("pieces of shards", ins)?,
            product: gpu.allocate("products of shards", outs)?,
            host_out: gpu.pinned("products of shards", outs)?,
        })
    }

    /// Which of those that are known multiplies with this matrix.
    fn find(&mut self, matrix: &Matrix) -> Result<usize> {
        if let Some(at) = self.known.iter().position(|known| known.matrix() == matrix) {
            return Ok(at);
        }
        if self.known.len() == MATRICES_MAX {
            self.known.remove(0);
        }
        self.known.push(DeviceErasure::new(&self.stream, matrix.clone())?);
        Ok(self.known.len() - 1)
    }
}

/// Bytes of each of `rows`, and the distance between them in a lane's buffers.
fn lengths(rows: &[Output<'_>]) -> (usize, usize) {
    let bytes = rows.first().map_or(0, Output::bytes);
    (bytes, bytes.next_multiple_of(ALIGN).max(ALIGN))
}

impl Lane for CudaLane {
    fn start(
        &mut self,
        matrix: &Matrix,
        shards: &[Input<'_>],
        out: &mut [Output<'_>],
    ) -> Result<()> {
        let at = self.find(matrix)?;
        let Self { stream, known, host_in, input, product, host_out } = self;
        let (bytes, stride) = lengths(out);
        let copies = shards.iter().zip(host_in.chunks_mut(stride));
        let copies = copies.filter_map(|(shard, to)| match shard {
            Input::Pageable(from) => Some((*from, &mut to[..bytes])),
            Input::Pinned(_) | Input::Device(_) => None,
        });
        copy_on_threads(copies.collect());
        let mut ins: Vec<DeviceSlice<'_>> = Vec::with_capacity(shards.len());
        for (at, shard) in shards.iter().enumerate() {
            let own = input.slice().part(at * stride, bytes);
            let from = match shard {
                Input::Device(there) if there.address().is_multiple_of(ALIGN as u64) => {
                    ins.push(*there);
                    continue;
                }
                Input::Device(there) => {
                    stream.copy(*there, own)?;
                    ins.push(own);
                    continue;
                }
                Input::Pinned(from) => from,
                Input::Pageable(_) => &host_in[at * stride..][..bytes],
            };
            // SAFETY: the caller keeps shards as they are until it has waited, and `host_in` is
            // written again only after `finish`, or a wait, of the piece before.
            unsafe { stream.queue_upload(from, own)? };
            ins.push(own);
        }
        let outs: Vec<DeviceSlice<'_>> =
            (0..out.len()).map(|row| product.slice().part(row * stride, bytes)).collect();
        known[at].queue(stream, &ins, &outs)?;
        for ((from, row), staged) in outs.into_iter().zip(out).zip(host_out.chunks_mut(stride)) {
            let to = match row {
                Output::Pinned(to) => &mut **to,
                Output::Pageable(_) => &mut staged[..bytes],
            };
            // SAFETY: as above; `host_out` is read only after the wait in `finish`.
            unsafe { stream.queue_download(from, to)? };
        }
        Ok(())
    }

    fn finish(&mut self, out: &mut [Output<'_>]) -> Result<()> {
        self.stream.wait()?;
        let (bytes, stride) = lengths(out);
        let copies = self.host_out.chunks(stride).zip(out);
        let copies = copies.filter_map(|(from, row)| match row {
            Output::Pageable(to) => Some((&from[..bytes], &mut **to)),
            Output::Pinned(_) => None,
        });
        copy_on_threads(copies.collect());
        Ok(())
    }

    fn wait(&self) -> Result<()> {
        self.stream.wait()
    }
}
