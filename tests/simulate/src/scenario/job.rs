//! Whole jobs: ranks open, restart, take checkpoints and are killed, several times over.
//!
//! Everything above the store and the communicator is the product's own code. Each life of the job
//! draws what befalls it; in the last one nothing fails, and everything that was promised must be there.

use std::sync::Arc;

use standfast::config::Loaded;
use standfast::{Job, Level, Protected, Version};
use standfast_format::name;

use crate::Planted;
use crate::chance::Chance;
use crate::fibers;
use crate::life::{Life, Rates};
use crate::messages::Net;
use crate::oracle::{Oracle, PAGE_WORDS, PAGES, contents};
use crate::store::Disk;
use crate::world::{Nature, World};

const FAILED_PREFIXES: &[&str] = &["segments/", "images/", "manifests/"];

/// The job of one run.
struct Setting {
    world: Arc<World>,
    oracle: Arc<Oracle>,
    /// The node of every rank.
    node_of: Vec<usize>,
    disks: Vec<Arc<Disk>>,
    ring: bool,
    keep: u64,
}

/// What one life of the job is to do.
#[derive(Clone, Copy)]
pub(super) struct Task {
    pub(super) life: u64,
    pub(super) checkpoints: u64,
    pub(super) is_last: bool,
}

/// `checkpoints`: most that a life takes.
pub(super) fn run(world: &Arc<World>, ring: bool, checkpoints_max: u64) {
    let mut chance = world.chance("job");
    Nature::install(world);
    let mut setting = draw(world, &mut chance, ring);
    let lives = 1 + chance.below(3);
    for life in 0..lives {
        let checkpoints = chance.below(checkpoints_max + 1);
        live(&setting, &mut chance, Task { life, checkpoints, is_last: false });
        befall(&mut setting, &mut chance);
    }
    world.calm_down();
    live(&setting, &mut chance, Task { life: lives, checkpoints: 1, is_last: true });
    live(&setting, &mut chance, Task { life: lives + 1, checkpoints: 0, is_last: true });
}

fn draw(world: &Arc<World>, chance: &mut Chance, ring: bool) -> Setting {
    let ranks = if ring { 2 + chance.below(2) } else { 1 + chance.below(3) } as usize;
    let one_store = !ring && (ranks == 1 || chance.one_in(2));
    let node_of: Vec<usize> = match ring {
        true => (0..ranks).collect(),
        false if one_store => vec![0; ranks],
        false => {
            let mut nodes: Vec<usize> = (0..ranks).map(|_| chance.below(2) as usize).collect();
            nodes[0] = 0;
            nodes
        }
    };
    let nodes = node_of.iter().max().map_or(1, |last| last + 1);
    let disks: Vec<_> = (0..nodes).map(|node| Disk::new(world, format!("n{node}"))).collect();
    Disk::join(&disks);
    let keep = 1 + chance.below(3);
    let oracle = Oracle::new(world);
    let setting = Setting { world: Arc::clone(world), oracle, node_of, disks, ring, keep };
    world.trace(|| format!("ranks on nodes {:?}, keep {keep}, ring {ring}", setting.node_of));
    setting
}

/// What happens between two lives.
fn befall(setting: &mut Setting, chance: &mut Chance) {
    let oracle = &setting.oracle;
    if setting.world.has(Planted::ImageUnsynced) || chance.one_in(4) {
        setting.world.trace(|| "the power goes".into());
        setting.disks.iter().for_each(|disk| disk.cut_power(chance));
    }
    if setting.ring && chance.one_in(3) {
        let lost = chance.below(setting.disks.len() as u64) as usize;
        setting.world.trace(|| format!("node {lost} is lost"));
        setting.disks[lost] = Disk::new(&setting.world, format!("n{lost}"));
        Disk::join(&setting.disks);
        if oracle.lose_node() {
            setting.disks.iter().for_each(|disk| disk.release_promises());
        }
    } else if chance.one_in(8) {
        let at = chance.below(setting.disks.len() as u64) as usize;
        if setting.disks[at].damage(chance, FAILED_PREFIXES) {
            oracle.excuse();
        }
    }
}

fn live(setting: &Setting, chance: &mut Chance, task: Task) {
    let size = setting.node_of.len();
    let net = Net::new(&setting.world, size, chance.number());
    setting.oracle.begin_life();
    let rates = Rates::draw(chance);
    setting.world.trace(|| format!("life {}: {rates:?}", task.life));
    let mut programs: Vec<Box<dyn FnOnce()>> = Vec::new();
    let mut lives = Vec::new();
    for (rank, node) in setting.node_of.iter().enumerate() {
        let name = format!("rank {rank} of life {}", task.life);
        let life = Life::begin(&setting.world, name, rates, Some((Arc::clone(&net), rank)));
        lives.push(Arc::clone(&life));
        let program = Program {
            world: Arc::clone(&setting.world),
            oracle: Arc::clone(&setting.oracle),
            net: Arc::clone(&net),
            loaded: loaded(setting.keep, setting.ring, *node),
            disks: setting.disks.clone(),
            node: *node,
            ring: setting.ring,
            rank,
            task,
            life,
        };
        programs.push(Box::new(move || program.run()));
    }
    fibers::run(&setting.world, chance, programs);
    lives.iter().for_each(|life| life.end());
}

/// Settings of a tiny job, without threads of its own where it can do without.
pub(super) fn loaded(keep: u64, ring: bool, node: usize) -> Loaded {
    let (keep, node) = (keep.to_string(), format!("n{node}"));
    let settings = [
        ("job", "sim"),
        ("keep", &*keep),
        ("ring", if ring { "1" } else { "off" }),
        ("lab.node", &*node),
        ("lab.page", "1KiB"),
        ("lab.block", "4KiB"),
        ("lab.pool", "64KiB"),
        ("lab.segment", "16KiB"),
        ("lab.threads", "1"),
        ("lab.io_threads", "1"),
        ("lab.write", "direct"),
        ("lab.pipeline", "none"),
        ("lab.track", "hash"),
    ];
    let owned: Vec<(String, String)> =
        settings.iter().map(|(name, text)| ((*name).into(), (*text).into())).collect();
    Loaded::load(&owned).expect("these settings work")
}

/// One rank's program in one life.
pub(super) struct Program {
    pub(super) world: Arc<World>,
    pub(super) oracle: Arc<Oracle>,
    pub(super) net: Arc<Net>,
    pub(super) loaded: Loaded,
    pub(super) disks: Vec<Arc<Disk>>,
    pub(super) node: usize,
    pub(super) ring: bool,
    pub(super) rank: usize,
    pub(super) task: Task,
    pub(super) life: Arc<Life>,
}

impl Program {
    pub(super) fn run(self) {
        let comm = self.net.comm(self.rank);
        let store = self.disks[self.node].store(&self.life);
        let opened = Job::open_store_comm(self.loaded.clone(), store, &comm);
        if let Some(job) = self.expect("open the job", opened)
            && let Some(field) = self.expect("protect", job.alloc("field", PAGES * PAGE_WORDS - 1))
        {
            self.go_on(&job, &field);
            let closed = job.close();
            self.expect("close the job", closed);
        }
        // Others may still wait for a word of this rank.
        self.life.end();
    }

    /// A failure is no surprise, except in the last life.
    fn expect<T>(&self, what: &str, result: standfast::Result<T>) -> Option<T> {
        match result {
            Ok(value) => Some(value),
            Err(error) => {
                self.world.trace(|| format!("{}: cannot {what}: {error}", self.life.name));
                let nothing_promised = self.ring && self.oracle.promised() == 0;
                let excused = self.oracle.is_excused() || nothing_promised;
                if self.task.is_last && !excused {
                    self.world.wrong(format!("nothing fails, and yet nobody can {what}: {error}"));
                }
                None
            }
        }
    }

    fn go_on(&self, job: &Job, field: &Protected<u64>) {
        let Some(version) = self.come_back(job, field) else { return };
        if self.task.is_last {
            self.check_all(job, field, version);
        }
        for next in 1..=self.task.checkpoints {
            let (version, generation) = (version + next, self.task.life * 100 + next);
            if !self.checkpoint(job, field, version, generation) {
                return;
            }
        }
    }

    /// Restarts; the version that it went on from.
    fn come_back(&self, job: &Job, field: &Protected<u64>) -> Option<u64> {
        field.write().fill(0xdead);
        let restarted = match job.restart() {
            Ok(Some(restarted)) => restarted,
            Ok(None) => {
                if self.life.is_alive() {
                    self.world.trace(|| format!("{}: fresh start", self.life.name));
                    self.oracle.found_nothing();
                }
                return Some(0);
            }
            Err(error) => return self.expect("restart", Err(error)),
        };
        let version = restarted.version.0;
        if self.life.is_alive() {
            let generation = self.oracle.came_back(self.rank, version, &field.read())?;
            self.world.trace(|| {
                format!("{}: back to {version}, generation {generation}", self.life.name)
            });
            let why: Vec<String> =
                restarted.skipped.iter().map(|(what, why)| format!("{what}: {why}")).collect();
            self.oracle.chose(generation, &why.join("; "));
        }
        Some(version)
    }

    fn checkpoint(&self, job: &Job, field: &Protected<u64>, version: u64, generation: u64) -> bool {
        field.write().copy_from_slice(&contents(self.rank, generation));
        self.oracle.tries(generation, version);
        let taken = job.checkpoint(Some(Version(version)));
        let durable = taken.and_then(|version| job.wait(version, Level::Local));
        if self.expect("take a checkpoint", durable).is_none() {
            return false;
        }
        if self.life.is_alive() {
            self.world.trace(|| format!("{}: {version} is durable", self.life.name));
            self.oracle.acked(generation);
            let manifest = name::manifest(Version(version), Level::Local);
            self.disks.iter().for_each(|disk| disk.commit(&manifest));
        }
        if self.ring && job.wait(Version(version), Level::Ring).is_ok() && self.life.is_alive() {
            self.world.trace(|| format!("{}: {version} survives a node", self.life.name));
            self.oracle.acked_ring(generation);
        }
        true
    }

    /// Every checkpoint that is offered can be restored.
    fn check_all(&self, job: &Job, field: &Protected<u64>, newest: u64) {
        let mut versions: Vec<u64> = job.list().iter().map(|manifest| manifest.version.0).collect();
        versions.retain(|version| *version != newest);
        if newest > 0 {
            versions.push(newest);
        }
        // A wiped node may have had what older ones need.
        let strict = !self.oracle.is_excused() && !self.ring;
        for version in versions {
            match job.restart_from(Version(version)) {
                Ok(_) => {
                    self.oracle.begin_life();
                    self.oracle.came_back(self.rank, version, &field.read());
                }
                Err(error) if strict => {
                    self.world.wrong(format!("checkpoint {version} cannot be restored: {error}"));
                }
                Err(error) => {
                    self.world.trace(|| format!("checkpoint {version} is not whole: {error}"));
                }
            }
        }
    }
}
