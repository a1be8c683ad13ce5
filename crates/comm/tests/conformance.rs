//! The communicators of this crate against the one suite.

use standfast_comm::{Comm, Fuse, Solo, converse};
use standfast_conformance::comm as conformance;
use standfast_testkit::run_threads;

#[test]
fn solo() {
    conformance::run(&Solo::default());
}

#[test]
fn threads() {
    for size in [1, 2, 3, 5, 7, 8] {
        run_threads(size, |comm| conformance::run(&comm));
    }
}

/// A communicator made from another is one like any other: here reversed, and not of all ranks.
#[test]
fn threads_of_a_part() {
    run_threads(6, |comm| {
        let rank = comm.rank();
        let colour = (rank != 2).then_some(9);
        if let Some(part) = comm.split(colour, (10 - rank) as u32).unwrap() {
            conformance::run(&*part);
        }
    });
}

#[test]
fn a_fuse_is_a_communicator_like_others() {
    run_threads(4, |comm| conformance::run(&Fuse::new(Box::new(comm))));
}

#[test]
fn a_conversation_talks_as_a_communicator_does() {
    run_threads(4, |comm| {
        let talk = |spoken: &dyn Comm| {
            conformance::run(spoken);
            Ok(())
        };
        converse(&comm, talk).unwrap();
    });
}

#[test]
fn a_broken_promise_is_found() {
    use standfast_comm::{Concurrency, Result, Tag};

    /// Forgets the last byte of messages longer than a page.
    struct Forgetful(standfast_testkit::Threads);

    impl Comm for Forgetful {
        fn rank(&self) -> usize {
            self.0.rank()
        }
        fn size(&self) -> usize {
            self.0.size()
        }
        fn concurrency(&self) -> Concurrency {
            self.0.concurrency()
        }
        fn send(&self, to: usize, tag: Tag, bytes: &[u8]) -> Result<()> {
            let kept = if bytes.len() > 4096 { bytes.len() - 1 } else { bytes.len() };
            self.0.send(to, tag, &bytes[..kept])
        }
        fn receive(&self, from: usize, tag: Tag) -> Result<Vec<u8>> {
            self.0.receive(from, tag)
        }
        fn exchange(&self, to: usize, bytes: &[u8], from: usize, tag: Tag) -> Result<Vec<u8>> {
            self.0.exchange(to, bytes, from, tag)
        }
        fn all_to_all(&self, outgoing: Vec<Vec<u8>>) -> Result<Vec<Vec<u8>>> {
            self.0.all_to_all(outgoing)
        }
        fn barrier(&self) -> Result<()> {
            self.0.barrier()
        }
        fn split(&self, colour: Option<u32>, key: u32) -> Result<Option<Box<dyn Comm>>> {
            self.0.split(colour, key)
        }
    }

    let outcome = std::panic::catch_unwind(|| {
        run_threads(2, |comm| conformance::run(&Forgetful(comm)));
    });
    assert!(outcome.is_err());
}
