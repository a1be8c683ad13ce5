//! A store of a given speed that keeps nothing: the same device on every machine, slow or fast.
//!
//! It gathers what it is given into chunks and has several of them on their way, as the directory
//! store does; one thread "writes" them by waiting as long as the device would take.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, SyncSender, channel, sync_channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use standfast_store::{
    Error, Lock, LockGuard, MemoryStore, ObjectMeta, ObjectReader, ObjectWriter, OwnedBytes,
    Result, Store, WriteMeter, WriteSizes,
};

const CHUNK_BYTES: usize = 2 << 20;
const IN_FLIGHT_MAX: usize = 16;

/// A device of so many bytes a second.
#[derive(Debug)]
pub(super) struct Limited {
    bytes_per_s: f64,
    /// For everything that is not written as a stream.
    rest: MemoryStore,
}

impl Limited {
    pub(super) fn new(bytes_per_s: f64) -> Self {
        Self { bytes_per_s, rest: MemoryStore::new() }
    }
}

impl Store for Limited {
    fn describe(&self) -> String {
        format!("limited:{}", self.bytes_per_s)
    }

    fn create(&self, name: &str, _: Option<u64>) -> Result<Box<dyn ObjectWriter>> {
        standfast_store::check_name(name, "limited:")?;
        let (work, queue) = sync_channel(IN_FLIGHT_MAX);
        let (meter, own) = (WriteMeter::shared(), self.bytes_per_s);
        let counted = Arc::clone(&meter);
        let device = std::thread::spawn(move || device(&queue, own, &counted));
        Ok(Box::new(Writer {
            chunk: vec![0; CHUNK_BYTES],
            filled: 0,
            held: Vec::new(),
            held_bytes: 0,
            submitted: 0,
            waiting: None,
            unsettled: false,
            sizes: WriteSizes::new(CHUNK_BYTES),
            meter,
            work: Some(work),
            device: Some(device),
        }))
    }

    fn put(&self, name: &str, bytes: &[u8]) -> Result<()> {
        self.rest.put(name, bytes)
    }

    fn put_new(&self, name: &str, bytes: &[u8]) -> Result<()> {
        self.rest.put_new(name, bytes)
    }

    fn open(&self, name: &str) -> Result<Box<dyn ObjectReader>> {
        self.rest.open(name)
    }

    fn list(&self, prefix: &str) -> Result<Vec<ObjectMeta>> {
        self.rest.list(prefix)
    }

    fn remove(&self, name: &str) -> Result<()> {
        self.rest.remove(name)
    }

    fn discard_unsealed(&self) -> Result<u64> {
        Ok(0)
    }

    fn lock(&self, lock: Lock) -> Result<LockGuard> {
        self.rest.lock(lock)
    }

    fn free_bytes(&self) -> std::result::Result<Option<u64>, Error> {
        Ok(None)
    }
}

enum Work {
    /// So many bytes, when they were handed over, and the buffers to give back when they are
    /// written.
    Write(usize, Instant, Vec<OwnedBytes>),
    /// Tell when everything before is written.
    Settle(Sender<()>),
}

fn device(queue: &Receiver<Work>, bytes_per_s: f64, meter: &WriteMeter) {
    let mut free = Instant::now();
    for work in queue {
        match work {
            Work::Write(bytes, handed, held) => {
                let took = Duration::from_secs_f64(bytes as f64 / bytes_per_s);
                // A device that had nothing to do begins when it is told to, else when it is done
                // with the last. That this thread woke up late is not the device's time.
                free = free.max(handed) + took;
                std::thread::sleep(free.saturating_duration_since(Instant::now()));
                drop(held);
                meter.landed(bytes as u64, took);
            }
            // Whoever asked may be gone.
            Work::Settle(done) => drop(done.send(())),
        }
    }
}

struct Writer {
    chunk: Vec<u8>,
    filled: usize,
    held: Vec<OwnedBytes>,
    held_bytes: usize,
    submitted: u64,
    /// Since when the chunk's bytes wait.
    waiting: Option<Instant>,
    /// Whether anything was handed over since it was last waited for.
    unsettled: bool,
    sizes: WriteSizes,
    meter: Arc<WriteMeter>,
    work: Option<SyncSender<Work>>,
    device: Option<JoinHandle<()>>,
}

impl Writer {
    fn submit(&mut self, bytes: usize, held: Vec<OwnedBytes>) {
        if bytes == 0 {
            return;
        }
        self.meter.started(bytes as u64);
        self.submitted += bytes as u64;
        self.unsettled = true;
        self.waiting = None;
        self.sizes.grow();
        let work = self.work.as_ref().expect("open until sealed");
        work.send(Work::Write(bytes, Instant::now(), held)).expect("the device runs until then");
    }

    fn flush(&mut self) {
        let filled = std::mem::take(&mut self.filled);
        self.submit(filled, Vec::new());
        let (held_bytes, held) =
            (std::mem::take(&mut self.held_bytes), std::mem::take(&mut self.held));
        self.submit(held_bytes, held);
    }
}

impl ObjectWriter for Writer {
    fn append(&mut self, mut bytes: &[u8]) -> Result<()> {
        if !self.held.is_empty() {
            self.flush();
        }
        while !bytes.is_empty() {
            let waited = self.waiting.get_or_insert_with(Instant::now).elapsed();
            let limit = self.sizes.after(self.submitted, waited, || self.meter.under_way());
            let (now, later) = bytes.split_at(bytes.len().min(limit.saturating_sub(self.filled)));
            self.chunk[self.filled..][..now.len()].copy_from_slice(now);
            self.filled += now.len();
            bytes = later;
            if self.filled >= limit {
                self.flush();
            }
        }
        Ok(())
    }

    fn append_owned(&mut self, bytes: OwnedBytes) -> Result<()> {
        if self.filled > 0 {
            self.flush();
        }
        self.held_bytes += (*bytes).as_ref().len();
        self.held.push(bytes);
        if self.held_bytes >= self.sizes.now() {
            self.flush();
        }
        Ok(())
    }

    fn written(&self) -> u64 {
        self.submitted + (self.filled + self.held_bytes) as u64
    }

    fn settle(&mut self) -> Result<()> {
        if !std::mem::take(&mut self.unsettled) {
            return Ok(());
        }
        let (done, settled) = channel();
        let work = self.work.as_ref().expect("open until sealed");
        work.send(Work::Settle(done)).expect("the device runs until then");
        settled.recv().expect("the device answers");
        Ok(())
    }

    fn meter(&self) -> Option<Arc<WriteMeter>> {
        Some(Arc::clone(&self.meter))
    }

    fn seal(mut self: Box<Self>) -> Result<u64> {
        self.flush();
        let bytes = self.written();
        self.work = None;
        let device = self.device.take().expect("running until now");
        device.join().expect("a device does not panic");
        Ok(bytes)
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        self.work = None;
        if let Some(device) = self.device.take() {
            let _ = device.join();
        }
    }
}
