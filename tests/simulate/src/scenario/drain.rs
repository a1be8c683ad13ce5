//! A job of one rank, a drain beside it, and a machine that loses everything it had.
//!
//! The job and the drain are two processes on one node: either may die, and they meet in the locks and
//! objects of the local store. In the end a new machine fetches what global storage has.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use standfast_drain::policy::Policy;
use standfast_drain::{Drain, Encoding, Event, Flow, Progress, Retention, Until};
use standfast_reduce::CodecSpec;

use super::job::{Program, Task, loaded};
use crate::Planted;
use crate::chance::Chance;
use crate::fibers;
use crate::life::{Life, Rates};
use crate::messages::Net;
use crate::oracle::Oracle;
use crate::store::{Disk, GLOBAL};
use crate::world::{Nature, World};

struct Setting {
    world: Arc<World>,
    oracle: Arc<Oracle>,
    /// What global storage has promised.
    arrived: Arc<Oracle>,
    local: Arc<Disk>,
    global: Arc<Disk>,
    keep: u64,
    retention: Retention,
}

pub(super) fn run(world: &Arc<World>) {
    let mut chance = world.chance("drain");
    Nature::install(world);
    let setting = Setting {
        world: Arc::clone(world),
        oracle: Oracle::new(world),
        arrived: Oracle::new(world),
        local: Disk::new(world, "local"),
        global: Disk::new(world, GLOBAL),
        keep: 1 + chance.below(3),
        retention: Retention { newest: chance.below(3) as usize, every: 0 },
    };
    let lives = 1 + chance.below(3);
    for life in 0..lives {
        let task = Task { life, checkpoints: chance.below(4), is_last: false };
        live(&setting, &mut chance, task);
        if world.has(Planted::UploadUnsynced) || chance.one_in(4) {
            world.trace(|| "the power goes".into());
            setting.local.cut_power(&mut chance);
            setting.global.cut_power(&mut chance);
        }
    }
    world.calm_down();
    lose_the_machine(&setting, lives);
}

/// A job and a drain, beside each other.
fn live(setting: &Setting, chance: &mut Chance, task: Task) {
    let job = program(setting, chance, task, &setting.oracle, &setting.local);
    let lives = [Arc::clone(&job.life), life(setting, chance, format!("drain {}", task.life))];
    let drain = Draining {
        world: Arc::clone(&setting.world),
        arrived: Arc::clone(&setting.arrived),
        oracle: Arc::clone(&setting.oracle),
        local: Arc::clone(&setting.local),
        global: Arc::clone(&setting.global),
        retention: setting.retention,
        rounds: 1 + chance.below(3),
        policy: *chance.pick(&[Policy::Newest, Policy::Every(1)]),
        life: Arc::clone(&lives[1]),
    };
    fibers::run(&setting.world, chance, vec![Box::new(|| job.run()), Box::new(|| drain.run())]);
    lives.iter().for_each(|life| life.end());
}

fn life(setting: &Setting, chance: &mut Chance, name: String) -> Arc<Life> {
    Life::begin(&setting.world, name, Rates::draw(chance), None)
}

fn program(
    setting: &Setting,
    chance: &mut Chance,
    task: Task,
    oracle: &Arc<Oracle>,
    disk: &Arc<Disk>,
) -> Program {
    let net = Net::new(&setting.world, 1, chance.number());
    oracle.begin_life();
    Program {
        world: Arc::clone(&setting.world),
        oracle: Arc::clone(oracle),
        net,
        loaded: loaded(setting.keep, false, 0),
        disks: vec![Arc::clone(disk)],
        node: 0,
        ring: false,
        rank: 0,
        task,
        life: life(setting, chance, format!("job {}", task.life)),
    }
}

/// Everything local is gone: a new machine fetches from global storage and goes on. Then global
/// storage itself must hold nothing but whole checkpoints.
fn lose_the_machine(setting: &Setting, life: u64) {
    let mut chance = setting.world.chance("after");
    setting.world.trace(|| "the machine is lost".into());
    setting.arrived.learn(&setting.oracle);
    let fresh = Disk::new(&setting.world, "fresh");
    if !setting.global.names("manifests/v").is_empty() {
        let process = Life::begin(&setting.world, "fetch".into(), Rates::default(), None);
        let (from, to) = (setting.global.store(&process), fresh.store(&process));
        let fetched = Drain::back(&*from, &*to, 0)
            .and_then(|back| carry(&back, &*to, Policy::Newest, &mut |_| ()));
        if let Err(error) = fetched {
            setting.world.wrong(format!("nothing fails, and yet nothing is fetched: {error}"));
        }
        process.end();
    }
    for disk in [&fresh, &setting.global] {
        let task = Task { life: life + 1, checkpoints: 0, is_last: true };
        let job = program(setting, &mut chance, task, &setting.arrived, disk);
        fibers::run(&setting.world, &mut chance, vec![Box::new(|| job.run())]);
    }
}

/// Carries all that is due.
fn carry(
    drain: &Drain<'_>,
    local: &dyn standfast_store::Store,
    policy: Policy,
    tell: &mut dyn FnMut(Event<'_>),
) -> standfast_drain::Result<()> {
    let (stop, progress) = (AtomicBool::new(false), Progress::default());
    let flow = Flow::new(local, &stop, &progress);
    drain.run(&Until { policy, follow: false, tries: 0 }, &flow, tell)
}

/// A drain in one life.
struct Draining {
    world: Arc<World>,
    arrived: Arc<Oracle>,
    oracle: Arc<Oracle>,
    local: Arc<Disk>,
    global: Arc<Disk>,
    retention: Retention,
    rounds: u64,
    policy: Policy,
    life: Arc<Life>,
}

impl Draining {
    fn run(self) {
        for _ in 0..self.rounds {
            if let Err(error) = self.once() {
                self.world.trace(|| format!("{}: {error}", self.life.name));
            }
            (0..30).for_each(|_| fibers::give_way());
        }
        self.life.end();
    }

    fn once(&self) -> standfast_drain::Result<()> {
        let (local, global) = (self.local.store(&self.life), self.global.store(&self.life));
        let codec = CodecSpec::NONE.into();
        let encoding = Encoding { codec, threads: 0 };
        let drain = Drain::open(&*local, &*global, encoding)?.keeping(self.retention);
        carry(&drain, &*local, self.policy, &mut |event| {
            if let Event::Arrived(carried, _) = event
                && self.life.is_alive()
            {
                self.arrive(carried.version.0);
            }
        })
    }

    fn arrive(&self, version: u64) {
        // A version may be tried again while an earlier try is on its way.
        let Some(manifest) = self.global.manifest(version) else {
            return self.world.wrong(format!("{version} has arrived, and has no manifest"));
        };
        let turn = Nature::turn_at(&self.world, manifest.taken_ns);
        let generation = self.oracle.taken(version, turn);
        self.world.trace(|| {
            format!("{}: {version} has arrived, generation {generation}", self.life.name)
        });
        self.arrived.acked(generation);
    }
}
