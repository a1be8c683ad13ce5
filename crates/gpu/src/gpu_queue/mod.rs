//! One device, shared by the ranks of a node to compress blocks of host memory.
//!
//! ```text
//! encoder threads of ranks: ask -> [turns] -> copy the block to its slot -> wait -> take it back
//! queue:  look-forward lane: slots given out, filled --.
//!          current lane:      up -> codec -> down       <-'   the lanes change places
//! ```
//! This is the scheduler of PCCR (Liu et al.): it manages the current and the look-forward buffer
//! of the device and lets ranks take turns (`FairQueue`). It uses the first device
//! that the process sees. Where one process writes for all ranks of a node (the agent), one
//! queue serves them all; ranks that write for themselves have one each, and the driver shares
//! the device among them.
//!
//! Blocks of numbers go through the float codec, others through Deflate; a block that does not save
//! a 32nd is stored as it is. A CPU alone decodes all of it.
//!
//! Invariants:
//! - A slot belongs to one block from the moment it is given out until its lane has finished.
//! - All blocks of a lane are encoded in the same way.
//! - Whoever asks gets an answer: after a fault of the device it is "encode it yourself", at once.
//!
//! Memory: two lanes of [`LANE_BLOCKS`] blocks of [`BLOCK_BYTES`], pinned, and about four times that
//! on the device.

mod cuda;
mod engine;

use std::collections::VecDeque;
use std::convert::Infallible;
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;

use standfast_format::{CodecKind, FilterKind};
use standfast_reduce::Offload;

pub use cuda::CudaEngine;
pub use engine::Engine;

use crate::deflate;
use crate::device::Gpu;
use crate::error::Result;
use crate::fair_queue::FairQueue;
use crate::float::{self, Element};
use crate::memory::Encoding;
use crate::packed::Packed;

/// Length of the blocks that the device takes: a chunk of the float codec, four of Deflate.
pub const BLOCK_BYTES: usize = float::CHUNK_BYTES;
/// Blocks of a lane.
pub const LANE_BLOCKS: usize = 32;
/// Current and look-forward.
const LANES: usize = 2;
/// A block must save one byte of so many.
const SAVING: usize = 32;

/// Hands blocks of many threads to one device.
pub struct GpuQueue {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

struct Shared {
    state: Mutex<State>,
    asked: Condvar,
}

#[derive(Default)]
struct State {
    turns: FairQueue<Request>,
    /// Nobody answers any more.
    closed: bool,
}

/// A block that somebody wants encoded.
struct Request {
    encoding: Encoding,
    /// Memory for the answer.
    out: Vec<u8>,
    reply: Sender<Reply>,
}

enum Reply {
    /// Put the block into this slot; dropping the other tells that it is there.
    Slot(Arc<Mutex<dyn Slot>>, Sender<Infallible>),
    Done(CodecKind, Vec<u8>),
}

/// Memory for a block.
trait Slot: Send {
    fn bytes(&mut self) -> &mut [u8];
}

impl<T: std::ops::DerefMut<Target = [u8]> + Send> Slot for T {
    fn bytes(&mut self) -> &mut [u8] {
        self
    }
}

impl GpuQueue {
    /// On the first device. Without one `say` gets the reason now, otherwise when it fails.
    pub fn open(say: impl FnOnce(String) + Send + 'static) -> Option<Self> {
        let opened = Gpu::open().map_err(|why| why.to_string()).and_then(|gpu| {
            let engine = CudaEngine::new(&gpu).map_err(|error| error.to_string())?;
            let lanes = lanes_of(&engine).map_err(|error| error.to_string())?;
            Ok((engine, lanes))
        });
        match opened {
            Ok((engine, lanes)) => Some(Self::run(engine, lanes, say)),
            Err(why) => {
                say(format!("no GPU is used: {why}"));
                None
            }
        }
    }

    /// With this engine; `say` is told if it fails.
    pub fn start<E: Engine + 'static>(
        engine: E,
        say: impl FnOnce(String) + Send + 'static,
    ) -> Result<Self> {
        let lanes = lanes_of(&engine)?;
        Ok(Self::run(engine, lanes, say))
    }

    fn run<E: Engine + 'static>(
        engine: E,
        lanes: Lanes<E>,
        say: impl FnOnce(String) + Send + 'static,
    ) -> Self {
        let shared = Arc::new(Shared { state: Mutex::default(), asked: Condvar::new() });
        let own = Arc::clone(&shared);
        let run = move || {
            let end = End(Arc::clone(&own));
            let ran = Running { shared: own, engine, lanes }.run();
            drop(end);
            if let Err(error) = ran {
                say(format!("the CPU takes over from the GPU: {error}"));
            }
        };
        let thread = std::thread::Builder::new().name("sf-gpu".into()).spawn(run);
        Self { shared, thread: Some(thread.expect("a thread can be started")) }
    }
}

impl Drop for GpuQueue {
    fn drop(&mut self) {
        self.shared.close();
        if let Some(thread) = self.thread.take() {
            // One that panicked has reported it, and its askers were answered.
            let _ = thread.join();
        }
    }
}

impl Offload for GpuQueue {
    fn callers(&self) -> usize {
        LANES * LANE_BLOCKS
    }

    fn encode(
        &self,
        rank: u32,
        raw: &[u8],
        elem: u8,
        out: &mut Vec<u8>,
    ) -> Option<(CodecKind, FilterKind)> {
        if raw.len() != BLOCK_BYTES {
            return None;
        }
        let (reply, replies) = channel();
        let request = Request { encoding: encoding_of(elem), out: std::mem::take(out), reply };
        self.shared.ask(rank, request)?;
        // A queue that ends drops what it has not answered.
        let Reply::Slot(slot, filled) = replies.recv().ok()? else { return None };
        slot.lock().unwrap_or_else(PoisonError::into_inner).bytes().copy_from_slice(raw);
        drop((slot, filled));
        let Reply::Done(codec, bytes) = replies.recv().ok()? else { return None };
        *out = bytes;
        Some((codec, FilterKind::None))
    }
}

/// How blocks of such numbers are encoded.
fn encoding_of(elem: u8) -> Encoding {
    match elem {
        2 => Encoding::Float(Element::Bf16),
        4 => Encoding::Float(Element::F32),
        8 | 16 => Encoding::Float(Element::F64),
        _ => Encoding::Deflate,
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn ask(&self, rank: u32, request: Request) -> Option<()> {
        let mut state = self.lock();
        if state.closed {
            return None;
        }
        state.turns.ask(rank, request);
        drop(state);
        self.asked.notify_one();
        Some(())
    }

    /// Answers nobody any more.
    fn close(&self) {
        let mut state = self.lock();
        state.closed = true;
        state.turns = FairQueue::new();
        drop(state);
        self.asked.notify_all();
    }

    /// The next blocks that go together; waits for one if asked to. `None`: no more will come.
    fn gather(&self, wait: bool) -> Option<Vec<Request>> {
        let mut state = self.lock();
        if wait {
            let idle = |state: &mut State| state.turns.pieces() == 0 && !state.closed;
            state = self.asked.wait_while(state, idle).unwrap_or_else(PoisonError::into_inner);
        }
        if wait && state.closed {
            return None;
        }
        let mut batch: Vec<Request> = Vec::new();
        while batch.len() < LANE_BLOCKS {
            let encoding = batch.first().map(|first| first.encoding);
            let fits = |next: &Request| encoding.is_none_or(|encoding| next.encoding == encoding);
            let Some((_, next)) = state.turns.next_piece(fits) else { break };
            batch.push(next);
        }
        Some(batch)
    }
}

/// Answers whoever still waits when the thread ends, however that came.
struct End(Arc<Shared>);

impl Drop for End {
    fn drop(&mut self) {
        self.0.close();
    }
}

/// The slots of every lane.
type Lanes<E> = Vec<Vec<Arc<Mutex<<E as Engine>::Slot>>>>;

fn lanes_of<E: Engine>(engine: &E) -> Result<Lanes<E>> {
    let slot = |_| Ok(Arc::new(Mutex::new(engine.slot()?)));
    (0..LANES).map(|_| (0..LANE_BLOCKS).map(slot).collect()).collect()
}

struct Running<E: Engine> {
    shared: Arc<Shared>,
    engine: E,
    lanes: Lanes<E>,
}

/// Blocks on their way through a lane.
struct Batch {
    lane: usize,
    encoding: Encoding,
    requests: VecDeque<Request>,
}

impl<E: Engine + 'static> Running<E> {
    /// Until nobody can ask any more, or the device fails. Whoever waits for a block then has to
    /// encode it.
    fn run(mut self) -> Result<()> {
        let (mut current, mut lane) = (None, 0);
        while let Some(requests) = self.shared.gather(current.is_none()) {
            let next = match requests.is_empty() {
                true => Ok(None),
                false => self.start(lane, requests).map(Some),
            };
            let finished = current.take().map_or(Ok(()), |batch| self.finish(batch));
            current = finished.and(next)?;
            lane = (lane + 1) % LANES;
        }
        Ok(())
    }

    /// Gives slots out, waits until they are filled, and sends them on their way.
    fn start(&mut self, lane: usize, requests: Vec<Request>) -> Result<Batch> {
        let (filled, fillings) = channel::<Infallible>();
        let slots = &self.lanes[lane];
        let mut taken = VecDeque::with_capacity(requests.len());
        for (request, slot) in requests.into_iter().zip(slots) {
            let slot: Arc<Mutex<dyn Slot>> = Arc::clone(slot) as _;
            // One that is gone leaves its slot as it is; nobody takes what becomes of it.
            let _ = request.reply.send(Reply::Slot(slot, filled.clone()));
            taken.push_back(request);
        }
        drop(filled);
        // Until every slot is filled, or whoever should have done it is gone.
        let _ = fillings.recv();
        let encoding = taken[0].encoding;
        let mut filled: Vec<MutexGuard<'_, E::Slot>> = slots[..taken.len()]
            .iter()
            .map(|slot| slot.lock().unwrap_or_else(PoisonError::into_inner))
            .collect();
        let mut blocks: Vec<&mut E::Slot> = filled.iter_mut().map(|slot| &mut **slot).collect();
        self.engine.start(lane, encoding, &mut blocks)?;
        Ok(Batch { lane, encoding, requests: taken })
    }

    fn finish(&mut self, batch: Batch) -> Result<()> {
        let Batch { lane, encoding, requests } = batch;
        let (packed, bytes) = self.engine.finish(lane)?;
        let chunks_each = packed.sizes().len() / requests.len();
        let ranges: Vec<_> = packed.ranges().collect();
        for (at, request) in requests.into_iter().enumerate() {
            let Request { mut out, reply, .. } = request;
            out.clear();
            let own = at * chunks_each..(at + 1) * chunks_each;
            let codec = match encoding {
                Encoding::Float(element) => {
                    let sizes = Packed::new(packed.sizes()[own.clone()].to_vec());
                    let payload = &bytes[ranges[own.start].start..][..sizes.bytes()];
                    out.extend(float::frame(element, BLOCK_BYTES as u64, &sizes, payload));
                    CodecKind::Float
                }
                Encoding::Deflate => {
                    ranges[own].iter().for_each(|part| out.extend(&bytes[part.clone()]));
                    out.extend(deflate::END_OF_STREAM);
                    CodecKind::Deflate
                }
                Encoding::Raw => CodecKind::None,
            };
            let pays = out.len() + BLOCK_BYTES / SAVING <= BLOCK_BYTES;
            let codec = if pays { codec } else { CodecKind::None };
            let _ = reply.send(Reply::Done(codec, out));
        }
        Ok(())
    }
}
