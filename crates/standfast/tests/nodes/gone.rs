//! Ranks that cannot be reached any more: whoever finds that out is told so, and goes.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::mpsc::channel;
use std::time::Duration;

use standfast::{Level, Version};
use standfast_comm::{Comm, Concurrency, Error as CommError, Result, Tag};
use standfast_testkit::run_threads;

use crate::ring::protected;

/// Whose operations count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Counted {
    /// All of a job.
    All,
    /// Those of communicators made from the job's own: what threads beside the program use.
    Beside,
}

/// Fails in one operation, as a rank does that waits for one that has died. Others may not need it.
struct Failing {
    inner: Box<dyn Comm>,
    depth: u32,
    counted: Counted,
    left: Arc<AtomicI64>,
}

impl Failing {
    fn pass(&self) -> Result<()> {
        let is_counted = self.counted == Counted::All || self.depth >= 2;
        if is_counted && self.left.fetch_sub(1, Ordering::SeqCst) == 0 {
            let (rank, peer) = (self.inner.rank(), 0);
            return Err(CommError::Gone { rank, op: "reach anybody", peer });
        }
        Ok(())
    }
}

impl Comm for Failing {
    fn rank(&self) -> usize {
        self.inner.rank()
    }

    fn size(&self) -> usize {
        self.inner.size()
    }

    fn concurrency(&self) -> Concurrency {
        self.inner.concurrency()
    }

    fn send(&self, to: usize, tag: Tag, bytes: &[u8]) -> Result<()> {
        self.pass()?;
        self.inner.send(to, tag, bytes)
    }

    fn receive(&self, from: usize, tag: Tag) -> Result<Vec<u8>> {
        self.pass()?;
        self.inner.receive(from, tag)
    }

    fn exchange(&self, to: usize, bytes: &[u8], from: usize, tag: Tag) -> Result<Vec<u8>> {
        self.pass()?;
        self.inner.exchange(to, bytes, from, tag)
    }

    fn all_to_all(&self, outgoing: Vec<Vec<u8>>) -> Result<Vec<Vec<u8>>> {
        self.pass()?;
        self.inner.all_to_all(outgoing)
    }

    fn barrier(&self) -> Result<()> {
        self.pass()?;
        self.inner.barrier()
    }

    fn split(&self, colour: Option<u32>, key: u32) -> Result<Option<Box<dyn Comm>>> {
        let part = self.inner.split(colour, key)?;
        let (depth, counted, left) = (self.depth + 1, self.counted, &self.left);
        let wrap = |inner| Failing { inner, depth, counted, left: Arc::clone(left) };
        Ok(part.map(|part| Box::new(wrap(part)) as Box<dyn Comm>))
    }
}

/// Checkpoints until ranks cannot be reached; one rank fails to reach another after so many operations.
fn until_gone(counted: Counted, after: i64) {
    let world = protected(&[0, 1, 2, 2], "2");
    run_threads(4, |comm| {
        let left = Arc::new(AtomicI64::new(i64::MAX));
        let inner = comm.duplicate().unwrap();
        let comm = Failing { inner, depth: 0, counted, left: Arc::clone(&left) };
        let member = world.member(&comm).unwrap();
        if comm.rank() == 1 {
            left.store(after, Ordering::SeqCst);
        }
        let ended = (1..100).find_map(|step| match member.checkpoint(step) {
            Err(error) if error.is_out_of_reach() => Some(error),
            // A ring that could not be reached is told by the next call.
            _ => match member.job.wait(Version(step), Level::Ring) {
                Err(error) if error.is_out_of_reach() => Some(error),
                _ => None,
            },
        });
        assert!(ended.is_some(), "rank {} never hears that others are gone", comm.rank());
    });
}

#[test]
fn nobody_waits_for_ranks_that_wait_for_it() {
    let beside = (0..60).step_by(6).map(|after| (Counted::Beside, after));
    let all = (0..120).step_by(7).map(|after| (Counted::All, after));
    for (counted, after) in beside.chain(all) {
        let (done, over) = channel();
        std::thread::spawn(move || {
            until_gone(counted, after);
            let _ = done.send(());
        });
        over.recv_timeout(Duration::from_secs(120)).unwrap_or_else(|_| {
            panic!("ranks hang, or fail, when one fails after {after} of {counted:?}")
        });
    }
}
