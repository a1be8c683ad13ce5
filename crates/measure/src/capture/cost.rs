//! What a checkpoint costs the program in each way of capturing: until the call returns, and until
//! everything is rewritten right after it.
//!
//! Two programs, each changing everything between checkpoints: a quiet one writes again when the
//! checkpoint is durable, a busy one right after the call. Medians, as shares of copying the memory once.

use std::time::Duration;

use standfast::{Job, Level};

use super::Ground;
use crate::figure::{Bar, Better, Error, Result, Setting, timed};

const LETTER: &str = "L";
/// What blocks the program at most, where writers can be held up and where they cannot; and what the
/// call and rewriting everything may take beyond the rewriting.
const BLOCKED_GOALS: [f64; 2] = [0.3, 1.3];
const REWRITE_GOAL: f64 = 1.5;
/// Rounds before it counts: first touches, and what `auto` has to learn.
const ROUNDS_BEFORE: usize = 3;

/// Measures what each way of capturing costs, handing each bar over as soon as it is known.
pub fn cost_bars(setting: &Setting, mut each: impl FnMut(Bar)) -> Result<()> {
    let mut ground = Ground::new(setting);
    let step = median((0..9).map(|_| timed(|| rewrite(&mut ground.memory)).1).collect());
    // SAFETY: asks for a number.
    let is_root = unsafe { libc::geteuid() } == 0;
    let who = if is_root { "root" } else { "ordinary user" };
    for capture in ["stop", "cow", "staged", "auto"] {
        let quiet = rounds(setting, &mut ground, capture, false)?;
        let busy = rounds(setting, &mut ground, capture, true)?;
        let slowed = busy.saturating_sub(step);
        let goal = BLOCKED_GOALS[usize::from(!is_root || capture == "staged")];
        each(ground.cost(format!("{capture}, {who}: blocked by memcpy"), quiet, goal));
        let name = format!("{capture}, {who}: call and rewrite less a step, by memcpy");
        each(ground.cost(name, slowed, REWRITE_GOAL));
    }
    Ok(())
}

impl Ground {
    fn cost(&self, name: String, time: Duration, goal: f64) -> Bar {
        let bar = self.bar(name, time, goal);
        Bar { issue: LETTER, better: Better::Lower, ..bar }
    }
}

/// The median time of a call, or with `busy` of a call and rewriting everything.
fn rounds(setting: &Setting, ground: &mut Ground, capture: &str, busy: bool) -> Result<Duration> {
    let dir = tempfile::tempdir_in(&setting.dir)
        .map_err(|source| Error::Io { what: "making a directory".into(), source })?;
    let store = dir.path().to_string_lossy();
    let job = Job::open(&[("store", &*store), ("capture", capture), ("keep", "1")])?;
    let (start, bytes) = (ground.memory.as_mut_ptr(), ground.memory.len());
    // SAFETY: the memory outlives its protection, and this thread does not write during calls.
    unsafe { job.protect("memory", start, bytes, 8)? };
    let mut times = Vec::new();
    for _ in 0..setting.rounds.max(9) + ROUNDS_BEFORE {
        rewrite(&mut ground.memory);
        let (version, call) = timed(|| job.checkpoint(None));
        let version = version?;
        let after = if busy { timed(|| rewrite(&mut ground.memory)).1 } else { Duration::ZERO };
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
