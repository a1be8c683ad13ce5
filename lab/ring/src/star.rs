//! What a whole star costs, on virtual nodes in this process.

use std::time::{Duration, Instant};

use standfast_comm::{Comm, Tag};
use standfast_format::{AttemptId, JobId, Version};

use super::ends::{Lent, Nowhere};
use super::two_steps::encode_in_two_steps;
use standfast_ring::Memory;
use standfast_ring::Result;
use standfast_ring::kernel::{Combine, add};
use standfast_ring::recover::{Holding, Recovery, recover};
use standfast_ring::shard::Stamp;
use standfast_ring::topology::{Piece, Shape, Topology};
use standfast_ring::{Options, Order, encode};
use standfast_testkit::{Threads, run_threads};

const STAMP: Stamp = Stamp { job: JobId([0; 16]), version: Version(1), attempt: AttemptId([0; 8]) };

/// How shards get to their keepers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// In one step: products go to where the shard will stay.
    Folded,
    /// The same, with all products of a shard in a row.
    AllToOne,
    /// As in the paper: a group makes its shards, then sends them.
    TwoSteps,
}

/// What a star of virtual nodes takes on this machine, and its parts alone.
#[derive(Clone, Copy, Debug)]
pub struct StarTime {
    /// All of it, by the clock.
    pub star: Duration,
    /// Processor time of a node, in the busiest group.
    pub node: Duration,
    /// The same messages, nothing else.
    pub messages: Duration,
    /// The same products and sums, nothing else.
    pub arithmetic: Duration,
}

/// Measures a star of so many nodes with a rank each, in groups of `k` with as many shards; the
/// least of some rounds.
pub fn star_time(
    nodes: usize,
    k: usize,
    bytes: usize,
    (form, block_bytes): (Form, u32),
    rounds: usize,
) -> Result<StarTime> {
    let stage = Stage::new(nodes, k, bytes)?.of(form, block_bytes);
    let most = Duration::MAX;
    let mut least = StarTime { star: most, node: most, messages: most, arithmetic: most };
    for _ in 0..rounds.max(1) {
        let (star, node) = stage.encode()?;
        least.star = least.star.min(star);
        least.node = least.node.min(node);
        least.messages = least.messages.min(stage.messages());
        least.arithmetic = least.arithmetic.min(stage.arithmetic());
    }
    Ok(least)
}

/// Processor time of a node in jobs of so many nodes, several of them side by side: with `jobs * nodes`
/// the same, so is the load of this machine, and what is left is what the size of a job costs.
pub fn node_time(
    (jobs, nodes): (usize, usize),
    k: usize,
    bytes: usize,
    (form, block_bytes): (Form, u32),
    rounds: usize,
) -> Result<Duration> {
    let stage = Stage::jobs(jobs, nodes, k, bytes)?.of(form, block_bytes);
    let times: Result<Vec<Duration>> = (0..rounds.max(1)).map(|_| Ok(stage.encode()?.1)).collect();
    Ok(times?.into_iter().min().expect("at least one round"))
}

/// Virtual nodes with one rank each, in one or several jobs, and what the ranks hold.
pub(super) struct Stage {
    topology: Topology,
    /// Of all jobs, one behind the other.
    stores: Vec<Memory>,
    bytes: usize,
    options: Options,
    two_steps: bool,
}

impl Stage {
    /// One job.
    pub(super) fn new(nodes: usize, k: usize, bytes: usize) -> Result<Self> {
        Self::jobs(1, nodes, k, bytes)
    }

    /// Several jobs of so many nodes each, side by side: the same load on this machine as one
    /// large job.
    pub(super) fn jobs(jobs: usize, nodes: usize, k: usize, bytes: usize) -> Result<Self> {
        let topology = Topology::of_nodes(nodes, Shape::full(k))?;
        let stores = (0..jobs * nodes).map(|_| Memory::default()).collect();
        let stage = Self { topology, stores, bytes, options: Options::default(), two_steps: false };
        for (at, store) in stage.stores.iter().enumerate() {
            let byte = |i: usize| (i * 31 + at * 97 + (i >> 9)) as u8;
            store.put(stage.member(at % nodes), (0..bytes).map(byte).collect());
        }
        Ok(stage)
    }

    /// The same in this form, in blocks of so many bytes.
    fn of(self, form: Form, block_bytes: u32) -> Self {
        let order = if form == Form::AllToOne { Order::Together } else { Order::Star };
        let options = Options { order, block_bytes };
        Self { options, two_steps: form == Form::TwoSteps, ..self }
    }

    fn member(&self, rank: usize) -> Piece {
        let (group, place) = self.topology.group_of(rank);
        Piece { group, index: place as u32 }
    }

    fn members(&self) -> Vec<Vec<u8>> {
        let member = |rank: usize| self.stores[rank].get(self.member(rank));
        (0..self.topology.ranks())
            .map(|rank| member(rank).expect("every rank has its own"))
            .collect()
    }

    /// Encodes everything from where it lies and keeps nothing: the time of all.
    pub(super) fn encode_only(&self) -> Result<Duration> {
        let members = self.members();
        let started = Instant::now();
        let ended = run_threads(self.topology.ranks(), |comm| {
            let mut source = Lent(&members[comm.rank()]);
            let (bytes, options) = (self.bytes as u64, self.options);
            encode(&comm, &self.topology, STAMP, bytes, options, &mut source, &mut Nowhere)
                .map(drop)
        });
        let time = started.elapsed();
        ended.into_iter().collect::<Result<()>>()?;
        Ok(time)
    }

    /// Encodes everything: the time of all, and the processor time of a node, averaged over the
    /// busiest group of `k` neighbours; a single node's is mostly chance.
    pub(super) fn encode(&self) -> Result<(Duration, Duration)> {
        let started = Instant::now();
        let cpus = run_threads(self.stores.len(), |world| {
            let job = world.rank() / self.topology.ranks();
            let comm = world.split(Some(job as u32), 0)?.expect("every rank has a job");
            let store = &self.stores[world.rank()];
            let (mut source, mut sink) = (store.clone(), store.clone());
            let (bytes, options) = (self.bytes as u64, self.options);
            if self.two_steps {
                let (topology, comm) = (&self.topology, &*comm);
                return encode_in_two_steps(comm, topology, STAMP, bytes, options, store);
            }
            encode(&*comm, &self.topology, STAMP, bytes, options, &mut source, &mut sink)
                .map(|encoded| encoded.report.cpu)
        });
        let time = started.elapsed();
        let cpus: Vec<Duration> = cpus.into_iter().collect::<Result<_>>()?;
        let k = self.topology.shape().k;
        let groups = cpus.chunks(k).map(|group| group.iter().sum::<Duration>() / k as u32);
        Ok((time, groups.max().unwrap_or_default()))
    }

    /// Brings the first node back, as if it had lost everything: the time of all. It gets it into
    /// memory that it has used before, as those do that encode.
    pub(super) fn recover(&self) -> Result<Duration> {
        let heirs: Vec<usize> = (0..self.topology.ranks()).collect();
        let block_bytes = self.options.block_bytes;
        let recovery =
            Recovery { topology: &self.topology, stamp: STAMP, heirs: &heirs, block_bytes };
        let started = Instant::now();
        let ended = run_threads(self.topology.ranks(), |comm| {
            let store = &self.stores[comm.rank()];
            let holding = match comm.rank() {
                0 => Holding::default(),
                rank => self.holding(rank),
            };
            let (mut source, mut sink) = (store.clone(), store.clone());
            recover(&comm, recovery, &holding, &mut source, &mut sink).map(drop)
        });
        let time = started.elapsed();
        ended.into_iter().collect::<Result<()>>()?;
        Ok(time)
    }

    fn holding(&self, rank: usize) -> Holding {
        let store = &self.stores[rank];
        let mut holding = Holding::default();
        for piece in store.pieces() {
            match piece == self.member(rank) {
                true => holding.members.push((rank, self.bytes as u64)),
                false => holding.shards.extend(store.shard(piece)),
            }
        }
        holding
    }

    /// The messages of an encoding, and nothing else: every rank's bytes are put into messages and
    /// travel by the same calls as those of a star.
    pub(super) fn messages(&self) -> Duration {
        let block = vec![1; self.options.block_bytes as usize + 8];
        self.timed(|stage, comm| {
            let (nodes, k) = (stage.topology.nodes(), stage.topology.shape().k);
            let blocks = stage.bytes.div_ceil(block.len() - 8);
            let (mut message, mut told) = (Vec::new(), Vec::new());
            for step in (0..blocks * k).map(|step| step % k) {
                let (to, from) = (
                    (comm.rank() + k + step) % nodes,
                    (comm.rank() + 2 * nodes - k - step) % nodes,
                );
                message.clear();
                message.extend_from_slice(&block);
                comm.exchange_into(to, &mut message, from, Tag(1), &mut told)
                    .expect("all ranks go on");
            }
            std::hint::black_box(told);
        })
    }

    /// The products and sums of an encoding, and nothing else.
    pub(super) fn arithmetic(&self) -> Duration {
        let members = self.members();
        self.timed(|stage, comm| {
            let block_bytes = stage.options.block_bytes as usize;
            let (mut product, mut sum) = (vec![0; block_bytes], vec![0; block_bytes]);
            for block in members[comm.rank()].chunks(block_bytes) {
                for step in 0..stage.topology.shape().k {
                    let product = &mut product[..block.len()];
                    Combine::factor(step as u8 + 2).set(&mut [product], &[block]);
                    add(&mut sum[..block.len()], product);
                }
            }
            std::hint::black_box(sum);
        })
    }

    fn timed(&self, body: impl Fn(&Self, &Threads) + Sync) -> Duration {
        let started = Instant::now();
        run_threads(self.topology.ranks(), |comm| body(self, &comm));
        started.elapsed()
    }
}
