//! A few threads that write chunks, shared by all writers of a store.
//!
//! Data: full chunks from writers -> queue -> positioned writes; buffers go back to be reused.
//!
//! Why threads and not io_uring: at chunks of a mebibyte or more both keep the device busy equally well,
//! and threads work in every container.
//!
//! Invariants:
//! - At most `in_flight_max` chunks are queued or being written; `submit` waits for room. With
//!   the one chunk each writer is filling, that bounds the memory. Gathered buffers are bounded
//!   by whoever owns them.
//! - A writer waits only for chunks in flight, which always finish, never for another writer:
//!   any number of writers may be open in one thread.

use std::collections::VecDeque;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use super::part::PartFile;
use crate::contract::OwnedBytes;
use crate::count;
use crate::failpoint;
use crate::meter::WriteMeter;
use standfast_sys::AlignedBuf;

/// A writer of whole blocks has a chunk for what is around them, and one on its way.
const PREPARED: usize = 2;

/// What is to be written.
pub(super) enum Data {
    /// The first so many bytes of a chunk.
    Chunk(AlignedBuf, usize),
    /// Buffers of somebody else, end to end.
    Gathered(Vec<OwnedBytes>),
}

impl Data {
    fn bytes(&self) -> usize {
        match self {
            Data::Chunk(_, bytes) => *bytes,
            Data::Gathered(bytes) => bytes.iter().map(|bytes| (**bytes).as_ref().len()).sum(),
        }
    }
}

/// A piece of work.
struct Job {
    file: Arc<PartFile>,
    data: Data,
    offset: u64,
    flight: Arc<Flight>,
}

#[derive(Default)]
struct State {
    queue: VecDeque<Job>,
    in_flight: usize,
    free: Vec<AlignedBuf>,
    closed: bool,
}

struct Shared {
    state: Mutex<State>,
    work: Condvar,
    room: Condvar,
    in_flight_max: usize,
    chunk_bytes: usize,
}

/// The threads; they end when the last writer and the store are gone.
pub(super) struct IoThreads {
    shared: Arc<Shared>,
    threads: Vec<JoinHandle<()>>,
}

impl std::fmt::Debug for IoThreads {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "IoThreads({} of {} bytes)", self.threads.len(), self.shared.chunk_bytes)
    }
}

impl IoThreads {
    pub(super) fn start(threads: usize, chunk_bytes: usize) -> io::Result<IoThreads> {
        let shared = Arc::new(Shared {
            state: Mutex::default(),
            work: Condvar::new(),
            room: Condvar::new(),
            in_flight_max: 2 * threads,
            chunk_bytes,
        });
        let mut started =
            IoThreads { shared: shared.clone(), threads: Vec::with_capacity(threads) };
        for number in 0..threads {
            let shared = shared.clone();
            let thread = thread::Builder::new().name(format!("sf-io-{number}"));
            started.threads.push(thread.spawn(move || {
                standfast_sys::keep_signals_away();
                shared.work();
            })?);
        }
        Ok(started)
    }

    pub(super) fn chunk_bytes(&self) -> usize {
        self.shared.chunk_bytes
    }

    /// A buffer to fill; its old contents are arbitrary.
    pub(super) fn chunk(&self) -> AlignedBuf {
        let reused = self.shared.lock().free.pop();
        reused.unwrap_or_else(|| AlignedBuf::with_len(self.shared.chunk_bytes))
    }

    /// Makes the buffers that the first writer needs.
    pub(super) fn prepare(&self) {
        let chunks = [(); PREPARED].map(|()| self.chunk());
        for chunk in chunks {
            chunk.populate(0..chunk.len());
            self.give_back(chunk);
        }
    }

    /// Queues data for writing; waits while too much is in flight.
    pub(super) fn submit(
        &self,
        file: &Arc<PartFile>,
        data: Data,
        offset: u64,
        flight: &Arc<Flight>,
    ) {
        flight.started(data.bytes() as u64);
        let (file, flight) = (file.clone(), flight.clone());
        let mut state = self.shared.lock();
        while state.in_flight >= self.shared.in_flight_max {
            state = self.shared.room.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        state.in_flight += 1;
        state.queue.push_back(Job { file, data, offset, flight });
        drop(state);
        self.shared.work.notify_one();
    }

    /// Takes a buffer back that was never submitted.
    pub(super) fn give_back(&self, chunk: AlignedBuf) {
        self.shared.keep(&mut self.shared.lock(), chunk);
    }
}

impl Drop for IoThreads {
    fn drop(&mut self) {
        self.shared.lock().closed = true;
        self.shared.work.notify_all();
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn keep(&self, state: &mut State, chunk: AlignedBuf) {
        if state.free.len() < self.in_flight_max {
            state.free.push(chunk);
        }
    }

    /// A thread's life.
    fn work(&self) {
        while let Some(job) = self.next() {
            let started = Instant::now();
            let result = if job.flight.has_failed() {
                Ok(()) // Its object is given up already: do not fill the disk for nothing.
            } else {
                write(&job)
            };
            let written = result.map(|()| (job.data.bytes() as u64, started.elapsed()));
            // First the room, then the news: who waits for the news may submit at once.
            let Job { data, flight, file, .. } = job;
            drop(file);
            let chunk = match data {
                Data::Chunk(chunk, _) => Some(chunk),
                Data::Gathered(_) => None,
            };
            let mut state = self.lock();
            state.in_flight -= 1;
            if let Some(chunk) = chunk {
                self.keep(&mut state, chunk);
            }
            drop(state);
            self.room.notify_one();
            flight.finished(written);
        }
    }

    fn next(&self) -> Option<Job> {
        let mut state = self.lock();
        loop {
            if let Some(job) = state.queue.pop_front() {
                return Some(job);
            }
            if state.closed {
                return None;
            }
            state = self.work.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }
}

fn write(job: &Job) -> io::Result<()> {
    failpoint::pass("store.chunk.write")?;
    let bytes = match &job.data {
        Data::Chunk(chunk, bytes) => {
            job.file.write_all_at(&chunk[..*bytes], job.offset)?;
            *bytes
        }
        Data::Gathered(gathered) => {
            job.file.write_all_gathered(gathered, job.offset)?;
            gathered.iter().map(|bytes| (**bytes).as_ref().len()).sum()
        }
    };
    count::wrote(bytes as u64);
    job.file.write_back(job.offset, bytes as u64)
}

/// The chunks of one writer that are on their way, and the first failure among them.
#[derive(Debug, Default)]
pub(super) struct Flight {
    state: Mutex<FlightState>,
    landed: Condvar,
    failed: AtomicBool,
    meter: Arc<WriteMeter>,
}

#[derive(Debug, Default)]
struct FlightState {
    pending: usize,
    error: Option<io::Error>,
}

impl Flight {
    fn lock(&self) -> MutexGuard<'_, FlightState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Counts its writes.
    pub(super) fn meter(&self) -> &Arc<WriteMeter> {
        &self.meter
    }

    fn started(&self, bytes: u64) {
        self.meter.started(bytes);
        self.lock().pending += 1;
    }

    /// Bytes and time of a write, or its failure.
    fn finished(&self, result: io::Result<(u64, Duration)>) {
        match &result {
            Ok((bytes, took)) => self.meter.landed(*bytes, *took),
            Err(_) => self.meter.failed(),
        }
        let mut state = self.lock();
        state.pending -= 1;
        if let Err(error) = result {
            self.failed.store(true, Ordering::Release);
            state.error.get_or_insert(error);
        }
        if state.pending == 0 {
            self.landed.notify_all();
        }
    }

    /// Whether a chunk has failed so far.
    pub(super) fn has_failed(&self) -> bool {
        self.failed.load(Ordering::Acquire)
    }

    /// Waits until nothing is on its way; the first failure, if any.
    pub(super) fn wait(&self) -> io::Result<()> {
        let mut state = self.lock();
        while state.pending > 0 {
            state = self.landed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        state.error.take().map_or(Ok(()), Err)
    }
}
