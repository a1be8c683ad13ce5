//! A program that computes beside the write path: what compressing takes from it.

use std::hint::black_box;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// How long it runs alone to learn its own speed.
const CALIBRATE: Duration = Duration::from_millis(300);
/// Numbers of each thread: they stay in its core's own cache.
const NUMBERS: usize = 2048;

/// Threads that compute and count what they did.
pub(super) struct Program {
    units: Arc<AtomicU64>,
    stop: Arc<AtomicBool>,
    threads: Vec<JoinHandle<()>>,
    units_per_s: f64,
}

impl Program {
    pub(super) fn start(threads: usize) -> Self {
        let (units, stop) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicBool::new(false)));
        let threads = (0..threads)
            .map(|_| {
                let (units, stop) = (Arc::clone(&units), Arc::clone(&stop));
                std::thread::spawn(move || compute(&units, &stop))
            })
            .collect();
        let mut program = Self { units, stop, threads, units_per_s: 1.0 };
        std::thread::sleep(CALIBRATE / 3);
        let (started, units) = (Instant::now(), program.units());
        std::thread::sleep(CALIBRATE);
        let done = (program.units() - units) as f64;
        program.units_per_s = (done / started.elapsed().as_secs_f64()).max(1.0);
        program
    }

    /// What was computed so far.
    pub(super) fn units(&self) -> u64 {
        self.units.load(Ordering::Relaxed)
    }

    /// The time that it would have needed, alone, for what it lacks: of `wall_s` seconds in which
    /// it computed so many units.
    pub(super) fn lost_s(&self, wall_s: f64, units: u64) -> f64 {
        wall_s - units as f64 / self.units_per_s
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
    }
}

fn compute(units: &AtomicU64, stop: &AtomicBool) {
    let mut numbers: Vec<f64> = (0..NUMBERS).map(|at| at as f64).collect();
    while !stop.load(Ordering::Relaxed) {
        for at in 1..NUMBERS - 1 {
            numbers[at] = 0.25 * numbers[at - 1] + 0.5 * numbers[at] + 0.25 * numbers[at + 1];
        }
        black_box(&mut numbers);
        units.fetch_add(1, Ordering::Relaxed);
    }
}
