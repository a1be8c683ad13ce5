//! Every phase of a job fails on one rank, at each of its calls of the store. All ranks end, alike
//! and in a bounded time, and the next call works.

use std::panic::resume_unwind;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use standfast::{Kind, Level, Result, Version};
use standfast_comm::{Comm, Concurrency, Tag, collective};
use standfast_testkit::{Fault, FaultyStore, Op, run_threads};

use crate::world::{Member, World};

/// A sweep that takes longer hangs.
const TIME_MAX: Duration = Duration::from_secs(60);
/// The tag of agreements.
const AGREEMENT: Tag = Tag(0xff00);

/// Where each rank is: the fault it is given, and the agreement it has last sent a part of.
type Board = Arc<Mutex<Vec<(String, String)>>>;

/// The nodes of the ranks, whether only the programs' threads may talk, and settings.
type Case = (&'static [usize], bool, &'static [(&'static str, &'static str)]);

/// One rank of a sweep.
struct Swept<'a> {
    world: &'a World,
    comm: Watched,
    /// For what the test itself agrees on.
    test: Box<dyn Comm>,
    is_bad: bool,
}

impl Swept<'_> {
    fn faults(&self) -> FaultyStore {
        let node = self.world.node_of[self.comm.rank()];
        FaultyStore::new(Arc::clone(&self.world.stores[node]))
    }

    fn open(&self, faults: &FaultyStore) -> Result<Member> {
        self.world.member_on(&self.comm, faults.clone())
    }

    /// Lets the calls of a store fail on the bad rank, one in each run, until there are no more.
    /// `run` gives the store the fault, and returns its outcome, which must be the same on all
    /// ranks, and whether the fault was met.
    fn sweep(&self, mut run: impl FnMut(&dyn Fn(&FaultyStore)) -> (u64, bool)) {
        for op in Op::ALL {
            for nth in 0.. {
                self.comm.note(|at| at.0 = format!("{op:?} {nth}"));
                let (outcome, met) = run(&|faults| {
                    faults.reset();
                    if self.is_bad {
                        faults.inject(Fault::Fail { op, nth, kind: Kind::Io });
                    }
                });
                let least = collective::all_min(&*self.test, outcome).unwrap();
                let most = collective::all_max(&*self.test, outcome).unwrap();
                assert_eq!(least, most, "{op:?} {nth}: the ranks end differently");
                if collective::all_sum(&*self.test, met.into()).unwrap() == 0 {
                    break;
                }
            }
        }
    }
}

/// Runs a phase in every sort of job, with the first and the last rank as the one that fails.
fn in_every_job(phase: fn(&Swept<'_>)) {
    let cases: [Case; 8] = [
        (&[0, 0, 0], false, &[("keep", "3, 4MiB")]),
        (&[0, 0, 0], true, &[]),
        (&[0, 0, 0], false, &[("lab.strategy", "topk")]),
        (&[0, 0, 0], false, &[("lab.strategy", "topk"), ("capture", "cow")]),
        (&[0, 0, 1], false, &[("keep", "3, 4MiB"), ("capture", "cow")]),
        (&[0, 1, 1], true, &[("lab.strategy", "topk")]),
        (&[0, 1, 2, 3], false, &[("ring", "auto"), ("lab.ring_group", "2")]),
        (
            &[0, 1, 2, 3],
            true,
            &[("ring", "auto"), ("lab.ring_group", "2"), ("lab.strategy", "topk")],
        ),
    ];
    for (node_of, funneled, settings) in cases {
        for bad in [0, node_of.len() - 1] {
            let mut world = World::new(node_of);
            for (name, text) in settings {
                world = world.with(name, text);
            }
            in_time(world, funneled, bad, phase);
        }
    }
}

/// Panics if the ranks do not end, with the step of each.
fn in_time(world: World, funneled: bool, bad: usize, phase: fn(&Swept<'_>)) {
    let size = world.node_of.len();
    let board: Board = Arc::new(Mutex::new(vec![Default::default(); size]));
    let (end, ended) = channel();
    let of_ranks = Arc::clone(&board);
    let ranks = std::thread::spawn(move || {
        run_threads(size, |comm| {
            let (test, is_bad) = (comm.duplicate().unwrap(), comm.rank() == bad);
            let comm = Watched { comm: Box::new(comm), funneled, board: Arc::clone(&of_ranks) };
            phase(&Swept { world: &world, comm, test, is_bad });
        });
        end.send(()).unwrap();
    });
    match ended.recv_timeout(TIME_MAX) {
        Ok(()) => {}
        Err(RecvTimeoutError::Disconnected) => resume_unwind(ranks.join().unwrap_err()),
        Err(RecvTimeoutError::Timeout) => {
            let board = board.lock().unwrap().clone();
            panic!("the ranks wait for each other: {board:?}")
        }
    }
}

#[test]
fn opening() {
    in_every_job(|rank| {
        let open = |give: &dyn Fn(&FaultyStore), is_new: bool| {
            let faults = rank.faults();
            give(&faults);
            let opened = rank.open(&faults).is_ok();
            let met = faults.fired() > 0;
            // Locks are free again on all ranks.
            rank.test.barrier().unwrap();
            if is_new && rank.test.rank() == 0 {
                for store in &rank.world.stores {
                    let names = store.list("").unwrap().into_iter().map(|object| object.name);
                    names.for_each(|name| store.remove(&name).unwrap());
                }
            }
            rank.test.barrier().unwrap();
            (opened.into(), met)
        };
        rank.sweep(|give| open(give, true));
        let member = rank.open(&rank.faults()).unwrap();
        member.checkpoint(1).unwrap();
        member.job.close().unwrap();
        rank.test.barrier().unwrap();
        rank.sweep(|give| open(give, false));
        assert_eq!(rank.open(&rank.faults()).unwrap().restart().unwrap(), 1);
    });
}

/// Also making room, pruning and shards.
#[test]
fn checkpoints() {
    in_every_job(|rank| {
        let member = rank.open(&rank.faults()).unwrap();
        let mut step = 1;
        member.checkpoint(step).unwrap();
        rank.sweep(|give| {
            give(&member.faults);
            step += 1;
            let taken = member.checkpoint(step).is_ok();
            let protected = member.job.wait(Version(step), Level::Ring).is_ok();
            let met = member.faults.fired() > 0;
            member.faults.reset();
            step += 1;
            member.checkpoint(step).unwrap();
            (u64::from(taken) + 2 * u64::from(protected), met)
        });
        assert_eq!(member.restart().unwrap(), step);
        member.job.close().unwrap();
    });
}

#[test]
fn restarts() {
    in_every_job(|rank| {
        let member = rank.open(&rank.faults()).unwrap();
        for step in 1..=2 {
            member.checkpoint(step).unwrap();
            let _ = member.job.wait(Version(step), Level::Ring);
        }
        rank.sweep(|give| {
            give(&member.faults);
            let back = member.restart().unwrap_or(0);
            let met = member.faults.fired() > 0;
            member.faults.reset();
            assert_eq!(member.restart().unwrap(), 2);
            (back, met)
        });
        member.checkpoint(3).unwrap();
        member.job.close().unwrap();
    });
}

#[test]
fn closing() {
    in_every_job(|rank| {
        let mut step = 0;
        rank.sweep(|give| {
            let faults = rank.faults();
            let member = rank.open(&faults).unwrap();
            // What the last run has left is pruned, so that the calls do not become more and more.
            step += 1;
            member.checkpoint(step).unwrap();
            give(&faults);
            step += 1;
            let taken = member.job.checkpoint(Some(Version(step))).is_ok();
            let closed = member.job.close().is_ok();
            let met = faults.fired() > 0;
            rank.test.barrier().unwrap();
            (u64::from(taken) + 2 * u64::from(closed), met)
        });
        let member = rank.open(&rank.faults()).unwrap();
        member.checkpoint(step + 1).unwrap();
    });
}

/// A communicator that notes where its rank is.
struct Watched {
    comm: Box<dyn Comm>,
    /// Whether only the program's thread may talk.
    funneled: bool,
    board: Board,
}

impl Watched {
    fn note(&self, note: impl FnOnce(&mut (String, String))) {
        note(&mut self.board.lock().unwrap()[self.comm.rank()]);
    }

    fn sends(&self, tag: Tag, bytes: &[u8]) -> &dyn Comm {
        if tag == AGREEMENT {
            let text = bytes.iter().take(40).map(|byte| char::from(*byte));
            self.note(|at| at.1 = text.filter(|char| matches!(char, ' '..='~')).collect());
        }
        &*self.comm
    }
}

impl Comm for Watched {
    fn rank(&self) -> usize {
        self.comm.rank()
    }

    fn size(&self) -> usize {
        self.comm.size()
    }

    fn concurrency(&self) -> Concurrency {
        if self.funneled { Concurrency::CallerOnly } else { self.comm.concurrency() }
    }

    fn send(&self, to: usize, tag: Tag, bytes: &[u8]) -> standfast_comm::Result<()> {
        self.sends(tag, bytes).send(to, tag, bytes)
    }

    fn receive(&self, from: usize, tag: Tag) -> standfast_comm::Result<Vec<u8>> {
        self.comm.receive(from, tag)
    }

    fn exchange(
        &self,
        to: usize,
        bytes: &[u8],
        from: usize,
        tag: Tag,
    ) -> standfast_comm::Result<Vec<u8>> {
        self.sends(tag, bytes).exchange(to, bytes, from, tag)
    }

    fn all_to_all(&self, outgoing: Vec<Vec<u8>>) -> standfast_comm::Result<Vec<Vec<u8>>> {
        self.comm.all_to_all(outgoing)
    }

    fn barrier(&self) -> standfast_comm::Result<()> {
        self.comm.barrier()
    }

    fn split(
        &self,
        colour: Option<u32>,
        key: u32,
    ) -> standfast_comm::Result<Option<Box<dyn Comm>>> {
        let (funneled, board) = (self.funneled, &self.board);
        let watched = |comm| Box::new(Self { comm, funneled, board: Arc::clone(board) }) as _;
        Ok(self.comm.split(colour, key)?.map(watched))
    }
}
