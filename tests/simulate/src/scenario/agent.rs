//! Agents: ranks send blocks and hand their parts over, in any order; ranks and agents die anywhere.
//!
//! With one node its agent commits. With two nodes each pledges, all ranks die, and the next opening of
//! the job must commit what every node has pledged.

use std::sync::Arc;

use standfast_agent::HandOver;
use standfast_agent::simulation::Agent;
use standfast_checkpoint::{Inventory, Order, unplaced};
use standfast_format::{
    AttemptId, Digest, HashKind, Image, Rank, RegionImage, Run, SegmentId, Stats, StoreHeader,
    Version,
};
use standfast_reduce::PageHasher;

use super::job::{Program, Task, loaded};
use crate::Planted;
use crate::chance::Chance;
use crate::fibers;
use crate::life::{Life, Rates};
use crate::messages::Net;
use crate::oracle::{Oracle, PAGE_WORDS, PAGES, contents};
use crate::store::Disk;
use crate::world::{Nature, World};

const PAGE_BYTES: usize = PAGE_WORDS * 8;
const BLOCK_PAGES: usize = 4;

struct Setting {
    world: Arc<World>,
    oracle: Arc<Oracle>,
    node_of: Vec<usize>,
    disks: Vec<Arc<Disk>>,
    keep: u64,
}

pub(super) fn run(world: &Arc<World>) {
    let mut chance = world.chance("agent");
    Nature::install(world);
    let nodes = 1 + chance.below(2) as usize;
    let per_node = 1 + chance.below(2) as usize;
    let disks: Vec<_> = (0..nodes).map(|node| Disk::new(world, format!("n{node}"))).collect();
    Disk::join(&disks);
    let setting = Setting {
        world: Arc::clone(world),
        oracle: Oracle::new(world),
        node_of: (0..nodes * per_node).map(|rank| rank / per_node).collect(),
        disks,
        keep: 1 + chance.below(3),
    };
    world.trace(|| format!("ranks on nodes {:?}", setting.node_of));
    // The stores are made by a job that nothing befalls.
    job(&setting, &mut chance, Rates::default(), Task { life: 0, checkpoints: 1, is_last: true });
    let lives = 1 + chance.below(2);
    for life in 0..lives {
        agents(&setting, &mut chance, 2 * life + 1);
        let task = Task { life: 2 * life + 2, checkpoints: chance.below(2), is_last: false };
        let rates = Rates::draw(&mut chance);
        job(&setting, &mut chance, rates, task);
    }
    agents(&setting, &mut chance, 2 * lives + 1);
    world.calm_down();
    let task = Task { life: 2 * lives + 2, checkpoints: 0, is_last: true };
    job(&setting, &mut chance, Rates::default(), task);
}

/// A life of the job without agents.
fn job(setting: &Setting, chance: &mut Chance, rates: Rates, task: Task) {
    let net = Net::new(&setting.world, setting.node_of.len(), chance.number());
    setting.oracle.begin_life();
    let mut programs: Vec<Box<dyn FnOnce()>> = Vec::new();
    for (rank, node) in setting.node_of.iter().enumerate() {
        let name = format!("rank {rank} of life {}", task.life);
        let net = Arc::clone(&net);
        let program = Program {
            world: Arc::clone(&setting.world),
            oracle: Arc::clone(&setting.oracle),
            loaded: loaded(setting.keep, false, *node),
            disks: setting.disks.clone(),
            node: *node,
            ring: false,
            rank,
            task,
            life: Life::begin(&setting.world, name, rates, Some((Arc::clone(&net), rank))),
            net,
        };
        programs.push(Box::new(move || program.run()));
    }
    fibers::run(&setting.world, chance, programs);
}

/// What is where before agents begin: header, newest version, and the newest sequence of checkpoints and
/// pledges. `None` if a look at the stores shows that a job must open them first.
fn look(setting: &Setting) -> Option<(StoreHeader, u64, u64)> {
    let reader = Life::begin(&setting.world, "reader".into(), Rates::default(), None);
    let inventory = Inventory::read(&*setting.disks[0].store(&reader)).ok()?;
    let newest = inventory.checkpoints.first();
    let (version, sequence) = newest.map_or((0, 0), |own| (own.version.0, own.sequence));
    let pledges = setting.disks.iter().flat_map(|disk| disk.pledges());
    let sequence = pledges.map(|pledge| pledge.sequence).fold(sequence, u64::max);
    Some((inventory.header, version, sequence))
}

/// A life with agents: some attempts, and then everybody is gone.
fn agents(setting: &Setting, chance: &mut Chance, life: u64) {
    let Some((header, version, sequence)) = look(setting) else { return };
    let rates = Rates::draw(chance);
    let mut nodes = Vec::new();
    for (node, disk) in setting.disks.iter().enumerate() {
        let name = format!("agent {node} of life {life}");
        let own = Life::begin(&setting.world, name, rates, None);
        let ranks: Vec<u32> = (0..setting.node_of.len() as u32)
            .filter(|rank| setting.node_of[*rank as usize] == node)
            .collect();
        let all = setting.node_of.len() as u32;
        let (names, sizes) =
            ((header.id, &*format!("n{node}")), (setting.keep as u32, PAGE_BYTES as u32));
        let opened = Agent::open(disk.store(&own), names, (ranks.clone(), all), sizes);
        let Ok(mut agent) = opened else { return };
        if !ranks.iter().all(|rank| agent.join(*rank).is_ok()) {
            return;
        }
        nodes.push((agent, own));
    }
    let hasher = PageHasher::new(HashKind::Xxh3, &header.key);
    let mut session = Session { setting, nodes, hasher, header, dead: Vec::new() };
    let mut done = 0;
    for number in 1..=1 + chance.below(3) {
        let mut attempt = [0; 8];
        attempt.copy_from_slice(&chance.number().to_le_bytes());
        let order = Order {
            version: Version(version + done + 1),
            attempt: AttemptId(attempt),
            taken_ns: 1_700_000_000_000_000_000 + setting.world.clock.now(),
            sequence: sequence + number,
            abandons: None,
        };
        let durable = session.attempt(chance, order, life * 100 + number);
        done += u64::from(durable);
        // Who has pledged waits for ranks that commit; here they die.
        if !session.dead.is_empty() || (durable && setting.disks.len() > 1) {
            break;
        }
    }
    session.end(chance);
}

/// Agents of all nodes, and their ranks.
struct Session<'a> {
    setting: &'a Setting,
    nodes: Vec<(Agent, Arc<Life>)>,
    hasher: PageHasher,
    header: StoreHeader,
    dead: Vec<u32>,
}

impl Session<'_> {
    /// One attempt; whether it is known to be durable.
    fn attempt(&mut self, chance: &mut Chance, order: Order, generation: u64) -> bool {
        let ranks = self.setting.node_of.len();
        self.setting.oracle.tries(generation, order.version.0);
        let mut next: Vec<usize> = vec![0; ranks];
        let blocks = PAGES.div_ceil(BLOCK_PAGES);
        loop {
            let left: Vec<usize> = (0..ranks)
                .filter(|rank| next[*rank] <= blocks && !self.dead.contains(&(*rank as u32)))
                .collect();
            if left.is_empty() {
                break;
            }
            let rank = *chance.pick(&left);
            self.turn(chance, order, generation, (rank, next[rank]));
            next[rank] += 1;
        }
        if self.setting.world.has(Planted::AgentEarly) && self.dead.is_empty() {
            self.setting.oracle.acked(generation);
        }
        let durable = self.is_durable(order);
        if durable {
            self.setting.world.trace(|| format!("{} is durable", order.version));
            self.setting.oracle.acked(generation);
        }
        durable
    }

    /// One rank does its next thing, or dies, or gives up.
    fn turn(
        &mut self,
        chance: &mut Chance,
        order: Order,
        generation: u64,
        (rank, step): (usize, usize),
    ) {
        let node = self.setting.node_of[rank];
        let (agent, life) = &mut self.nodes[node];
        if !life.is_alive() {
            return;
        }
        let world = &self.setting.world;
        if chance.one_in(40) {
            world.trace(|| format!("rank {rank} dies"));
            agent.leave(rank as u32, false);
            self.dead.push(rank as u32);
            return;
        }
        if chance.one_in(60) {
            world.trace(|| format!("rank {rank} gives {} up", order.version));
            return agent.abort(order.attempt);
        }
        let pages = pages(rank, generation);
        let stream = stream(order, rank);
        let blocks = PAGES.div_ceil(BLOCK_PAGES);
        let sent = match step < blocks {
            true => {
                let from = step * BLOCK_PAGES;
                let some = &pages[from..(from + BLOCK_PAGES).min(PAGES)];
                let hashes = hashes(&self.hasher, some);
                agent.block(rank as u32, order, (stream, step as u32), &some.concat(), hashes)
            }
            false => {
                let image = image(&self.header, order, rank, hashes(&self.hasher, &pages));
                let (stats, streams) = (Stats::default(), vec![stream]);
                let image = image.encode().0;
                agent.hand_over(
                    rank as u32,
                    HandOver { order, image, streams, stats, elapsed_ns: 0 },
                )
            }
        };
        world.trace(|| format!("rank {rank} sends {step} of {}: {sent:?}", order.version));
    }

    /// Whether every node has told a rank of it that it is durable.
    fn is_durable(&mut self, order: Order) -> bool {
        let node_of = &self.setting.node_of;
        let dead = &self.dead;
        self.nodes.iter_mut().enumerate().all(|(node, (agent, life))| {
            let here = (0..node_of.len()).filter(|rank| node_of[*rank] == node);
            let mut told = here
                .filter(|rank| !dead.contains(&(*rank as u32)))
                .filter_map(|rank| agent.news(rank as u32, order.attempt));
            life.is_alive() && told.any(|settled| settled.outcome.is_ok())
        })
    }

    /// Ranks and agents end.
    fn end(self, chance: &mut Chance) {
        let willingly = chance.one_in(2);
        for (node, (mut agent, life)) in self.nodes.into_iter().enumerate() {
            for rank in 0..self.setting.node_of.len() {
                if self.setting.node_of[rank] == node && !self.dead.contains(&(rank as u32)) {
                    agent.leave(rank as u32, willingly);
                }
            }
            drop(agent);
            life.end();
        }
    }
}

fn stream(order: Order, rank: usize) -> SegmentId {
    let mut id = [0; 16];
    id[..8].copy_from_slice(&order.attempt.0);
    id[8] = rank as u8 + 1;
    SegmentId(id)
}

/// The pages of a rank, the last one filled up.
fn pages(rank: usize, generation: u64) -> Vec<Vec<u8>> {
    let mut bytes: Vec<u8> =
        contents(rank, generation).iter().flat_map(|word| word.to_ne_bytes()).collect();
    bytes.resize(PAGES * PAGE_BYTES, 0);
    bytes.chunks(PAGE_BYTES).map(<[u8]>::to_vec).collect()
}

fn hashes(hasher: &PageHasher, pages: &[Vec<u8>]) -> Vec<u8> {
    let mut all = vec![0; pages.len() * hasher.bytes()];
    for (page, hash) in pages.iter().zip(all.chunks_mut(hasher.bytes())) {
        hasher.hash(page, hash);
    }
    all
}

fn image(header: &StoreHeader, order: Order, rank: usize, hashes: Vec<u8>) -> Image {
    let region = RegionImage {
        name: "field".into(),
        bytes: ((PAGES * PAGE_WORDS - 1) * 8) as u64,
        elem: 8,
        pages_digest: Digest::of(&hashes),
        runs: vec![Run::Stored { pages: PAGES as u32, segment: 0, slot: 0 }],
    };
    Image {
        job: header.id,
        version: order.version,
        rank: Rank(rank as u32),
        page_bytes: PAGE_BYTES as u32,
        hash: HashKind::Xxh3,
        segments: vec![unplaced(stream(order, rank))],
        regions: vec![region],
        references: None,
    }
}
