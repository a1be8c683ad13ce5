//! Lazy restarts: how soon the program has its first word, beside how soon it has everything.

use std::time::Duration;

use standfast::{Job, Level};

use super::{Ground, LETTER, millis};
use crate::Measured;
use crate::figure::{Bar, Better, Error, Figure, Result, Setting, timed};

pub(super) fn measure(
    setting: &Setting,
    ground: &mut Ground,
    each: &mut dyn FnMut(Measured),
) -> Result<()> {
    let dir = tempfile::tempdir_in(&setting.dir)
        .map_err(|source| Error::Io { what: "making a directory".into(), source })?;
    let store = dir.path().to_string_lossy().into_owned();
    write(&store, ground)?;
    let (mut eager, mut first, mut whole) = (Duration::MAX, Duration::MAX, Duration::MAX);
    for round in 0..setting.rounds.max(1) {
        eager = eager.min(restart(&store, "eager", ground, round)?.1);
        let (touched, all) = restart(&store, "lazy", ground, round)?;
        (first, whole) = (first.min(touched), whole.min(all));
    }
    let figure = |name: &str, time| Measured::Figure(Figure::time(name, millis(time), "ms"));
    each(figure("restart, eager", eager));
    each(figure("restart, lazy: first word", first));
    each(figure("restart, lazy: every word", whole));
    let share = first.as_secs_f64() / eager.as_secs_f64();
    let bar = Bar::new(
        LETTER,
        "lazy restart to its first word, share of eager",
        share,
        Better::Lower,
        0.1,
    );
    each(Measured::Bar(bar.ceiling(millis(eager), "ms, eager")));
    Ok(())
}

fn write(store: &str, ground: &mut Ground) -> Result<()> {
    let job = Job::open(&[("store", store), ("job", "bench")])?;
    let memory = &mut ground.memory;
    // SAFETY: the memory outlives the job, and nobody else uses it.
    unsafe { job.protect("memory", memory.as_mut_ptr(), memory.len(), 8)? };
    let version = job.checkpoint(None)?;
    job.wait(version, Level::Local)?;
    Ok(job.close()?)
}

/// Restarts into fresh memory; how long until one word in the middle was read, and until all were.
fn restart(store: &str, how: &str, ground: &Ground, round: usize) -> Result<(Duration, Duration)> {
    let job = Job::open(&[("store", store), ("job", "bench"), ("restart", how)])?;
    let bytes = ground.memory.len();
    let start = job.alloc_memory("memory", bytes, 1, 8)?;
    // SAFETY: as long as the allocation, which lives as long as the job; no call fills it while
    // it is read, but for pages that arrive before their first use.
    let memory = unsafe { std::slice::from_raw_parts(start, bytes) };
    let place = (round * 7919 + 1) * (bytes / 100_003) % bytes;
    let ((restarted, word), first) = timed(|| {
        let restarted = job.restart();
        (restarted, std::hint::black_box(memory[place]))
    });
    restarted?.ok_or(Error::Wrong)?;
    let (same, rest) = timed(|| word == ground.memory[place] && memory == &ground.memory[..]);
    if !same {
        return Err(Error::Wrong);
    }
    job.close()?;
    Ok((first, if how == "eager" { first } else { first + rest }))
}
