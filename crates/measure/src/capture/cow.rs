//! Whole checkpoints with `capture = cow`: how long the call takes at every share of changed
//! pages, and how much memory it takes while everything is being rewritten.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use standfast::{Job, Level};

use super::tracker::touch;
use super::{Ground, LETTER, Mapped, millis};
use crate::Measured;
use crate::figure::{Bar, Better, Error, Figure, Result, Setting, timed};
use crate::memory;

/// Holds what changes at 10 % of a gibibyte, and blocks.
const MEMORY: &str = "224MiB";
/// Bookkeeping may take this share of what is protected.
const BOOKKEEPING_SHARE: f64 = 0.03;

/// Changed percent, every so manieth page, goal.
const SHARES: [(&str, usize, f64); 4] =
    [("0", usize::MAX, 0.05), ("1", 100, 0.05), ("10", 10, 0.05), ("100", 1, 0.20)];

pub(super) fn measure(
    setting: &Setting,
    ground: &mut Ground,
    mapped: Mapped,
    each: &mut dyn FnMut(Measured),
) -> Result<()> {
    let dir = tempfile::tempdir_in(&setting.dir)
        .map_err(|source| Error::Io { what: "making a directory".into(), source })?;
    let store = dir.path().to_string_lossy();
    memory::reset_peak();
    let before = memory::resident();
    let settings = [
        ("store", &*store),
        ("job", "bench"),
        ("capture", "cow"),
        ("memory", MEMORY),
        ("keep", "1"),
    ];
    let job = Job::open(&settings)?;
    let (start, bytes) = (ground.memory.as_mut_ptr(), ground.memory.len());
    // SAFETY: the memory outlives its protection, and this thread does not write during calls.
    unsafe { job.protect("memory", start, bytes, 8)? };
    let first = blocked(&job)?;
    each(Measured::Figure(share_figure(ground, &format!("the first{}", mapped.suffix()), first)));
    for (percent, every, goal) in SHARES {
        let (mut least, mut most) = (Duration::MAX, Duration::ZERO);
        for _ in 0..setting.rounds.max(3) {
            if every < usize::MAX {
                touch(&mut ground.memory, every);
            }
            let time = blocked(&job)?;
            (least, most) = (least.min(time), most.max(time));
        }
        let what = format!("{percent} % changed{}", mapped.suffix());
        each(Measured::Figure(share_figure(ground, &what, least)));
        // The first time that so much changes it is copied, from then on it is protected.
        each(Measured::Figure(share_figure(ground, &format!("{what}, the longest"), most)));
        if mapped == Mapped::Huge {
            let name = format!("cow blocked, {what}, share of memcpy");
            each(Measured::Bar(ground.bar(name, least, goal)));
        }
    }
    if mapped == Mapped::Small {
        job.unprotect("memory")?;
        return Ok(job.close()?);
    }
    rewritten(&job, ground)?;
    if let (Some(before), Some(after)) = (before, memory::resident()) {
        let extra = after.peak.saturating_sub(before.now);
        each(Measured::Bar(memory_bar(&job, bytes, extra)));
    }
    job.unprotect("memory")?;
    Ok(job.close()?)
}

/// Takes a checkpoint and waits until it is durable; how long the call took.
fn blocked(job: &Job) -> Result<Duration> {
    let (version, time) = timed(|| job.checkpoint(None));
    job.wait(version?, Level::Local)?;
    Ok(time)
}

fn share_figure(ground: &Ground, what: &str, time: Duration) -> Figure {
    let share = format!("{:.1} % of memcpy", 100.0 * ground.share(time));
    Figure::time(format!("cow: blocked, {what}"), millis(time), "ms").note(share)
}

/// A checkpoint during which all memory is written again and again.
fn rewritten(job: &Job, ground: &mut Ground) -> Result<()> {
    let version = job.checkpoint(None)?;
    let over = AtomicBool::new(false);
    let memory = &mut ground.memory[..];
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !over.load(Ordering::Relaxed) {
                touch(memory, 1);
            }
        });
        let waited = job.wait(version, Level::Local);
        over.store(true, Ordering::Relaxed);
        Ok(waited?)
    })
}

fn memory_bar(job: &Job, bytes: usize, extra: u64) -> Bar {
    let config = &job.config().config;
    let options = standfast::location::options(config);
    let io = (options.chunk_bytes * (2 * options.io_threads + 1)) as u64;
    let bound = (config.memory.rank.0 + io) as f64 + BOOKKEEPING_SHARE * bytes as f64;
    let name = "cow memory under full rewrite, share of its bound";
    Bar::new(LETTER, name, extra as f64 / bound, Better::Lower, 1.0)
        .ceiling(bound / (1 << 20) as f64, "MiB, memory + 3 %")
}
