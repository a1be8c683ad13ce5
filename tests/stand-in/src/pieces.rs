//! Pieces of a star that lie in device memory: read there, made there.
//!
//! A block crosses to the host once, because its checksum is made there and so that the CPU can go on
//! with it; its products are made where it lies ([`DeviceArithmetic`](standfast_gpu::erasure::DeviceArithmetic)), and
//! cross because they travel to other ranks. What is made arrives from other ranks and crosses to the
//! device. A shard's header stays on the host, so that its bytes start at a multiple of 16.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use standfast_gpu::erasure::{PlacedPieces, There};
use standfast_gpu::{DeviceBuffer, DeviceSlice, Gpu, Result, Stream};
use standfast_ring::topology::Piece;
use standfast_ring::{Outside, Shard, Sink, Source};

/// Memory of a device that holds a piece.
pub trait Body: Send {
    /// All of it.
    fn slice(&self) -> DeviceSlice<'_>;
    /// Copies to the device; waits.
    fn write(&mut self, at: usize, bytes: &[u8]) -> Result<()>;
    /// Copies from the device; waits.
    fn read(&self, at: usize, into: &mut [u8]) -> Result<()>;
}

struct CudaBody {
    stream: Stream,
    buffer: DeviceBuffer,
}

impl Body for CudaBody {
    fn slice(&self) -> DeviceSlice<'_> {
        self.buffer.slice()
    }

    fn write(&mut self, at: usize, bytes: &[u8]) -> Result<()> {
        self.stream.upload(bytes, self.slice().part(at, bytes.len()))
    }

    fn read(&self, at: usize, into: &mut [u8]) -> Result<()> {
        self.stream.download(self.slice().part(at, into.len()), into)
    }
}

type Allocate = dyn Fn(usize) -> Result<Box<dyn Body>> + Send + Sync;

/// Files of pieces on a device, shared by its clones: one can be read while another is written.
#[derive(Clone)]
pub struct DevicePieces {
    files: Arc<Mutex<Files>>,
    allocate: Arc<Allocate>,
}

#[derive(Default)]
struct Files {
    whole: BTreeMap<Piece, File>,
    /// Begun, not yet ended.
    open: BTreeMap<Piece, File>,
}

struct File {
    head: Vec<u8>,
    body: Box<dyn Body>,
    /// Bytes of the body that are there.
    filled: usize,
}

impl DevicePieces {
    /// On a device.
    pub fn new(gpu: &Gpu) -> Self {
        let gpu = gpu.clone();
        Self::with(move |bytes| {
            let (stream, buffer) = (gpu.stream()?, gpu.allocate("a piece", bytes)?);
            Ok(Box::new(CudaBody { stream, buffer }))
        })
    }

    /// In whatever memory this takes: tests have some that needs no device.
    pub fn with(allocate: impl Fn(usize) -> Result<Box<dyn Body>> + Send + Sync + 'static) -> Self {
        Self { files: Arc::default(), allocate: Arc::new(allocate) }
    }

    fn lock(&self) -> MutexGuard<'_, Files> {
        // Every change is one call on a map, or fails its piece.
        self.files.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Puts a whole piece there.
    pub fn put(&self, piece: Piece, bytes: &[u8]) -> Result<()> {
        let mut body = (self.allocate)(bytes.len())?;
        body.write(0, bytes)?;
        self.lock().whole.insert(piece, File { head: Vec::new(), body, filled: bytes.len() });
        Ok(())
    }

    /// Takes over a piece whose bytes are all on the device already.
    pub fn adopt(&self, piece: Piece, stream: Stream, buffer: DeviceBuffer) {
        let filled = buffer.bytes();
        let body = Box::new(CudaBody { stream, buffer });
        self.lock().whole.insert(piece, File { head: Vec::new(), body, filled });
    }

    /// The file of a whole piece, brought to the host.
    pub fn get(&self, piece: Piece) -> std::result::Result<Option<Vec<u8>>, Outside> {
        let files = self.lock();
        let Some(file) = files.whole.get(&piece) else { return Ok(None) };
        let mut bytes = vec![0; file.bytes()];
        file.read(0, &mut bytes)?;
        Ok(Some(bytes))
    }

    /// Frees a piece; whether there was one.
    pub fn remove(&self, piece: Piece) -> bool {
        self.lock().whole.remove(&piece).is_some()
    }

    /// The pieces that are whole.
    pub fn pieces(&self) -> Vec<Piece> {
        self.lock().whole.keys().copied().collect()
    }

    /// Opens a shard.
    pub fn shard(&self, piece: Piece) -> standfast_ring::Result<Shard> {
        let bytes = self.lock().whole.get(&piece).map_or(0, File::bytes) as u64;
        Shard::open(bytes, |at, into| self.clone().read(piece, at, into))
    }
}

impl PlacedPieces for DevicePieces {
    fn stretch(&self, piece: Piece, at: u64, bytes: usize, work: &mut There<'_>) -> Result<()> {
        let files = self.lock();
        work(files.whole.get(&piece).and_then(|file| file.stretch(at, bytes)))
    }
}

impl File {
    fn bytes(&self) -> usize {
        self.head.len() + self.filled
    }

    /// A stretch of the file that is on the device.
    fn stretch(&self, at: u64, bytes: usize) -> Option<DeviceSlice<'_>> {
        let at = usize::try_from(at).ok()?.checked_sub(self.head.len())?;
        let within = at.checked_add(bytes).is_some_and(|end| end <= self.filled);
        within.then(|| self.body.slice().part(at, bytes))
    }

    fn read(&self, at: u64, into: &mut [u8]) -> std::result::Result<(), Outside> {
        let at = usize::try_from(at)?;
        if at.checked_add(into.len()).is_none_or(|end| end > self.bytes()) {
            return Err("the piece is shorter".into());
        }
        let head = self.head.get(at..).unwrap_or_default();
        let (first, rest) = into.split_at_mut(head.len().min(into.len()));
        first.copy_from_slice(&head[..first.len()]);
        match rest.is_empty() {
            true => Ok(()),
            false => Ok(self.body.read(at + first.len() - self.head.len(), rest)?),
        }
    }

    fn append(&mut self, bytes: &[u8]) -> std::result::Result<(), Outside> {
        if bytes.len() > self.body.slice().bytes() - self.filled {
            return Err("the piece is longer than it was said to be".into());
        }
        self.body.write(self.filled, bytes)?;
        self.filled += bytes.len();
        Ok(())
    }
}

impl Source for DevicePieces {
    fn read(&mut self, piece: Piece, at: u64, into: &mut [u8]) -> std::result::Result<(), Outside> {
        let files = self.lock();
        files.whole.get(&piece).ok_or("there is no such piece")?.read(at, into)
    }
}

impl Sink for DevicePieces {
    fn begin(&mut self, piece: Piece, bytes: u64, head: &[u8]) -> std::result::Result<(), Outside> {
        // What there was is void; its memory may be wanted for what comes.
        self.remove(piece);
        let bytes = usize::try_from(bytes)?.checked_sub(head.len()).ok_or("it is all header")?;
        let body = (self.allocate)(bytes)?;
        let file = File { head: head.to_vec(), body, filled: 0 };
        self.lock().open.insert(piece, file);
        Ok(())
    }

    fn append(&mut self, piece: Piece, bytes: &[u8]) -> std::result::Result<(), Outside> {
        self.lock().open.get_mut(&piece).ok_or("the piece was not begun")?.append(bytes)
    }

    fn end(&mut self, piece: Piece, tail: &[u8]) -> std::result::Result<(), Outside> {
        let mut files = self.lock();
        let mut file = files.open.remove(&piece).ok_or("the piece was not begun")?;
        file.append(tail)?;
        files.whole.insert(piece, file);
        Ok(())
    }

    fn abandon(&mut self, piece: Piece) {
        self.lock().open.remove(&piece);
    }

    fn forget(&mut self, piece: Piece) {
        self.remove(piece);
    }
}
