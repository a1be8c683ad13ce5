//! What each stage reaches of the ceilings.

use std::path::Path;
use std::time::Duration;

use standfast::{Job, Level, Stats, Version};
use standfast_format::HashKind;
use standfast_reduce::{BlockDecoder, BlockEncoder, CodecSpec, FilterChoice, PageHasher, is_zero};
use standfast_sys::AlignedBuf;

use crate::ceiling::{Memory, READ_WAYS, Raw, WRITE_WAYS};
use crate::data;
use crate::figure::{Error, Figure, Result, Setting, best, rate, timed};
use crate::memory;

const PAGE: usize = 4096;
const BLOCK: usize = 128 << 10;
/// Less memory than this is no budget for a checkpoint of any size.
const MEMORY_BYTES_MIN: u64 = 64 << 20;

/// Zero detection and hashing, one thread, beside the read bandwidth.
pub(crate) fn scan(setting: &Setting, memory: &Memory) -> Vec<Figure> {
    let mut figures = vec![zero(setting, memory)];
    let pages = data::random(setting.bytes, 3);
    for kind in HashKind::ALL {
        let hasher = PageHasher::new(*kind, &[7; 32]);
        let mut out = vec![0; pages.len() / PAGE * hasher.bytes()];
        let time = best(setting.rounds, || {
            hasher.hash_pages(&pages, PAGE, &mut out);
            std::hint::black_box(&out);
        });
        let figure = Figure::rate(format!("hash {kind}"), rate(pages.len(), time));
        figures.push(figure.of("memory read", memory.read));
    }
    figures
}

pub(crate) fn zero(setting: &Setting, memory: &Memory) -> Figure {
    let mut zeros = AlignedBuf::with_len(setting.bytes);
    // Written once, so that the pages are really there.
    zeros.fill(1);
    zeros.fill(0);
    let time = best(setting.rounds, || {
        let all = zeros.chunks_exact(PAGE).all(is_zero);
        assert!(std::hint::black_box(all), "zeros are zero");
    });
    Figure::rate("zero pages", rate(zeros.len(), time)).of("memory read", memory.read)
}

/// Compression and decompression of 128 KiB blocks, one thread.
pub(crate) fn compress(setting: &Setting, memory: &Memory) -> Vec<Figure> {
    let bytes = setting.bytes.min(256 << 20);
    let sources = [
        ("smooth f64", data::field(bytes, 0.0)),
        ("noisy f64", data::field(bytes, 1e-3)),
        ("random", data::random(bytes, 5)),
    ];
    let mut figures = Vec::new();
    for codec in ["lz4", "zstd:1", "zstd:3", "deflate:1"] {
        let spec: CodecSpec = codec.parse().expect("a codec of ours");
        for (name, source) in &sources {
            figures.extend(codec_figures(codec, spec, name, source, memory));
        }
    }
    figures
}

fn codec_figures(
    name: &str,
    spec: CodecSpec,
    data: &str,
    source: &[u8],
    memory: &Memory,
) -> [Figure; 2] {
    let mut encoder = BlockEncoder::new(spec, FilterChoice::Auto, BLOCK);
    let mut decoder = BlockDecoder::new(BLOCK);
    let mut stored = 0;
    let (mut encoding, mut decoding) = (Duration::ZERO, Duration::ZERO);
    for block in source.chunks(BLOCK) {
        let (encoded, time) = timed(|| encoder.encode(block, 0));
        encoding += time;
        stored += encoded.bytes.len();
        let decode = || {
            let raw = decoder.decode(encoded.codec, encoded.filter, encoded.bytes, block.len());
            raw.expect("what was encoded can be decoded").len()
        };
        decoding += timed(decode).1;
    }
    let factor = source.len() as f64 / stored as f64;
    let figure = |verb: &str, time| {
        Figure::rate(format!("{verb} {name}, {data}"), rate(source.len(), time))
            .of("memcpy", memory.copy)
    };
    [
        figure("compress", encoding).note(format!("{factor:.2} x smaller")),
        figure("decompress", decoding),
    ]
}

/// Whole checkpoints and restarts beside the raw disk: medians over the rounds, so that what is
/// tried in more ways (the raw disk) has no better chance of a lucky round; and shares of the raw
/// disk as medians of what they were within each round, for a disk that others use too is faster
/// in one second than in the next. So is what a first checkpoint is compared with written right before
/// and right after it, in the way that has been the fastest so far.
#[derive(Default)]
pub(crate) struct Disk {
    pub(crate) bytes: usize,
    raw: RawTimes,
    segment: Times,
    job: JobTimes,
    pub(crate) stats: Stats,
    /// Peak of resident memory during checkpoints, beyond what was there before: the most of all rounds.
    pub(crate) extra_bytes: Option<u64>,
    /// The setting `memory` of those checkpoints.
    pub(crate) memory_bytes: u64,
}

/// The raw disk: write without and with the final sync, and read, by way.
#[derive(Default)]
struct RawTimes {
    written: [Times; WRITE_WAYS.len()],
    durable: [Times; WRITE_WAYS.len()],
    read: [Times; READ_WAYS.len()],
    /// Write with the final sync, right before and after a first checkpoint: the mean.
    beside: Times,
}

/// Checkpoints until they were durable, and restarts.
#[derive(Default)]
struct JobTimes {
    first: Times,
    first_blocked: Times,
    second: Times,
    restart: Times,
}

/// How long something took, round by round.
#[derive(Default)]
struct Times(Vec<Duration>);

impl Times {
    fn add(&mut self, time: Duration) {
        self.0.push(time);
    }

    fn median(&self) -> Duration {
        let mut sorted = self.0.clone();
        sorted.sort_unstable();
        sorted[sorted.len() / 2]
    }

    /// What share of its own time something else took in the same round: the median.
    fn share(&self, other: &Times) -> f64 {
        let rounds = self.0.iter().zip(&other.0);
        let mut shares: Vec<f64> =
            rounds.map(|(own, other)| other.as_secs_f64() / own.as_secs_f64()).collect();
        shares.sort_unstable_by(f64::total_cmp);
        shares[shares.len() / 2]
    }
}

/// The way with the smallest median, and its place.
fn best_way(ways: &[Times]) -> (usize, Duration) {
    let medians = ways.iter().map(Times::median).enumerate();
    medians.min_by_key(|(_, median)| *median).expect("there is a way")
}

/// Measures everything that touches the disk; all in one run, alternating.
pub(crate) fn disk(setting: &Setting) -> Result<Disk> {
    let dir = tempfile::tempdir_in(&setting.dir)
        .map_err(|source| Error::Io { what: "making a directory".into(), source })?;
    let mut memory = data::random(setting.bytes, 11);
    let mut target = data::random(setting.bytes, 12);
    let mut disk = Disk { bytes: setting.bytes, ..Disk::default() };
    for round in 0..setting.rounds.max(1) {
        raw_round(dir.path(), &memory, &mut target, round, &mut disk)?;
        segment_round(dir.path(), &memory, &mut disk)?;
        job_round(dir.path(), &mut memory, &mut target, round as u64, &mut disk)?;
        memory_round(dir.path(), &mut memory, round as u64, &mut disk)?;
    }
    Ok(disk)
}

/// Every way begins with a new file in a new directory, as a job does: blocks that were written a
/// moment ago are faster than others.
fn raw_round(
    dir: &Path,
    source: &[u8],
    target: &mut AlignedBuf,
    round: usize,
    disk: &mut Disk,
) -> Result<()> {
    let mut last = None;
    for (at, way) in WRITE_WAYS.into_iter().enumerate() {
        // The one before goes first: two copies need not fit.
        drop(last.take());
        let raw = Raw::new(dir, &format!("raw-{round}-{at}"))?;
        let (written, durable) = raw.write(source, way)?;
        disk.raw.written[at].add(written);
        disk.raw.durable[at].add(durable);
        last = Some(raw);
    }
    let raw = last.expect("there is a way");
    for (at, way) in READ_WAYS.into_iter().enumerate() {
        disk.raw.read[at].add(raw.read(target, way)?);
    }
    Ok(())
}

/// Write and sync in the way that was the fastest so far.
fn raw_again(dir: &Path, source: &[u8], disk: &Disk) -> Result<Duration> {
    let (way, _) = best_way(&disk.raw.durable);
    Ok(Raw::new(dir, "raw-beside")?.write(source, WRITE_WAYS[way])?.1)
}

/// One large object through the store alone: no hashing, no compression.
fn segment_round(dir: &Path, source: &[u8], disk: &mut Disk) -> Result<()> {
    let options = standfast_store::Options::default();
    let store = standfast_store::open(&dir.join("segment").to_string_lossy(), &options)?;
    let (outcome, time) = timed(|| {
        let mut writer = store.create("segment", None)?;
        source.chunks(BLOCK).try_for_each(|block| writer.append(block))?;
        writer.seal()
    });
    outcome?;
    disk.segment.add(time);
    Ok(store.remove("segment")?)
}

/// A whole job: first checkpoint, one with 1 % of the pages changed, restart.
fn job_round(
    dir: &Path,
    memory: &mut AlignedBuf,
    target: &mut AlignedBuf,
    round: u64,
    disk: &mut Disk,
) -> Result<()> {
    let store = dir.join(format!("job-{round}"));
    let job = Job::open(&[("store", &store.to_string_lossy()), ("job", "bench")])?;
    // SAFETY: the buffer outlives its protection and nobody else uses it.
    unsafe { job.protect("memory", memory.as_mut_ptr(), memory.len(), 8)? };
    let raw_before = raw_again(dir, memory, disk)?;
    let (first, blocked, durable) = durable(&job)?;
    disk.raw.beside.add((raw_before + raw_again(dir, memory, disk)?) / 2);
    disk.job.first.add(durable);
    disk.job.first_blocked.add(blocked);
    disk.stats = job.report(first)?.stats;
    data::touch_pages(memory, PAGE, 100, round + 1);
    let (version, _, durable) = self::durable(&job)?;
    disk.job.second.add(durable);
    job.unprotect("memory")?;
    // SAFETY: as above.
    unsafe { job.protect("memory", target.as_mut_ptr(), target.len(), 8)? };
    let (outcome, time) = timed(|| job.restart_from(version));
    outcome?;
    disk.job.restart.add(time);
    if target[..] != memory[..] {
        return Err(Error::Wrong);
    }
    end(job, &store)
}

/// Checkpoints of everything with much less memory than is protected: how much is really taken.
fn memory_round(dir: &Path, memory: &mut AlignedBuf, round: u64, disk: &mut Disk) -> Result<()> {
    let store = dir.join(format!("memory-{round}"));
    disk.memory_bytes = (memory.len() as u64 / 8).max(MEMORY_BYTES_MIN);
    let budget = format!("{}MiB", disk.memory_bytes >> 20);
    memory::reset_peak();
    let before = memory::resident();
    let settings = [("store", &*store.to_string_lossy()), ("job", "bench"), ("memory", &budget)];
    let job = Job::open(&settings)?;
    // SAFETY: the buffer outlives its protection and nobody else uses it.
    unsafe { job.protect("memory", memory.as_mut_ptr(), memory.len(), 8)? };
    for change in 0..2 {
        durable(&job)?;
        data::touch_pages(memory, PAGE, 1, round + change);
    }
    durable(&job)?;
    if let (Some(before), Some(after)) = (before, memory::resident()) {
        let extra = after.peak.saturating_sub(before.now);
        disk.extra_bytes = disk.extra_bytes.max(Some(extra));
    }
    end(job, &store)
}

/// Ends a job, and removes what it has stored.
fn end(job: Job, store: &Path) -> Result<()> {
    job.unprotect("memory")?;
    job.close()?;
    std::fs::remove_dir_all(store)
        .map_err(|source| Error::Io { what: format!("removing {}", store.display()), source })
}

/// Takes a checkpoint; returns how long the call took and how long until it was durable.
fn durable(job: &Job) -> Result<(Version, Duration, Duration)> {
    let started = std::time::Instant::now();
    let version = job.checkpoint(None)?;
    let blocked = started.elapsed();
    job.wait(version, Level::Local)?;
    Ok((version, blocked, started.elapsed()))
}

impl Disk {
    /// The raw disk's write+fsync beside first checkpoints, and how it was reached.
    pub(crate) fn raw_durable(&self) -> (&'static str, Duration) {
        (WRITE_WAYS[best_way(&self.raw.durable).0].name, self.raw.beside.median())
    }

    pub(crate) fn raw_read(&self) -> Duration {
        best_way(&self.raw.read).1
    }

    /// Share of the raw disk's write+fsync that a first checkpoint reaches.
    pub(crate) fn durable_share(&self) -> f64 {
        self.job.first.share(&self.raw.beside)
    }

    /// Share of the raw disk's read that a restart reaches.
    pub(crate) fn restart_share(&self) -> f64 {
        self.job.restart.share(&self.raw.read[best_way(&self.raw.read).0])
    }

    pub(crate) fn first(&self) -> Duration {
        self.job.first.median()
    }

    pub(crate) fn second(&self) -> Duration {
        self.job.second.median()
    }

    pub(crate) fn restart(&self) -> Duration {
        self.job.restart.median()
    }

    pub(crate) fn figures(&self) -> impl Iterator<Item = Figure> {
        let rate = |time| rate(self.bytes, time);
        let (way, durable) = self.raw_durable();
        let (raw, read) = (rate(durable), rate(self.raw_read()));
        let second = self.first().as_secs_f64() / self.second().as_secs_f64();
        [
            Figure::rate("disk write", rate(best_way(&self.raw.written).1)).note("without sync"),
            Figure::rate("disk write+fsync", raw).note(way),
            Figure::rate("disk read", read).note("past the page cache"),
            Figure::rate("segment write", rate(self.segment.median())).of("disk write+fsync", raw),
            Figure::rate("checkpoint, durable", rate(self.first())).of("disk write+fsync", raw),
            Figure::rate("checkpoint, blocked", rate(self.job.first_blocked.median()))
                .note("of the same one"),
            Figure::rate("checkpoint, 1 % changed", rate(self.second()))
                .note(format!("{second:.1} x faster than the first")),
            Figure::rate("restart", rate(self.restart())).of("disk read", read),
        ]
        .into_iter()
    }
}
