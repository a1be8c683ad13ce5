//! The machine's own limits: copying and reading memory, writing and reading its disk.
//!
//! The disk is measured in every way a program could choose (through the page cache, past it,
//! one or several writes in flight) and the fastest counts: a stage is compared with the best
//! that could be done by hand, not with the way it happens to be built.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use rustix::fs::FallocateFlags;
use standfast_sys::AlignedBuf;

use crate::data;
use crate::figure::{Error, Figure, Result, Setting, best, rate, timed};

const CHUNK: usize = 1 << 20;

/// Rates of memory, one thread.
pub(crate) struct Memory {
    pub(crate) read: f64,
    pub(crate) copy: f64,
}

impl Memory {
    pub(crate) fn measure(setting: &Setting) -> Self {
        let source = data::random(setting.bytes, 1);
        let mut target = data::random(setting.bytes, 2);
        let read = best(setting.rounds.max(3), || {
            std::hint::black_box(read_all(&source));
        });
        let copy = best(setting.rounds.max(3), || {
            target.copy_from_slice(&source);
            std::hint::black_box(&target);
        });
        Self { read: rate(setting.bytes, read), copy: rate(setting.bytes, copy) }
    }

    pub(crate) fn figures(&self) -> impl Iterator<Item = Figure> {
        [Figure::rate("memory read", self.read), Figure::rate("memcpy", self.copy)].into_iter()
    }
}

/// Reads every byte once, as fast as one thread can.
pub(crate) fn read_all(bytes: &[u8]) -> u64 {
    #[cfg(target_arch = "x86_64")]
    if std::arch::is_x86_feature_detected!("avx2") {
        // SAFETY: the feature was just found.
        return unsafe { read_all_avx2(bytes) };
    }
    read_all_portable(bytes)
}

/// Wide loads, several at once, with the lines after next already asked for.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
fn read_all_avx2(bytes: &[u8]) -> u64 {
    use std::arch::x86_64::{
        __m256i, _MM_HINT_T0, _mm_prefetch, _mm256_extract_epi64, _mm256_loadu_si256,
        _mm256_or_si256, _mm256_setzero_si256,
    };
    const STEP: usize = 256;
    const AHEAD: usize = 1024;
    let mut sums = [_mm256_setzero_si256(); STEP / 32];
    for line in bytes.chunks_exact(STEP) {
        for (at, sum) in sums.iter_mut().enumerate() {
            let place = line.as_ptr().wrapping_add(32 * at);
            // SAFETY: eight times 32 bytes are in the line; a prefetch may name any address.
            let word = unsafe {
                _mm_prefetch::<_MM_HINT_T0>(place.wrapping_add(AHEAD).cast());
                _mm256_loadu_si256(place.cast::<__m256i>())
            };
            *sum = _mm256_or_si256(*sum, word);
        }
    }
    let all = sums.into_iter().fold(_mm256_setzero_si256(), |all, sum| _mm256_or_si256(all, sum));
    _mm256_extract_epi64::<0>(all) as u64
}

fn read_all_portable(bytes: &[u8]) -> u64 {
    // Independent sums, so that the loads are not chained to each other.
    let mut sums = [0u64; 32];
    for line in bytes.chunks_exact(256) {
        for (sum, word) in sums.iter_mut().zip(line.chunks_exact(8)) {
            *sum |= u64::from_le_bytes(word.try_into().expect("8 bytes"));
        }
    }
    sums.iter().fold(0, |all, sum| all | sum)
}

/// One way to write or read a file.
#[derive(Clone, Copy)]
pub(crate) struct Way {
    pub(crate) name: &'static str,
    direct: bool,
    threads: usize,
}

/// The ways to write that are tried.
pub(crate) const WRITE_WAYS: [Way; 4] = [
    Way { name: "buffered", direct: false, threads: 1 },
    Way { name: "direct, 1 in flight", direct: true, threads: 1 },
    Way { name: "direct, 4 in flight", direct: true, threads: 4 },
    Way { name: "direct, 8 in flight", direct: true, threads: 8 },
];

/// The ways to read that are tried: all past the page cache, which a restart finds cold.
pub(crate) const READ_WAYS: [Way; 3] = [
    Way { name: "direct, 1 in flight", direct: true, threads: 1 },
    Way { name: "direct, 4 in flight", direct: true, threads: 4 },
    Way { name: "direct, 8 in flight", direct: true, threads: 8 },
];

/// A file of its own directory; both go with it.
pub(crate) struct Raw {
    dir: PathBuf,
    path: PathBuf,
}

impl Raw {
    pub(crate) fn new(parent: &Path, name: &str) -> Result<Raw> {
        let dir = parent.join(name);
        std::fs::create_dir(&dir)
            .map_err(|source| Error::Io { what: format!("making {}", dir.display()), source })?;
        Ok(Raw { path: dir.join("data"), dir })
    }

    /// Writes the file; returns the time until all was written and until it was durable.
    pub(crate) fn write(&self, source: &[u8], way: Way) -> Result<(Duration, Duration)> {
        let path = &self.path;
        let file = open(path, OpenOptions::new().create(true).truncate(true).write(true), way)?;
        let started = std::time::Instant::now();
        // Preallocation is part of the trick; a file system without it writes all the same.
        let _ = rustix::fs::fallocate(&file, FallocateFlags::empty(), 0, source.len() as u64);
        let write = |offset, chunk: &[u8]| file.write_all_at(chunk, offset);
        each_chunk(source.chunks(CHUNK), way.threads, write)
            .map_err(|source| failed("writing", path, source))?;
        let written = started.elapsed();
        file.sync_all().map_err(|source| failed("syncing", path, source))?;
        Ok((written, started.elapsed()))
    }

    /// Reads what was written, past the page cache.
    pub(crate) fn read(&self, target: &mut AlignedBuf, way: Way) -> Result<Duration> {
        let path = &self.path;
        let file = open(path, OpenOptions::new().read(true), way)?;
        let read = |offset, chunk: &mut [u8]| file.read_exact_at(chunk, offset);
        let (outcome, time) = timed(|| each_chunk(target.chunks_mut(CHUNK), way.threads, read));
        outcome.map_err(|source| failed("reading", path, source))?;
        Ok(time)
    }
}

impl Drop for Raw {
    fn drop(&mut self) {
        // A left-over in a temporary directory goes with it.
        let _ = std::fs::remove_dir_all(&self.dir);
    }
}

fn open(path: &Path, options: &mut OpenOptions, way: Way) -> Result<File> {
    let direct = if way.direct { libc::O_DIRECT } else { 0 };
    let file = options.mode(0o600).custom_flags(direct).open(path);
    // Some file systems know no direct access.
    file.or_else(|_| options.custom_flags(0).open(path))
        .map_err(|source| failed("opening", path, source))
}

/// Does something with every chunk and its offset, in so many threads.
fn each_chunk<T: Send>(
    chunks: impl Iterator<Item = T> + Send,
    threads: usize,
    each: impl Fn(u64, T) -> io::Result<()> + Sync,
) -> io::Result<()> {
    let left = Mutex::new(chunks.enumerate());
    let next = || left.lock().unwrap_or_else(PoisonError::into_inner).next();
    let run = || {
        while let Some((at, chunk)) = next() {
            each((at * CHUNK) as u64, chunk)?;
        }
        Ok(())
    };
    std::thread::scope(|scope| {
        let others: Vec<_> = (1..threads).map(|_| scope.spawn(run)).collect();
        let own = run();
        others
            .into_iter()
            .map(|other| other.join().expect("no panic"))
            .fold(own, |all, one| all.and(one))
    })
}

fn failed(what: &str, path: &Path, source: io::Error) -> Error {
    Error::Io { what: format!("{what} {}", path.display()), source }
}
