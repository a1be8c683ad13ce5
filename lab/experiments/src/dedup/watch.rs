//! What a collective step costs each rank, step by step, when many virtual ranks share few cores.
//!
//! Wall time of virtual ranks grows with their number, because they take turns on the machine's
//! cores. What would be the time on a machine with a core for each rank is the critical path: the
//! rounds follow each other, and each takes as long as its slowest rank computes, plus the
//! transfer of the largest message. Computing is measured by the clock of each thread, which
//! stands still while it waits; bytes are counted.

use std::sync::Mutex;
use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};
use standfast_comm::{Comm, Concurrency, Result, Tag};

/// One round of one rank: computing up to the end of a call, and what the call sent.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Step {
    cpu: Duration,
    bytes: u64,
}

impl Step {
    /// Takes the time of another run, if it was less disturbed.
    pub(super) fn shorten(&mut self, other: Self) {
        self.cpu = self.cpu.min(other.cpu);
    }
}

/// A communicator that notes what happens between and in its calls.
pub(super) struct Watched<'a> {
    comm: &'a dyn Comm,
    noted: Mutex<(Duration, Vec<Step>)>,
}

impl<'a> Watched<'a> {
    pub(super) fn new(comm: &'a dyn Comm) -> Self {
        Self { comm, noted: Mutex::new((thread_time(), Vec::new())) }
    }

    /// All steps, with what was computed after the last call.
    pub(super) fn finish(self) -> Vec<Step> {
        self.note(0);
        self.noted.into_inner().expect("noting does not panic").1
    }

    fn note(&self, bytes: usize) {
        let now = thread_time();
        let mut noted = self.noted.lock().expect("noting does not panic");
        let cpu = now.saturating_sub(noted.0);
        noted.1.push(Step { cpu, bytes: bytes as u64 });
        noted.0 = thread_time();
    }
}

impl Comm for Watched<'_> {
    fn rank(&self) -> usize {
        self.comm.rank()
    }

    fn size(&self) -> usize {
        self.comm.size()
    }

    fn concurrency(&self) -> Concurrency {
        self.comm.concurrency()
    }

    fn send(&self, to: usize, tag: Tag, bytes: &[u8]) -> Result<()> {
        self.comm.send(to, tag, bytes)?;
        self.note(bytes.len());
        Ok(())
    }

    fn receive(&self, from: usize, tag: Tag) -> Result<Vec<u8>> {
        let received = self.comm.receive(from, tag)?;
        self.note(0);
        Ok(received)
    }

    fn exchange(&self, to: usize, bytes: &[u8], from: usize, tag: Tag) -> Result<Vec<u8>> {
        let received = self.comm.exchange(to, bytes, from, tag)?;
        self.note(bytes.len());
        Ok(received)
    }

    fn all_to_all(&self, outgoing: Vec<Vec<u8>>) -> Result<Vec<Vec<u8>>> {
        let all: usize = outgoing.iter().map(Vec::len).sum();
        let away = all - outgoing[self.rank()].len();
        let received = self.comm.all_to_all(outgoing)?;
        self.note(away);
        Ok(received)
    }

    fn barrier(&self) -> Result<()> {
        self.comm.barrier()?;
        self.note(0);
        Ok(())
    }

    fn split(&self, colour: Option<u32>, key: u32) -> Result<Option<Box<dyn Comm>>> {
        self.comm.split(colour, key)
    }
}

/// The critical path over all ranks.
#[derive(Clone, Copy, Debug, Default, PartialEq, serde::Serialize)]
pub(super) struct Path {
    /// Sum over the rounds of the slowest rank's computing.
    pub(super) critical_s: f64,
    /// Sum over the rounds of the mean over all ranks: without the noise of the slowest.
    pub(super) mean_s: f64,
    /// Sum over the rounds of the most that a rank sent.
    pub(super) critical_bytes: u64,
}

impl Path {
    /// Rounds are those of the rank that had most; ranks that joined later are aligned to the end.
    pub(super) fn of(ranks: Vec<Vec<Step>>) -> Self {
        let rounds = ranks.iter().map(Vec::len).max().unwrap_or(0);
        let mut path = Self::default();
        for round in 1..=rounds {
            let steps =
                || ranks.iter().filter_map(|steps| steps.get(steps.len().wrapping_sub(round)));
            let seconds = || steps().map(|step| step.cpu.as_secs_f64());
            path.critical_s += seconds().fold(0.0, f64::max);
            path.mean_s += seconds().sum::<f64>() / ranks.len() as f64;
            path.critical_bytes += steps().map(|step| step.bytes).max().unwrap_or(0);
        }
        path
    }
}

/// How long this thread has computed.
fn thread_time() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_slowest_of_each_round_counts() {
        let step = |ms: u64, bytes| Step { cpu: Duration::from_millis(ms), bytes };
        let early = vec![step(9, 1), step(1, 10), step(4, 0)];
        let late = vec![step(3, 5), step(2, 0)];
        let path = Path::of(vec![early, late]);
        assert!((path.critical_s - 0.016).abs() < 1e-9, "9, then 3, then 4");
        assert!((path.mean_s - 0.0095).abs() < 1e-9);
        assert_eq!(path.critical_bytes, 11);
    }
}
