//! What a checkpoint costs the program in each way of capturing: until the call returns, and until
//! everything is rewritten right after it.
//!
//! Two programs, each changing everything between checkpoints: a quiet one writes again when the
//! checkpoint is durable, a busy one right after the call. Medians, as shares of copying the memory once.

use std::time::{Duration, Instant};

use anyhow::Result;
use standfast::{Job, Level};
use standfast_measure::{Bar, Better, Setting};
use standfast_sys::AlignedBuf;

use super::Sheet;

const LETTER: &str = "L";
/// What blocks the program at most, where writers can be held up and where they cannot; and what the
/// call and rewriting everything may take beyond the rewriting.
const BLOCKED_GOALS: [f64; 2] = [0.3, 1.3];
const REWRITE_GOAL: f64 = 1.5;
/// Rounds before it counts: first touches, and what `auto` has to learn.
const ROUNDS_BEFORE: usize = 3;

/// Measures what each way of capturing costs.
pub(crate) fn bars(setting: &Setting, sheet: &mut Sheet) -> Result<()> {
    let mut memory = AlignedBuf::with_len(setting.bytes);
    for (word, number) in memory.chunks_exact_mut(8).zip(1_u64..) {
        word.copy_from_slice(&number.to_ne_bytes());
    }
    rewrite(&mut memory);
    let mut target = AlignedBuf::with_len(setting.bytes);
    target.fill(1);
    let copies = (0..setting.rounds.max(3)).map(|_| {
        let ((), time) = timed(|| target.copy_from_slice(&memory));
        std::hint::black_box(&target);
        time
    });
    let copy = copies.min().expect("at least one round");
    drop(target);
    let step = median((0..9).map(|_| timed(|| rewrite(&mut memory)).1).collect());
    let is_root = rustix::process::geteuid().is_root();
    let who = if is_root { "root" } else { "ordinary user" };
    let mut bar = |name: String, time: Duration, goal: f64| {
        let share = time.as_secs_f64() / copy.as_secs_f64();
        let bar = Bar::new(LETTER, name, share, Better::Lower, goal);
        sheet.bar(bar.ceiling(copy.as_secs_f64() * 1e3, "ms, memcpy"));
    };
    for capture in ["stop", "cow", "staged", "auto"] {
        let quiet = rounds(setting, &mut memory, capture, false)?;
        let busy = rounds(setting, &mut memory, capture, true)?;
        let slowed = busy.saturating_sub(step);
        let goal = BLOCKED_GOALS[usize::from(!is_root || capture == "staged")];
        bar(format!("{capture}, {who}: blocked by memcpy"), quiet, goal);
        let name = format!("{capture}, {who}: call and rewrite less a step, by memcpy");
        bar(name, slowed, REWRITE_GOAL);
    }
    Ok(())
}

/// Runs something and tells how long it took.
fn timed<T>(run: impl FnOnce() -> T) -> (T, Duration) {
    let started = Instant::now();
    let outcome = run();
    (outcome, started.elapsed())
}

/// The median time of a call, or with `busy` of a call and rewriting everything.
fn rounds(setting: &Setting, memory: &mut [u8], capture: &str, busy: bool) -> Result<Duration> {
    let dir = tempfile::tempdir_in(&setting.dir)?;
    let store = dir.path().to_string_lossy();
    let job = Job::open(&[("store", &*store), ("capture", capture), ("keep", "1")])?;
    let (start, bytes) = (memory.as_mut_ptr(), memory.len());
    // SAFETY: the memory outlives its protection, and this thread does not write during calls.
    unsafe { job.protect("memory", start, bytes, 8)? };
    let mut times = Vec::new();
    for _ in 0..setting.rounds.max(9) + ROUNDS_BEFORE {
        rewrite(memory);
        let (version, call) = timed(|| job.checkpoint(None));
        let version = version?;
        let after = if busy { timed(|| rewrite(memory)).1 } else { Duration::ZERO };
        job.wait(version, Level::Local)?;
        times.push(call + after);
    }
    job.unprotect("memory")?;
    job.close()?;
    Ok(median(times.split_off(ROUNDS_BEFORE)))
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort_unstable();
    times[times.len() / 2]
}

/// Changes every word; no two pages become equal.
fn rewrite(memory: &mut [u8]) {
    for word in memory.chunks_exact_mut(8) {
        let old = u64::from_ne_bytes(word.try_into().expect("eight bytes"));
        word.copy_from_slice(
            &old.wrapping_mul(0x9e37_79b9_7f4a_7c15).wrapping_add(1).to_ne_bytes(),
        );
    }
    std::hint::black_box(memory);
}
