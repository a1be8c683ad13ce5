//! Jobs whose state lies on a GPU, measured and put to the test on a real one.
//!
//!     cargo run --release -p gpu-check --bin device_region -- DIR [GIB [PART]]
//!
//! | part | what happens |
//! |---|---|
//! | `whole` | checkpoint, change 5 %, checkpoint, restart; the program writes behind the call to all pages that had changed, so that only a sound copy brings the answer back |
//! | `shared` | pages that lie on the host or in earlier checkpoints do not cross |
//! | `ranks` | two ranks with the same field share its pages; what each changes crosses behind the call |
//! | `memory` | the device is filled to the last bytes, and a second job takes a checkpoint |
//! | `lost` | the device breaks down between two checkpoints (last: it is of no use afterwards) |
//! | `copies` | alone only: kernels cannot be used, whatever the reason |
//!
//! Prints JSON lines; ends with an error if something is not as it should be. The regions hold
//! noisy f64 fields without two equal pages.

use std::error::Error;
use std::path::Path;
use std::time::{Duration, Instant};

use standfast::{Job, Kind, Level, Report};
use standfast_comm::Comm;
use standfast_gpu::{DeviceBuffer, Gpu, Stream, downloaded_bytes};
use standfast_testkit::vectors;

type Result<T> = std::result::Result<T, Box<dyn Error>>;

const PAGE: usize = 4096;
const PIECE: usize = 256 << 20;
/// Ranks that share a device, each with a quarter of what one alone has.
const RANKS: usize = 2;

fn main() -> Result<()> {
    let mut args = std::env::args().skip(1);
    let dir = args.next().ok_or("the directory is missing")?;
    let gib: usize = args.next().map_or(Ok(16), |text| text.parse())?;
    let part = args.next();
    let dir = Path::new(&dir);
    let wanted = |name: &str| part.as_ref().map_or(name != "copies", |part| part == name);
    let gpu = Gpu::open_for_copies(0)?;
    let stream = gpu.stream()?;
    if wanted("whole") {
        whole(&gpu, &stream, dir, gib << 30)?;
    }
    if wanted("shared") {
        shared(&gpu, &stream, dir)?;
    }
    if wanted("ranks") {
        let outcomes = standfast_testkit::run_threads(RANKS, |comm| {
            ranks(&comm, dir, gib << 28).map_err(|error| error.to_string())
        });
        outcomes.into_iter().collect::<std::result::Result<Vec<()>, String>>()?;
    }
    if wanted("memory") {
        without_memory(&gpu, &stream, dir)?;
    }
    if wanted("copies") {
        by_copies(&gpu, &stream, dir)?;
    }
    if wanted("lost") {
        lost(&gpu, &stream, dir)?;
    }
    Ok(())
}

fn open(dir: &Path, job: &str) -> Result<Job> {
    let store = dir.to_str().ok_or("a directory that is no text")?;
    Ok(Job::open(&[("store", store), ("job", job), ("lab.device_staging", "2GiB")])?)
}

fn whole(gpu: &Gpu, stream: &Stream, dir: &Path, bytes: usize) -> Result<()> {
    let memory = field(gpu, stream, bytes)?;
    let job = open(dir, "whole")?;
    let host = vec![0_u8; PAGE];
    // SAFETY: it is refused.
    let refused = unsafe { job.protect_device("host", host.as_ptr() as u64, PAGE, 0) };
    expect(matches!(&refused, Err(error) if error.kind() == Kind::Invalid), "host memory")?;
    // SAFETY: the memory outlives the job, and nothing is queued during its calls.
    unsafe { job.protect_device("field", memory.slice().address(), bytes, 8)? };
    take(&job, "first checkpoint")?;
    take(&job, "nothing changed")?;

    change(stream, &memory, 0x77)?;
    let saved = gpu.allocate("a copy", bytes)?;
    stream.copy(memory.slice(), saved.slice())?;
    stream.wait()?;
    let taking = Taking::start();
    let version = job.checkpoint(None)?;
    let blocked = taking.started.elapsed();
    change(stream, &memory, 0x11)?;
    job.wait(version, Level::Local)?;
    taking.line("5 % changed, overwritten behind the call", &job.report(version)?, blocked);

    restart(&job, stream, &memory, &saved, "restart to the device")?;
    change(stream, &memory, 0x33)?;
    take(&job, "5 % changed after the restart")?;
    change(stream, &memory, 0x44)?;
    take(&job, "5 % changed once more")?;
    Ok(job.close()?)
}

/// Pages on the device that the host or an earlier checkpoint has.
fn shared(gpu: &Gpu, stream: &Stream, dir: &Path) -> Result<()> {
    let bytes = PIECE;
    let memory = field(gpu, stream, bytes)?;
    let job = open(dir, "shared")?;
    let host = job.alloc::<u8>("host", bytes)?;
    stream.download(memory.slice(), &mut host.write())?;
    // SAFETY: as above.
    unsafe { job.protect_device("field", memory.slice().address(), bytes, 8)? };
    let report = take(&job, "the same pages on host and device")?;
    let pages = (bytes / PAGE) as u64;
    let stats = &report.stats;
    expect((stats.new_pages, stats.duplicate_pages) == (pages, pages), "each page once")?;
    let half = bytes / 2;
    stream.copy(memory.slice().part(half, half), memory.slice().part(0, half))?;
    stream.wait()?;
    let report = take(&job, "pages of the checkpoint before, at other places")?;
    expect(report.stats.new_pages == 0, "nothing is new")?;
    Ok(job.close()?)
}

/// One rank of several that hold the same field on one device.
fn ranks(comm: &standfast_testkit::Threads, dir: &Path, bytes: usize) -> Result<()> {
    let gpu = Gpu::open_for_copies(0)?;
    let stream = gpu.stream()?;
    let memory = field(&gpu, &stream, bytes)?;
    let store = dir.to_str().ok_or("a directory that is no text")?;
    let settings =
        [("store", store), ("job", "ranks"), ("lab.mode", "all"), ("lab.device_staging", "2GiB")];
    let settings = settings.map(|(name, text)| (name.to_owned(), text.to_owned()));
    let job = Job::open_comm(standfast::config::Loaded::load(&settings)?, comm)?;
    // SAFETY: the memory outlives the job, and nothing is queued during its calls.
    unsafe { job.protect_device("field", memory.slice().address(), bytes, 8)? };
    let report = take(&job, "first checkpoint of ranks with the same field")?;
    expect(report.stats.new_pages == (bytes / PAGE) as u64, "each page once, on any rank")?;
    let own = comm.rank() as u8;
    change(&stream, &memory, 0x70 + own)?;
    let saved = gpu.allocate("a copy", bytes)?;
    stream.copy(memory.slice(), saved.slice())?;
    stream.wait()?;
    let taking = Taking::start();
    let version = job.checkpoint(None)?;
    let blocked = taking.started.elapsed();
    change(&stream, &memory, 0x10 + own)?;
    job.wait(version, Level::Local)?;
    taking.line("ranks: 5 % changed, overwritten behind the call", &job.report(version)?, blocked);
    restart(&job, &stream, &memory, &saved, "ranks: restart to the device")?;
    Ok(job.close()?)
}

/// A device without room for anything of ours.
fn without_memory(gpu: &Gpu, stream: &Stream, dir: &Path) -> Result<()> {
    let bytes = 512 << 20;
    let memory = field(gpu, stream, bytes)?;
    let mut hoard = Vec::new();
    for shift in (16..=33).rev() {
        while let Ok(buffer) = gpu.allocate("everything", 1 << shift) {
            hoard.push(buffer);
        }
    }
    let job = open(dir, "full")?;
    // SAFETY: as above.
    unsafe { job.protect_device("field", memory.slice().address(), bytes, 8)? };
    let report = take(&job, "no device memory left")?;
    one_message(&report)?;
    change(stream, &memory, 0x22)?;
    let report = take(&job, "5 % changed, no device memory left")?;
    expect(report.notes.is_empty(), "said once")?;
    drop(hoard);
    let saved = gpu.allocate("a copy", bytes)?;
    stream.copy(memory.slice(), saved.slice())?;
    restart(&job, stream, &memory, &saved, "restart, memory again")?;
    change(stream, &memory, 0x55)?;
    let report = take(&job, "5 % changed, memory again")?;
    expect(report.notes.is_empty(), "no message")?;
    Ok(job.close()?)
}

/// A device of which only the memory can be used: such as one with too old a driver.
fn by_copies(gpu: &Gpu, stream: &Stream, dir: &Path) -> Result<()> {
    let bytes = PIECE;
    let memory = field(gpu, stream, bytes)?;
    let job = open(dir, "copies")?;
    // SAFETY: as above.
    unsafe { job.protect_device("field", memory.slice().address(), bytes, 8)? };
    one_message(&take(&job, "no kernels")?)?;
    change(stream, &memory, 0x66)?;
    let saved = gpu.allocate("a copy", bytes)?;
    stream.copy(memory.slice(), saved.slice())?;
    stream.wait()?;
    expect(take(&job, "5 % changed, no kernels")?.notes.is_empty(), "said once")?;
    restart(&job, stream, &memory, &saved, "restart, no kernels")?;
    Ok(job.close()?)
}

/// A device that breaks down: what was committed is whole, host memory can be saved.
fn lost(gpu: &Gpu, stream: &Stream, dir: &Path) -> Result<()> {
    let bytes = PIECE;
    let memory = field(gpu, stream, bytes)?;
    let mut expected = vec![0; bytes];
    stream.download(memory.slice(), &mut expected)?;
    let job = open(dir, "lost")?;
    let step = job.alloc::<u64>("step", 1)?;
    // SAFETY: not so: the memory goes first. Reading it breaks the device's context, which is what
    // this is about; nothing else on the device is used afterwards.
    unsafe { job.protect_device("field", memory.slice().address(), bytes, 8)? };
    let first = take(&job, "before the device is lost")?.version;
    drop(memory);
    step.write()[0] = 1;
    let failed = job.checkpoint(None).and_then(|version| job.wait(version, Level::Local));
    let error = failed.err().ok_or("not so: a lost device fails the checkpoint")?;
    println!(r#"{{"type":"check","name":"lost device","text":{:?}}}"#, error.to_string());
    expect(error.kind() == Kind::Io, "its kind")?;
    job.unprotect("field")?;
    take(&job, "host memory alone, after the device is lost")?;
    let field = job.alloc::<u8>("field", bytes)?;
    expect(job.restart_from(first)?.version == first, "the version")?;
    expect(*field.read() == *expected && step.read()[0] == 0, "brought back on the host")?;
    drop((field, step));
    Ok(job.close()?)
}

fn restart(
    job: &Job,
    stream: &Stream,
    memory: &DeviceBuffer,
    saved: &DeviceBuffer,
    name: &str,
) -> Result<()> {
    stream.fill(memory.slice(), 0xee)?;
    stream.wait()?;
    let started = Instant::now();
    job.restart()?;
    let seconds = started.elapsed().as_secs_f64();
    let rate = memory.bytes() as f64 / seconds / 1e9;
    println!(r#"{{"type":"bench","name":"{name}","s":{seconds:.3},"gb_s":{rate:.2}}}"#);
    same(stream, memory, saved)
}

fn one_message(report: &Report) -> Result<()> {
    expect(report.notes.len() == 1, "one message")?;
    println!(r#"{{"type":"check","name":"message","text":{:?}}}"#, report.notes[0]);
    Ok(())
}

/// Numbers without two equal pages.
fn field(gpu: &Gpu, stream: &Stream, bytes: usize) -> Result<DeviceBuffer> {
    let memory = gpu.allocate("the region", bytes)?;
    let cores = std::thread::available_parallelism()?.get();
    let mut piece = vec![0; PIECE];
    for start in (0..bytes).step_by(PIECE) {
        let share = PIECE / cores / PAGE * PAGE + PAGE;
        std::thread::scope(|scope| {
            for (at, part) in piece.chunks_mut(share).enumerate() {
                let seed = (start / PAGE + at + 1) as u64;
                scope.spawn(move || part.copy_from_slice(&vectors::noisy_f64(part.len(), seed)));
            }
        });
        stream.upload(&piece, memory.slice().part(start, PIECE))?;
    }
    Ok(memory)
}

/// Writes three bytes to every 20th page.
fn change(stream: &Stream, memory: &DeviceBuffer, byte: u8) -> Result<()> {
    for start in (0..memory.bytes()).step_by(20 * PAGE) {
        stream.fill(memory.slice().part(start + 64, 3), byte)?;
    }
    Ok(stream.wait()?)
}

fn take(job: &Job, name: &str) -> Result<Report> {
    let taking = Taking::start();
    let version = job.checkpoint(None)?;
    let blocked = taking.started.elapsed();
    job.wait(version, Level::Local)?;
    let report = job.report(version)?;
    taking.line(name, &report, blocked);
    Ok(report)
}

/// A checkpoint being taken.
struct Taking {
    started: Instant,
    downloaded: u64,
}

impl Taking {
    fn start() -> Self {
        Self { started: Instant::now(), downloaded: downloaded_bytes() }
    }

    fn line(&self, name: &str, report: &Report, blocked: Duration) {
        let stats = &report.stats;
        let bus_bytes = downloaded_bytes() - self.downloaded;
        println!(
            r#"{{"type":"bench","name":"{name}","call_ms":{:.2},"blocked_ms":{:.2},"durable_s":{:.3},"captured_mib":{},"new_pages":{},"zero_pages":{},"bus_bytes":{bus_bytes},"compressed_bytes":{},"bus_of_compressed":{:.4},"stored_mib":{},"notes":{:?}}}"#,
            blocked.as_secs_f64() * 1e3,
            stats.blocked_ns as f64 / 1e6,
            self.started.elapsed().as_secs_f64(),
            stats.captured_bytes >> 20,
            stats.new_pages,
            stats.zero_pages,
            stats.compressed_bytes,
            bus_bytes as f64 / stats.compressed_bytes.max(1) as f64,
            report.stored_bytes() >> 20,
            report.notes,
        );
    }
}

fn same(stream: &Stream, a: &DeviceBuffer, b: &DeviceBuffer) -> Result<()> {
    let (mut ours, mut theirs) = (vec![0; PIECE], vec![0; PIECE]);
    for start in (0..a.bytes()).step_by(PIECE) {
        stream.download(a.slice().part(start, PIECE), &mut ours)?;
        stream.download(b.slice().part(start, PIECE), &mut theirs)?;
        expect(ours == theirs, "the restart brought back what was captured")?;
    }
    println!(r#"{{"type":"check","name":"restored bitwise","mib":{}}}"#, a.bytes() >> 20);
    Ok(())
}

fn expect(holds: bool, what: &str) -> Result<()> {
    if holds { Ok(()) } else { Err(format!("not so: {what}").into()) }
}
