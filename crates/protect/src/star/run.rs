//! Runs a star: the caller's thread exchanges, two others read, compute and write.

use std::sync::mpsc::{Receiver, Sender, SyncSender, channel, sync_channel};

use standfast_comm::{Comm, Tag};

use super::collect::{Arrival, Collected, collect};
use super::produce::{Produced, Producer};
use super::task::Link;
use super::{Gauge, QUEUED_MAX, Report, Sink, Source, Step, Task, steps, thread_time};
use crate::error::{Error, Result};
use crate::shard::Shard;
use crate::topology::Piece;

const STAR: Tag = Tag(0x0601);

/// How a star has ended for this rank.
pub(crate) struct Outcome {
    /// Pieces that were made here.
    pub(crate) made: Vec<Piece>,
    /// The shards among them.
    pub(crate) shards: Vec<Shard>,
    /// Own pieces that could not be used.
    pub(crate) sources_failed: Vec<(Piece, Error)>,
    /// Pieces that could not be made here.
    pub(crate) targets_failed: Vec<(Piece, Error)>,
    pub(crate) report: Report,
}

/// The caller's side of both queues.
struct Post<'a> {
    comm: &'a dyn Comm,
    tasks: &'a [Task],
    gauge: &'a Gauge,
    ready: Receiver<Vec<u8>>,
    used: Sender<Vec<u8>>,
    arrivals: SyncSender<Arrival>,
    report: Report,
}

/// Runs all tasks that this rank has a part in; every other rank of them does the same. Fails only
/// when ranks cannot talk; all else is in the outcome.
pub(crate) fn run(
    comm: &dyn Comm,
    tasks: &[Task],
    source: &mut dyn Source,
    sink: &mut dyn Sink,
) -> Result<Outcome> {
    let rank = comm.rank();
    let steps = steps(tasks, rank);
    let blocks = tasks.iter().map(|task| task.blocks(rank)).max().unwrap_or(0);
    let gauge = Gauge::default();
    let (to_send, ready) = sync_channel(QUEUED_MAX);
    let (arrivals, arrived) = sync_channel(QUEUED_MAX);
    let (used, to_use) = channel();
    let (report, produced, collected) = std::thread::scope(|scope| {
        let producer = Producer { tasks, steps: &steps, blocks, source, gauge: &gauge };
        let producer = scope.spawn(move || producer.run(to_send, to_use));
        let collector = {
            let gauge = &gauge;
            scope.spawn(move || collect(tasks, rank, sink, gauge, &arrived, blocks))
        };
        let report = Report::default();
        let post = Post { comm, tasks, gauge: &gauge, ready, used, arrivals, report };
        // Its queues close with it, and both threads end.
        let report = post.run(&steps, blocks);
        (report, joined(producer.join()), joined(collector.join()))
    });
    let (mut report, produced, collected): (Report, Produced, Collected) =
        (report?, produced, collected);
    report.buffer_bytes_max = gauge.most();
    report.cpu += produced.cpu + collected.cpu;
    Ok(Outcome {
        made: collected.made,
        shards: collected.shards,
        sources_failed: produced.failed,
        targets_failed: collected.failed,
        report,
    })
}

fn joined<T>(ended: std::thread::Result<T>) -> T {
    ended.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

impl Post<'_> {
    fn run(mut self, steps: &[Step], blocks: u64) -> Result<Report> {
        let started = thread_time();
        for block in 0..blocks {
            for step in steps {
                let exists = |link: &Link| self.tasks[link.task].product_bytes(*link, block) > 0;
                let (send, receive) = (step.send.filter(exists), step.receive.filter(exists));
                self.step(send, receive, block)?;
            }
            self.tell(Arrival::Block(block));
        }
        self.report.cpu = thread_time() - started;
        Ok(self.report)
    }

    fn step(&mut self, send: Option<Link>, receive: Option<Link>, block: u64) -> Result<()> {
        let to = send.map(|link| rank_of(self.tasks[link.task].targets[link.target].part.rank));
        let from = receive.map(|link| rank_of(self.tasks[link.task].sources[link.source].rank));
        let message = send.map(|_| self.ready.recv().expect("the producer makes every product"));
        let arrived = match (to, &message, from) {
            (Some(to), Some(message), Some(from)) => {
                Some(self.comm.exchange(to, message, from, STAR)?)
            }
            (Some(to), Some(message), None) => {
                self.comm.send(to, STAR, message)?;
                None
            }
            (_, _, Some(from)) => Some(self.comm.receive(from, STAR)?),
            _ => None,
        };
        if let Some(message) = message {
            self.report.messages += 1;
            self.report.bytes_sent += message.len() as u64;
            // A producer that has ended needs no buffers.
            let _ = self.used.send(message);
        }
        if let (Some(link), Some(message)) = (receive, arrived) {
            self.report.bytes_received += message.len() as u64;
            self.gauge.take(message.capacity());
            self.tell(Arrival::Message(link, block, message));
        }
        Ok(())
    }

    fn tell(&self, arrival: Arrival) {
        self.arrivals.send(arrival).expect("the collector listens to the end");
    }
}

fn rank_of(rank: Option<usize>) -> usize {
    rank.expect("both ends of a message are ranks")
}
