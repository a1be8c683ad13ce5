//! Host memory through the device: copy in, compress, copy out, all three at the same time.
//!
//! Data: host bytes -> pieces -> pinned buffer -> device -> codec -> pinned buffer -> caller.
//!
//! Three pieces are on their way: one crosses to the device, one is compressed, one crosses back
//! ([`standfast_gpu::lanes`]). (The paper this follows has two input buffers, current and look-forward; the
//! third lets the way back overlap as well.)
//!
//! Memory: three times the piece, on the host and about three times that on the device.

use std::ops::Range;

use standfast_format::FilterKind;
use standfast_gpu::deflate::DeviceDeflate;
use standfast_gpu::float::{self, DeviceFloat, Element};
use standfast_gpu::lanes::{LANES, Move, copy_on_threads, in_turns};
use standfast_gpu::{
    DeviceBuffer, DeviceEncoder, Error, Gpu, Packed, PinnedBuffer, Result, Stream,
};

/// What to compress with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Codec {
    /// Byte planes of numbers.
    Float(Element),
    /// Deflate, for everything else, after a filter.
    Deflate(FilterKind),
}

/// Where the bytes are.
pub enum Source<'a> {
    /// In ordinary memory: copied to a pinned buffer first, by a few threads.
    Pageable(&'a [u8]),
    /// In memory that the device reads itself.
    Pinned(&'a PinnedBuffer),
}

/// One compressed piece.
pub struct Piece<'a> {
    /// The part of the input that it holds.
    pub raw: Range<usize>,
    /// Lengths of its chunks.
    pub packed: &'a Packed,
    /// The chunks.
    pub bytes: &'a [u8],
}

/// A pipeline with all its buffers, for any number of inputs one after the other.
pub struct HostPipeline {
    lanes: Vec<Lane>,
    piece_bytes: usize,
}

impl HostPipeline {
    /// Cuts inputs into pieces of `piece_bytes`, a multiple of 256 KiB.
    pub fn new(gpu: &Gpu, codec: Codec, piece_bytes: usize) -> Result<Self> {
        if piece_bytes == 0 || !piece_bytes.is_multiple_of(float::CHUNK_BYTES) {
            let what = format!("pieces of {piece_bytes} bytes: whole 256 KiB");
            return Err(Error::Invalid { what });
        }
        let lanes = (0..LANES).map(|_| Lane::new(gpu, codec, piece_bytes));
        Ok(HostPipeline { lanes: lanes.collect::<Result<_>>()?, piece_bytes })
    }

    /// Compresses all of `source`, handing over piece by piece, in order.
    pub fn run(&mut self, source: Source<'_>, mut each: impl FnMut(Piece<'_>)) -> Result<()> {
        let mut outcome = self.feed(&source, &mut each);
        // Also after a failure nothing may still read the caller's memory.
        for lane in &self.lanes {
            outcome = outcome.and(lane.stream.wait());
        }
        outcome
    }

    fn feed(&mut self, source: &Source<'_>, each: &mut impl FnMut(Piece<'_>)) -> Result<()> {
        let (input, pinned): (&[u8], bool) = match source {
            Source::Pageable(bytes) => (bytes, false),
            Source::Pinned(buffer) => (buffer, true),
        };
        let bytes = self.piece_bytes;
        let pieces = input.len().div_ceil(bytes);
        in_turns(&mut self.lanes, pieces, |lane, at, moved| match moved {
            Move::Start => {
                let raw = at * bytes..((at + 1) * bytes).min(input.len());
                lane.start(&input[raw.clone()], raw, pinned)
            }
            Move::Finish => lane.finish(each),
        })
    }
}

/// Pieces that may wait for whoever stores them.
const WAITING_MAX: usize = 2;

/// What a run of the mode `gpu` did.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Compressed {
    /// Bytes that went in.
    pub raw_bytes: usize,
    /// Bytes that were stored.
    pub stored_bytes: usize,
    /// From the first byte to the last one stored, both ways over the bus included.
    pub seconds: f64,
}

impl HostPipeline {
    /// The mode `gpu` of a checkpoint of host memory: collect and compress here, store on a thread
    /// of its own, through a queue that holds back when storing is slower. `store` gets every
    /// compressed piece, in order.
    pub fn checkpoint<E: Send>(
        &mut self,
        source: Source<'_>,
        store: impl FnMut(&[u8]) -> std::result::Result<(), E> + Send,
    ) -> Result<std::result::Result<Compressed, E>> {
        let raw_bytes = match &source {
            Source::Pageable(bytes) => bytes.len(),
            Source::Pinned(buffer) => buffer.len(),
        };
        let started = std::time::Instant::now();
        let (queue, pieces) = std::sync::mpsc::sync_channel::<Vec<u8>>(WAITING_MAX);
        std::thread::scope(|scope| {
            let mut store = store;
            let storing = scope.spawn(move || {
                let mut stored_bytes = 0;
                for piece in pieces {
                    stored_bytes += piece.len();
                    store(&piece)?;
                }
                Ok(stored_bytes)
            });
            // When storing has failed nobody takes pieces any more; its error is told below.
            self.run(source, |piece| drop(queue.send(piece.bytes.to_vec())))?;
            drop(queue);
            let stored = storing.join().expect("storing does not panic");
            let seconds = started.elapsed().as_secs_f64();
            Ok(stored.map(|stored_bytes| Compressed { raw_bytes, stored_bytes, seconds }))
        })
    }
}

/// One piece's way through the device.
struct Lane {
    stream: Stream,
    host_in: PinnedBuffer,
    input: DeviceBuffer,
    encoder: DeviceEncoder,
    out: DeviceBuffer,
    host_out: PinnedBuffer,
    raw: Range<usize>,
}

impl Lane {
    fn new(gpu: &Gpu, codec: Codec, piece_bytes: usize) -> Result<Self> {
        let out_bytes = match codec {
            Codec::Float(_) => DeviceFloat::out_bytes_max(piece_bytes),
            Codec::Deflate(_) => DeviceDeflate::out_bytes_max(piece_bytes),
        };
        Ok(Lane {
            stream: gpu.stream()?,
            host_in: gpu.pinned("a piece of input", piece_bytes)?,
            input: gpu.allocate("a piece of input", piece_bytes)?,
            encoder: encoder(gpu, codec, piece_bytes)?,
            out: gpu.allocate("a compressed piece", out_bytes)?,
            host_out: gpu.pinned("a compressed piece", out_bytes)?,
            raw: 0..0,
        })
    }

    /// Queues a piece: to the device and through the codec.
    fn start(&mut self, piece: &[u8], raw: Range<usize>, pinned: bool) -> Result<()> {
        self.raw = raw;
        let input = self.input.first(piece.len());
        let from = match pinned {
            true => piece,
            false => {
                copy_on_threads(vec![(piece, &mut self.host_in[..piece.len()])]);
                &self.host_in[..piece.len()]
            }
        };
        // SAFETY: `run` waits for all lanes before the caller's memory can go away, and `host_in`
        // is written again only after `finish` waited.
        unsafe { self.stream.queue_upload(from, input)? };
        self.encoder.queue_encode(&self.stream, input, self.out.slice())
    }

    /// Waits for the piece, brings it back and hands it over.
    fn finish(&mut self, each: &mut impl FnMut(Piece<'_>)) -> Result<()> {
        self.stream.wait()?;
        let packed = self.encoder.packed();
        let bytes = packed.bytes();
        self.stream.download(self.out.first(bytes), &mut self.host_out[..bytes])?;
        let raw = self.raw.clone();
        each(Piece { raw, packed: &packed, bytes: &self.host_out[..bytes] });
        Ok(())
    }
}

/// What encodes pieces of so many bytes.
fn encoder(gpu: &Gpu, codec: Codec, bytes_max: usize) -> Result<DeviceEncoder> {
    Ok(match codec {
        Codec::Float(element) => DeviceEncoder::Float(DeviceFloat::new(gpu, element, bytes_max)?),
        Codec::Deflate(filter) => {
            DeviceEncoder::Deflate(DeviceDeflate::new(gpu, filter, bytes_max)?)
        }
    })
}
