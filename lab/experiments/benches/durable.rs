//! Durable write and cold read of one large object, beside the raw rates of the same disk.
//!
//! `cargo bench -p experiments --bench durable -- [--dir DIR] [--mib N] [--repeat N] [--grid]`
//!
//! Every figure is the median over repetitions that take turns, so that a busy machine slows all
//! lines alike; compare lines of one run, not of two. `--grid` tries all settings.

use std::fs::{File, OpenOptions};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use standfast_store::{DirStore, Io, Options, Store};
use standfast_sys::AlignedBuf;

const DIRECT: i32 = libc::O_DIRECT;
const MIB: usize = 1 << 20;

/// Moves the bytes once, in this directory.
type Run = Box<dyn Fn(&Path, &AlignedBuf)>;

/// A way to move the bytes, and its times so far.
struct Line {
    name: String,
    run: Run,
    seconds: Vec<f64>,
}

fn line(name: impl Into<String>, run: impl Fn(&Path, &AlignedBuf) + 'static) -> Line {
    Line { name: name.into(), run: Box::new(run), seconds: Vec::new() }
}

/// Positioned writes by several threads into a new file, then fsync.
fn raw_write(threads: usize, chunk: usize, direct: bool, reserve: bool) -> Line {
    let how = if direct { "direct" } else { "buffered" };
    let reserved = if reserve { " reserved" } else { "" };
    line(format!("raw write {how} {threads}x{}K{reserved}", chunk >> 10), move |dir, data| {
        let path = dir.join("raw");
        let flags = if direct { DIRECT } else { 0 };
        let file = OpenOptions::new().write(true).create_new(true).custom_flags(flags).open(&path);
        let file = file.unwrap();
        if reserve {
            let none = rustix::fs::FallocateFlags::empty();
            rustix::fs::fallocate(&file, none, 0, data.len() as u64).unwrap();
        }
        in_threads(threads, data.len(), chunk, |at, end| {
            file.write_all_at(&data[at..end], at as u64).unwrap();
        });
        file.sync_all().unwrap();
        drop(file);
        std::fs::remove_file(path).unwrap();
    })
}

fn in_threads(threads: usize, len: usize, chunk: usize, work: impl Fn(usize, usize) + Sync) {
    let next = AtomicU64::new(0);
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                loop {
                    let at = next.fetch_add(chunk as u64, Ordering::Relaxed) as usize;
                    if at >= len {
                        break;
                    }
                    work(at, len.min(at + chunk));
                }
            });
        }
    });
}

fn store_write(io: Io, io_threads: usize, chunk_bytes: usize, hint: bool) -> Line {
    let told = if hint { " hint" } else { "" };
    line(
        format!("store write {io:?} {io_threads}x{}K{told}", chunk_bytes >> 10),
        move |dir, data| {
            let options = Options { io, io_threads, chunk_bytes, ..Options::default() };
            let store = DirStore::open(dir, &options).unwrap();
            let mut writer = store.create("object", hint.then_some(data.len() as u64)).unwrap();
            for piece in data.chunks(512 << 10) {
                writer.append(piece).unwrap();
            }
            writer.seal().unwrap();
            store.remove("object").unwrap();
        },
    )
}

/// Positioned direct reads by several threads; the file is there already.
fn raw_read(threads: usize, chunk: usize) -> Line {
    line(format!("raw read direct {threads}x{}K", chunk >> 10), move |dir, data| {
        let flags = DIRECT;
        let file =
            OpenOptions::new().read(true).custom_flags(flags).open(dir.join("cold")).unwrap();
        in_threads(threads, data.len(), chunk, |at, end| {
            BUFFER.with_borrow_mut(|buf| {
                if buf.len() < chunk {
                    *buf = AlignedBuf::with_len(chunk);
                }
                file.read_exact_at(&mut buf[..end - at], at as u64).unwrap();
            });
        });
    })
}

thread_local! {
    static BUFFER: std::cell::RefCell<AlignedBuf> = std::cell::RefCell::new(AlignedBuf::with_len(0));
}

fn store_read(io: Io, threads: usize, request: usize) -> Line {
    line(format!("store read {io:?} {threads}x{}K", request >> 10), move |dir, data| {
        if io == Io::Buffered {
            let file = File::open(dir.join("cold")).unwrap();
            rustix::fs::fadvise(&file, 0, None, rustix::fs::Advice::DontNeed).unwrap();
        }
        let options = Options { io, ..Options::default() };
        let store = DirStore::open(dir, &options).unwrap();
        let reader = store.open("cold").unwrap();
        in_threads(threads, data.len(), request, |at, end| {
            BUFFER.with_borrow_mut(|buf| {
                if buf.len() < request {
                    *buf = AlignedBuf::with_len(request);
                }
                assert_eq!(reader.read_at(at as u64, &mut buf[..end - at]).unwrap(), end - at);
            });
        });
    })
}

fn measure(lines: &mut [Line], dir: &Path, data: &AlignedBuf, repeat: usize) {
    for _ in 0..repeat {
        for line in lines.iter_mut() {
            let start = Instant::now();
            (line.run)(dir, data);
            line.seconds.push(start.elapsed().as_secs_f64());
        }
    }
    for line in lines {
        line.seconds.sort_by(f64::total_cmp);
        let rate = |seconds: f64| data.len() as f64 / seconds / 1e9;
        let median = line.seconds[line.seconds.len() / 2];
        let (best, worst) = (line.seconds[0], line.seconds[line.seconds.len() - 1]);
        println!(
            "{:42} {:6.2} GB/s  ({:.2} to {:.2})",
            line.name,
            rate(median),
            rate(worst),
            rate(best)
        );
    }
}

struct Args {
    dir: PathBuf,
    mib: usize,
    repeat: usize,
    grid: bool,
}

fn args() -> Option<Args> {
    let mut args =
        Args { dir: PathBuf::from(env!("CARGO_TARGET_TMPDIR")), mib: 1024, repeat: 5, grid: false };
    let mut given = std::env::args().skip(1).peekable();
    // `cargo test --benches` runs this too, without the flag.
    given.peek()?;
    while let Some(arg) = given.next() {
        match &*arg {
            "--dir" => args.dir = given.next()?.into(),
            "--mib" => args.mib = given.next()?.parse().ok()?,
            "--repeat" => args.repeat = given.next()?.parse().ok()?,
            "--grid" => args.grid = true,
            "--bench" => {}
            _ => return None,
        }
    }
    Some(args)
}

fn main() {
    let Some(args) = args() else {
        eprintln!(
            "usage: cargo bench -p experiments --bench durable -- [--dir DIR] [--mib N] [--repeat N] [--grid]"
        );
        return;
    };
    let dir = tempfile::TempDir::new_in(&args.dir).unwrap();
    let mut data = AlignedBuf::with_len(args.mib * MIB);
    let mut state = 1_u64;
    for word in data.chunks_exact_mut(8) {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        word.copy_from_slice(&(state ^ (state >> 29)).to_le_bytes());
    }
    println!("durable write of {} MiB, median of {}", args.mib, args.repeat);
    measure(&mut write_lines(args.grid), dir.path(), &data, args.repeat);
    std::fs::write(dir.path().join("cold"), &data[..]).unwrap();
    File::open(dir.path().join("cold")).unwrap().sync_all().unwrap();
    println!("cold read of {} MiB, median of {}", args.mib, args.repeat);
    measure(&mut read_lines(args.grid), dir.path(), &data, args.repeat);
}

fn write_lines(grid: bool) -> Vec<Line> {
    let Options { io_threads, chunk_bytes, .. } = Options::default();
    let mut lines = vec![
        raw_write(1, MIB, false, false),
        raw_write(1, MIB, true, false),
        raw_write(1, MIB, true, true),
        raw_write(4, MIB, true, true),
        raw_write(8, MIB, true, true),
        raw_write(io_threads, chunk_bytes, true, true),
        store_write(Io::Auto, io_threads, chunk_bytes, true),
        store_write(Io::Auto, io_threads, chunk_bytes, false),
        store_write(Io::Buffered, io_threads, chunk_bytes, true),
    ];
    if grid {
        for threads in [1, 2, 4, 8] {
            for chunk in [MIB / 4, MIB, 2 * MIB, 4 * MIB] {
                lines.push(store_write(Io::Direct, threads, chunk, true));
            }
        }
    }
    lines
}

fn read_lines(grid: bool) -> Vec<Line> {
    let mut lines = vec![
        raw_read(1, MIB),
        raw_read(1, 4 * MIB),
        raw_read(1, 8 * MIB),
        raw_read(4, MIB),
        store_read(Io::Auto, 1, MIB),
        store_read(Io::Auto, 1, 4 * MIB),
        store_read(Io::Auto, 1, 8 * MIB),
        store_read(Io::Auto, 4, MIB),
        store_read(Io::Buffered, 1, MIB),
    ];
    if grid {
        for threads in [1, 2, 4, 8] {
            for request in [MIB / 8, MIB / 4, MIB, 4 * MIB] {
                lines.push(store_read(Io::Direct, threads, request));
            }
        }
    }
    lines
}
