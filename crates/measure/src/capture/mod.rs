//! Capture: what a checkpoint without stopping costs, and what its mechanisms cost.
//!
//! Everything is a share of copying the same memory once, measured in the same run; for what
//! happens in memory the best round counts. Changed pages are scattered evenly, which is the worst
//! case for everything that works on ranges.

mod cow;
mod lazy;
mod mechanism;
mod tracker;

use std::time::Duration;

use standfast_sys::AlignedBuf;

use crate::Measured;
use crate::data;
use crate::figure::{Bar, Better, Figure, Result, Setting, best};

const LETTER: &str = "C";
const PAGE: usize = 4096;

/// Memory to protect, and how long a copy of it takes.
struct Ground {
    memory: AlignedBuf,
    copy: Duration,
}

impl Ground {
    fn new(setting: &Setting) -> Self {
        let memory = data::random(setting.bytes, 21);
        let mut target = data::random(setting.bytes, 22);
        let copy = best(setting.rounds.max(3), || {
            target.copy_from_slice(&memory);
            std::hint::black_box(&target);
        });
        Self { memory, copy }
    }

    /// Makes all of it small pages, for good.
    fn forbid_huge_pages(&mut self) {
        let (start, bytes) = (self.memory.as_mut_ptr(), self.memory.len());
        let contents = self.memory.to_vec();
        // SAFETY: our own memory, whose contents are put back at once.
        unsafe {
            libc::madvise(start.cast(), bytes, libc::MADV_NOHUGEPAGE);
            libc::madvise(start.cast(), bytes, libc::MADV_DONTNEED);
        }
        self.memory.copy_from_slice(&contents);
    }

    /// A time as a share of the copy.
    fn share(&self, time: Duration) -> f64 {
        time.as_secs_f64() / self.copy.as_secs_f64()
    }

    /// A bar whose value is a share of the copy.
    fn bar(&self, name: impl Into<String>, time: Duration, goal: f64) -> Bar {
        let value = self.share(time);
        Bar::new(LETTER, name, value, Better::Lower, goal).ceiling(millis(self.copy), "ms, memcpy")
    }
}

fn millis(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}

/// Measures capture: figures as they come, then the bars.
pub fn bench_capture(setting: &Setting, mut each: impl FnMut(Measured)) -> Result<()> {
    let mut bars = Vec::new();
    measure(setting, &mut |measured| match measured {
        Measured::Bar(bar) => bars.push(bar),
        figure => each(figure),
    })?;
    bars.into_iter().map(Measured::Bar).for_each(each);
    Ok(())
}

/// By what the memory is mapped: how long it takes to protect depends on nothing else.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Mapped {
    /// By huge pages, as a job's own allocations are.
    Huge,
    /// By small pages, where the program or the system wants no others.
    Small,
}

impl Mapped {
    /// A suffix for names.
    fn suffix(self) -> &'static str {
        match self {
            Mapped::Huge => "",
            Mapped::Small => ", small pages",
        }
    }
}

fn measure(setting: &Setting, each: &mut dyn FnMut(Measured)) -> Result<()> {
    let mut ground = Ground::new(setting);
    each(Measured::Figure(Figure::time("memcpy of the memory", millis(ground.copy), "ms")));
    // While the memory is as the system gave it: watching and forking split huge pages.
    cow::measure(setting, &mut ground, Mapped::Huge, each)?;
    mechanism::measure(&mut ground, Mapped::Huge, each);
    tracker::measure(setting, &mut ground, each);
    ground.forbid_huge_pages();
    mechanism::measure(&mut ground, Mapped::Small, each);
    cow::measure(setting, &mut ground, Mapped::Small, each)?;
    lazy::measure(setting, &mut ground, each)
}
