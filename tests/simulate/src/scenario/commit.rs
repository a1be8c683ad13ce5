//! The commit alone, many times a second: decisions, publisher, inventory and prune over simulated
//! stores and ranks. Pages are left out: a segment is a few bytes that tell whose it is.
//!
//! Ranks of one store commit together, or an agent commits for all of them.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};

use standfast_checkpoint::publishing::{
    Aftermath, Files, Happened, Role, Steps, Talk, Verdict, drive,
};
use standfast_checkpoint::{
    Described, Entry, Holdings, Inventory, Order, Part, Publisher, Unreadable, complete_header,
    prune, read_image,
};
use standfast_comm::{Collective, Failure, Fault, Step, Stop};
use standfast_format::{
    AttemptId, Digest, HashKind, Image, JobId, Kind, Level, Manifest, Rank, SegmentId, SegmentRef,
    Stats, StoreHeader, Version, Writes, name,
};
use standfast_store::Store;
use standfast_sys::Stopwatch;

use crate::Planted;
use crate::chance::{Chance, mix};
use crate::fibers;
use crate::life::{Life, Rates};
use crate::messages::Net;
use crate::store::Disk;
use crate::world::World;

const JOB: JobId = JobId([7; 16]);
const SEGMENT_BYTES: usize = 24;

/// Why a step failed.
#[derive(Clone, Debug)]
struct Trouble {
    kind: Kind,
    why: String,
    other: Option<Failure>,
}

impl std::fmt::Display for Trouble {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.why)
    }
}

impl From<standfast_comm::Error> for Trouble {
    fn from(error: standfast_comm::Error) -> Self {
        Self { kind: error.kind(), why: error.to_string(), other: None }
    }
}

impl From<standfast_checkpoint::Error> for Trouble {
    fn from(error: standfast_checkpoint::Error) -> Self {
        Self { kind: error.kind(), why: error.to_string(), other: None }
    }
}

impl From<standfast_store::Error> for Trouble {
    fn from(error: standfast_store::Error) -> Self {
        standfast_checkpoint::Error::from(error).into()
    }
}

impl From<Unreadable> for Trouble {
    fn from(error: Unreadable) -> Self {
        Self { kind: error.kind(), why: error.to_string(), other: None }
    }
}

impl Fault for Trouble {
    fn kind(&self) -> Kind {
        self.kind
    }

    fn of_other(failure: Failure) -> Self {
        Self { kind: failure.kind(), why: failure.why.clone(), other: Some(failure) }
    }

    fn other(&self) -> Option<Failure> {
        self.other.clone()
    }
}

type Result<T> = std::result::Result<T, Trouble>;

/// One run.
struct Setting {
    world: Arc<World>,
    disk: Arc<Disk>,
    ranks: usize,
    keep: u32,
    /// Whether an agent commits for all ranks.
    by_agent: bool,
    /// The sequence of the newest checkpoint that somebody was told of.
    acked: Mutex<u64>,
}

pub(super) fn run(world: &Arc<World>) {
    let mut chance = world.chance("commit");
    let setting = Arc::new(Setting {
        world: Arc::clone(world),
        disk: Disk::new(world, "n0"),
        ranks: 1 + chance.below(3) as usize,
        keep: 1 + chance.below(3) as u32,
        by_agent: chance.one_in(4),
        acked: Mutex::new(0),
    });
    let header = StoreHeader { id: JOB, job: "sim".into(), key: [0; 32], created_ns: 0 };
    let maker = Life::begin(world, "maker".into(), Rates::default(), None);
    let made = complete_header(&*setting.disk.store(&maker), &header);
    if let Err(error) = made {
        world.wrong(format!("no store: {error}"));
    }
    let lives = 1 + chance.below(3);
    for life in 0..lives {
        let checkpoints = 1 + chance.below(4);
        live(&setting, &mut chance, life, checkpoints);
        if world.has(Planted::ImageUnsynced) || chance.one_in(4) {
            world.trace(|| "the power goes".into());
            setting.disk.cut_power(&mut chance);
        }
    }
    world.calm_down();
    let reader = Life::begin(world, "reader".into(), Rates::default(), None);
    setting.check(&*setting.disk.store(&reader));
    live(&setting, &mut chance, lives, 1);
    setting.check(&*setting.disk.store(&reader));
}

fn live(setting: &Arc<Setting>, chance: &mut Chance, life: u64, checkpoints: u64) {
    let size = if setting.by_agent { 1 } else { setting.ranks };
    let net = Net::new(&setting.world, size, chance.number());
    let rates = Rates::draw(chance);
    let mut lives = Vec::new();
    let mut programs: Vec<Box<dyn FnOnce()>> = Vec::new();
    for rank in 0..size {
        let name = format!("rank {rank} of life {life}");
        let own = Life::begin(&setting.world, name, rates, Some((Arc::clone(&net), rank)));
        lives.push(Arc::clone(&own));
        let (setting, net) = (Arc::clone(setting), Arc::clone(&net));
        programs.push(Box::new(move || {
            let team = Collective::new(Box::new(net.comm(rank)));
            let member = Member { life: &own, setting: &setting, team: &team, rank };
            if let Err(stop) = member.run(life, checkpoints) {
                setting.world.trace(|| format!("{}: {stop}", own.name));
                if setting.world.is_calm() {
                    setting.world.wrong(format!("nothing fails, and yet: {stop}"));
                }
            }
            own.end();
        }));
    }
    fibers::run(&setting.world, chance, programs);
    lives.iter().for_each(|life| life.end());
}

impl Setting {
    fn acked(&self) -> u64 {
        *self.acked.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// All that is offered is whole, and what was promised is offered.
    fn check(&self, store: &dyn Store) {
        let inventory = match Inventory::read(store) {
            Ok(inventory) => inventory,
            Err(error) => return self.world.wrong(format!("no inventory: {error}")),
        };
        let newest = inventory.checkpoints.first().map_or(0, |newest| newest.sequence);
        let acked = self.acked();
        if newest < acked {
            self.world.wrong(format!("commit {acked} was promised, {newest} is the newest"));
        }
        for damaged in &inventory.damaged {
            self.world.wrong(format!("{} is damaged: {}", damaged.object, damaged.error));
        }
        for manifest in &inventory.checkpoints {
            if let Err(why) = is_whole(store, manifest) {
                let version = manifest.version;
                self.world.wrong(format!("checkpoint {version} is not whole: {why}"));
            }
        }
    }
}

fn is_whole(store: &dyn Store, manifest: &Manifest) -> Result<()> {
    for rank in 0..manifest.ranks {
        let image = read_image(store, manifest, Rank(rank))?;
        for segment in &image.segments {
            let bytes = store.get(&name::segment(segment.id), SEGMENT_BYTES as u64)?;
            if bytes != segment_bytes(segment.id) {
                let why = "a segment has other bytes".into();
                return Err(Trouble { kind: Kind::Corrupt, why, other: None });
            }
        }
    }
    Ok(())
}

fn segment_bytes(id: SegmentId) -> Vec<u8> {
    id.0.iter().chain(&id.0[..8]).copied().collect()
}

/// One rank, or the agent, in one life.
struct Member<'a> {
    setting: &'a Setting,
    life: &'a Arc<Life>,
    team: &'a Collective,
    rank: usize,
}

impl Member<'_> {
    fn run(&self, life: u64, checkpoints: u64) -> std::result::Result<(), Stop<Trouble>> {
        let store = self.setting.disk.store(self.life);
        let mut inventory = self.open(&*store)?;
        let mut known: Option<SegmentRef> = None;
        for number in 1..=checkpoints {
            let sequence = inventory.checkpoints.first().map_or(0, |newest| newest.sequence) + 1;
            let id = mix(&[self.setting.world.seed, life, number]).to_le_bytes();
            let order = Order {
                version: Version(sequence),
                attempt: AttemptId(id),
                taken_ns: sequence,
                sequence,
                abandons: None,
            };
            let outcome = self.checkpoint(&store, order, &mut known, &mut inventory);
            if let Err(trouble) = &outcome {
                let world = &self.setting.world;
                world.trace(|| format!("{}: no {sequence}: {trouble}", self.life.name));
                known = None;
            } else if self.life.is_alive() {
                self.promise(sequence);
            }
            // As a job does: all go on, or none does.
            self.team.agree(Step("next"), outcome.map(drop))?;
        }
        Ok(())
    }

    fn promise(&self, sequence: u64) {
        self.setting.world.trace(|| format!("{}: {sequence} is durable", self.life.name));
        let mut acked = self.setting.acked.lock().unwrap_or_else(PoisonError::into_inner);
        *acked = sequence.max(*acked);
        self.setting.disk.commit(&name::manifest(Version(sequence), Level::Local));
    }

    /// The first rank looks and cleans, the others hear of it.
    fn open(&self, store: &dyn Store) -> std::result::Result<Inventory, Stop<Trouble>> {
        let header = StoreHeader { id: JOB, job: "sim".into(), key: [0; 32], created_ns: 0 };
        let mut inventory = Inventory { header, checkpoints: Vec::new(), damaged: Vec::new() };
        let mut own = None;
        let told = self.team.tell(Step("open"), || {
            let found = Inventory::read(store)?;
            // A manifest that cannot be read now is no reason to go on without it.
            if let Some(damaged) = found.damaged.first() {
                let why = format!("{}: {}", damaged.object, damaged.error);
                return Err(Trouble { kind: damaged.error.kind(), why, other: None });
            }
            let keep = prune::Keep { drop_pledges: true, ..prune::Keep::default() };
            let blind = self.seen_by_prune(&found);
            let plan = prune::plan(blind.as_ref().unwrap_or(&found), &store.list("")?, &keep);
            prune::execute(store, &plan)?;
            let holdings = Holdings::of(&found);
            own = Some(found);
            Ok::<_, Trouble>(holdings)
        })?;
        match own {
            Some(own) => Ok(own),
            None => {
                told.into_inner().take_in(&mut inventory);
                Ok(inventory)
            }
        }
    }

    /// With the planted bug, an inventory without the newest checkpoint.
    fn seen_by_prune(&self, found: &Inventory) -> Option<Inventory> {
        self.setting.world.has(Planted::PruneBlind).then(|| {
            let mut blind = inventory_of(found);
            if !blind.checkpoints.is_empty() {
                blind.checkpoints.remove(0);
            }
            blind
        })
    }

    fn publisher(&self, store: &Arc<dyn Store>) -> Publisher {
        Publisher {
            store: Arc::clone(store),
            job: JOB,
            hash: HashKind::Xxh3,
            page_bytes: 1024,
            keep: self.setting.keep,
            node: "n0".into(),
            every: 0,
        }
    }

    fn checkpoint(
        &self,
        store: &Arc<dyn Store>,
        order: Order,
        known: &mut Option<SegmentRef>,
        inventory: &mut Inventory,
    ) -> Result<Aftermath> {
        let by_agent = self.setting.by_agent;
        let own = if by_agent { 0..self.setting.ranks } else { self.rank..self.rank + 1 };
        let mut begun = Ok(());
        let (mut described, mut segments) = (Vec::new(), Vec::new());
        for rank in own {
            let segment = reference(order, rank);
            let table = known.filter(|_| !by_agent).into_iter().chain([segment]).collect();
            described.push(describe(order, rank, table));
            segments.push(segment);
            if let Err(error) = seal(&**store, segment.id) {
                begun = Err(error);
                break;
            }
        }
        let newest = segments.last().copied();
        let role = match by_agent {
            true => Role::Agent,
            false => {
                let (first, leads) = (self.team.is_first(), self.team.is_first());
                Role::Rank { first, leads, one_store: true, pledged: false }
            }
        };
        let same = |other: &Manifest| other.version == order.version;
        let replaced = inventory.checkpoints.iter().any(same);
        let mut steps = MemberSteps {
            member: self,
            publisher: self.publisher(store),
            order,
            own: segments.iter().map(|segment| segment.id).collect(),
            described,
            part: Part { segments, places: Vec::new() },
            entries: Vec::new(),
            replaced,
            inventory,
        };
        let published = drive(role, begun, &mut steps)?;
        *known = newest.filter(|segment| !published.removed.contains(&segment.id));
        Ok(published)
    }
}

/// The same inventory once more.
fn inventory_of(other: &Inventory) -> Inventory {
    Inventory {
        header: other.header.clone(),
        checkpoints: other.checkpoints.clone(),
        damaged: Vec::new(),
    }
}

fn reference(order: Order, rank: usize) -> SegmentRef {
    let mut id = [0; 16];
    id[..8].copy_from_slice(&order.attempt.0);
    id[8..].copy_from_slice(&(rank as u64).to_le_bytes());
    SegmentRef {
        id: SegmentId(id),
        rank: Rank(rank as u32),
        slots: 1,
        file_bytes: SEGMENT_BYTES as u64,
        index: Digest([0; 32]),
    }
}

fn seal(store: &dyn Store, id: SegmentId) -> Result<()> {
    let mut writer = store.create(&name::segment(id), None)?;
    writer.append(&segment_bytes(id))?;
    writer.seal()?;
    Ok(())
}

fn describe(order: Order, rank: usize, segments: Vec<SegmentRef>) -> Described {
    let image = Image {
        job: JOB,
        version: order.version,
        rank: Rank(rank as u32),
        page_bytes: 1024,
        hash: HashKind::Xxh3,
        segments,
        regions: Vec::new(),
        references: None,
    };
    let (stats, writes) = (Stats::default(), Writes::of(Rank(rank as u32)));
    Described { image, streams: Vec::new(), stats, writes, started: Stopwatch::start() }
}

struct MemberSteps<'a> {
    member: &'a Member<'a>,
    publisher: Publisher,
    order: Order,
    own: Vec<SegmentId>,
    described: Vec<Described>,
    part: Part,
    entries: Vec<Entry>,
    replaced: bool,
    inventory: &'a mut Inventory,
}

impl Steps for MemberSteps<'_> {
    type Error = Trouble;

    fn store_images(&mut self) -> Result<()> {
        let moved = self.part.moved();
        for mut described in std::mem::take(&mut self.described) {
            described.place(&moved, |_| true)?;
            self.entries.push(self.publisher.write_image(self.order, described)?);
        }
        Ok(())
    }

    fn write_manifest(&mut self) -> Verdict<Trouble> {
        let (entries, ranks) = (std::mem::take(&mut self.entries), self.member.setting.ranks);
        let written =
            self.publisher.write_manifest(self.order, ranks as u32, entries, self.inventory);
        written.map_err(Trouble::from)
    }

    fn prune(&mut self) -> Aftermath {
        match self.member.seen_by_prune(self.inventory) {
            Some(mut blind) => self.publisher.prune(self.replaced, &mut blind),
            None => self.publisher.prune(self.replaced, self.inventory),
        }
    }

    fn remove(&mut self, files: Files) -> bool {
        let ranks: BTreeSet<Rank> = match self.member.setting.by_agent {
            true => (0..self.member.setting.ranks as u32).map(Rank).collect(),
            false => BTreeSet::from([Rank(self.member.rank as u32)]),
        };
        if files == Files::Data {
            self.publisher.discard(self.order, ranks.into_iter(), self.own.iter().copied());
        }
        true
    }

    fn talk(&mut self, talk: Talk<Trouble>) -> Happened<Trouble> {
        match talk {
            Talk::Parts(own) => self.tell_parts(own),
            Talk::Images(own) => self.tell_images(own),
            Talk::Verdict(own) => self.tell_verdict(own),
            Talk::Spread => Happened::Spread(Vec::new()),
            Talk::Prune => Happened::Pruned(Aftermath::default()),
        }
    }
}

impl MemberSteps<'_> {
    fn tell_parts(&mut self, own: Result<()>) -> Happened<Trouble> {
        let own = own.map(|()| std::mem::take(&mut self.part));
        match self.member.team.gather(Step("segments"), own) {
            Ok(all) => {
                self.part = Part::join(all.into_inner());
                Happened::Told(Ok(()))
            }
            Err(stop @ Stop::Lost(_)) => Happened::Lost(stop.into_error()),
            Err(stop) => Happened::Told(Err(stop.into_error())),
        }
    }

    fn tell_images(&mut self, own: Result<()>) -> Happened<Trouble> {
        let early = self.member.setting.world.has(Planted::ManifestEarly);
        let own = match early {
            true => Ok(std::mem::take(&mut self.entries)),
            false => own.map(|()| std::mem::take(&mut self.entries)),
        };
        let all = match self.member.team.gather_first(Step("images"), own) {
            Ok(all) => all.into_iter().flatten().collect::<Result<Vec<_>>>(),
            Err(stop) => return Happened::Lost(stop.into_error()),
        };
        Happened::Images(all.map(|all| {
            self.entries = all.concat();
            self.entries.sort_by_key(|entry| entry.image.rank);
        }))
    }

    fn tell_verdict(&mut self, own: Option<Verdict<Trouble>>) -> Happened<Trouble> {
        let told = self.member.team.tell(Step("manifest"), || {
            let nobody = Trouble { kind: Kind::Bug, why: "nobody".into(), other: None };
            let own = own.clone().unwrap_or(Verdict::InDoubt(nobody));
            let verdict = own.map_err(|error| Failure::of(0, &error));
            Ok::<(Verdict<Failure>, Holdings), Trouble>((verdict, Holdings::of(self.inventory)))
        });
        match (told, own) {
            (Ok(_), Some(own)) => Happened::Heard(own),
            (Ok(told), None) => {
                let (verdict, holdings) = told.into_inner();
                holdings.take_in(self.inventory);
                Happened::Heard(verdict.map_err(Trouble::of_other))
            }
            (Err(stop), _) => Happened::Lost(stop.into_error()),
        }
    }
}
