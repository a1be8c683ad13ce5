//! Checkpoints of a real job, drained: whole, resumed, self-contained, never broken.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use standfast::{Job, Kind, Level, Version};
use standfast_drain::policy::Policy;
use standfast_drain::{
    Carried, Drain, Encoding, Error, Event, Flow, Progress, Retention, Until, lack,
};
use standfast_format::name;
use standfast_restart::{Inventory, check_segment, read_drains};
use standfast_store::{DirStore, Lock, ObjectStore, Options, Store};
use tempfile::TempDir;

const WORDS: usize = 64 << 10;

/// A job whose state changes a little from checkpoint to checkpoint.
struct Program {
    dir: TempDir,
    state: Vec<u64>,
}

impl Program {
    fn new() -> Self {
        let state = (0..WORDS as u64).map(|at| at / 7).collect();
        Self { dir: TempDir::new().unwrap(), state }
    }

    fn store(&self) -> Arc<dyn Store> {
        Arc::new(open(&self.dir.path().join("job")))
    }

    /// Takes so many checkpoints, each with some pages of its own.
    fn run(&mut self, checkpoints: std::ops::RangeInclusive<u64>) {
        let job = job(self.dir.path());
        // SAFETY: the state outlives the job and is not touched while a checkpoint is taken.
        unsafe { job.protect("state", self.state.as_mut_ptr().cast(), 8 * WORDS, 8) }.unwrap();
        for version in checkpoints {
            let changed = version as usize * 4096;
            self.state[changed..changed + 2048].fill(version);
            job.checkpoint(Some(Version(version))).unwrap();
            job.wait(Version(version), Level::Local).unwrap();
        }
        job.close().unwrap();
    }
}

fn open(path: &Path) -> DirStore {
    DirStore::open(path, &Options::default()).unwrap()
}

fn job(dir: &Path) -> Job {
    let settings = [("store", dir.to_str().unwrap()), ("job", "job"), ("keep", "all")];
    Job::open(&settings).unwrap()
}

fn encoding(codec: &str) -> Encoding {
    Encoding { codec: codec.parse().unwrap(), threads: 2 }
}

/// Carries what is due.
fn drain(local: &dyn Store, global: &dyn Store, policy: Policy) -> Vec<Carried> {
    let (stop, progress) = (AtomicBool::new(false), Progress::default());
    let flow = Flow::new(local, &stop, &progress);
    let drain = Drain::open(local, global, encoding("zstd:3")).unwrap();
    let mut carried = Vec::new();
    let until = Until { policy, follow: false, tries: 0 };
    let mut tell = |event: Event<'_>| {
        if let Event::Arrived(one, _) = event {
            carried.push(one);
        }
    };
    drain.run(&until, &flow, &mut tell).unwrap();
    carried
}

/// Everything that a store offers is whole, page by page.
fn check(store: &dyn Store) -> Vec<u64> {
    let inventory = Inventory::read(store).unwrap();
    assert!(inventory.damaged.is_empty());
    for manifest in &inventory.checkpoints {
        for segment in &manifest.segments {
            let reader =
                standfast_write::SegmentReader::open(store, inventory.header.id, segment).unwrap();
            let done = Default::default();
            check_segment(&reader, &inventory.header, 1, &done, |error| panic!("{error}"));
        }
        for image in &manifest.images {
            standfast_restart::read_image(store, manifest, image.rank).unwrap();
        }
    }
    inventory.checkpoints.iter().map(|manifest| manifest.version.0).collect()
}

#[test]
fn the_newest_arrives_whole_and_another_machine_restarts_from_it() {
    let mut program = Program::new();
    program.run(1..=4);
    let elsewhere = TempDir::new().unwrap();
    let global = open(&elsewhere.path().join("job"));
    let carried = drain(&*program.store(), &global, Policy::Newest);
    assert_eq!(carried.len(), 1, "older ones are stale");
    assert!(carried[0].to_bytes < carried[0].from_bytes);
    assert_eq!(check(&global), [4]);

    let job = job(elsewhere.path());
    let mut state = vec![0u64; WORDS];
    // SAFETY: the state outlives the job and is not touched meanwhile.
    unsafe { job.protect("state", state.as_mut_ptr().cast(), 8 * WORDS, 8) }.unwrap();
    assert_eq!(job.restart().unwrap().unwrap().version, Version(4));
    assert!(state == program.state);
}

#[test]
fn the_local_store_is_told_what_arrived_and_a_damaged_record_harms_nobody() {
    let mut program = Program::new();
    program.run(1..=3);
    let (local, global) = (program.store(), ObjectStore::in_memory().unwrap());
    assert!(read_drains(&*local).is_none());
    let carried = drain(&*local, &global, Policy::Newest);
    let told = read_drains(&*local).unwrap();
    assert_eq!((told.count, told.last.len()), (1, 1));
    let arrival = told.last[0];
    assert_eq!((arrival.version, arrival.to_bytes), (Version(3), carried[0].to_bytes));
    assert!(arrival.elapsed_ns > 0 && arrival.arrived_ns > 0);
    assert!(read_drains(&global).is_none(), "it is told where the program is");

    program.run(4..=4);
    assert_eq!(read_drains(&*local).unwrap().count, 1, "a job leaves it alone");
    local.put(name::DRAINS, b"noise").unwrap();
    assert_eq!(drain(&*local, &global, Policy::Newest).len(), 1);
    assert_eq!(read_drains(&*local).unwrap().count, 1, "it begins anew");
    assert_eq!(check(&global), [4, 3]);
}

#[test]
fn the_end_of_a_job_is_known_from_global_storage_alone() {
    let mut program = Program::new();
    program.run(1..=2);
    let (local, place) = (program.store(), TempDir::new().unwrap());
    let global = open(&place.path().join("job"));
    assert_eq!(drain(&*local, &global, Policy::Newest).len(), 1);
    let ended = job(program.dir.path());
    // SAFETY: the state outlives the job.
    unsafe { ended.protect("state", program.state.as_mut_ptr().cast(), 8 * WORDS, 8) }.unwrap();
    ended.restart().unwrap();
    ended.finish().unwrap();
    assert!(drain(&*local, &global, Policy::Newest).is_empty(), "there is no other checkpoint");

    let (empty, far) = (TempDir::new().unwrap(), place.path().to_str().unwrap());
    let settings = [("store", empty.path().to_str().unwrap()), ("job", "job"), ("global", far)];
    let next = Job::open(&settings).unwrap();
    // SAFETY: as above.
    unsafe { next.protect("state", program.state.as_mut_ptr().cast(), 8 * WORDS, 8) }.unwrap();
    assert!(next.restart().unwrap().is_none(), "it has finished");
    next.restart_from(Version(2)).unwrap();
}

#[test]
fn object_stores_get_every_checkpoint_and_no_segment_twice() {
    let mut program = Program::new();
    program.run(1..=3);
    let local = program.store();
    let global = ObjectStore::in_memory().unwrap();
    let carried = drain(&*local, &global, Policy::Every(1));
    let versions: Vec<u64> = carried.iter().map(|one| one.version.0).collect();
    assert_eq!(versions, [3, 2, 1], "newest first");
    assert_eq!(check(&global), [3, 2, 1]);
    assert_eq!(carried[1].segments + carried[2].segments, 0, "the newest needs them all");
    assert_eq!(local.list("segments").unwrap().len(), global.list("segments").unwrap().len());
    for manifest in Inventory::read(&global).unwrap().checkpoints {
        assert_eq!(manifest.level, Level::Global);
        assert_eq!(lack(&manifest, std::slice::from_ref(&manifest)), 0);
    }
    assert!(drain(&*local, &global, Policy::Every(1)).is_empty());
}

#[test]
fn a_drain_that_died_is_taken_up_where_it_was() {
    let mut program = Program::new();
    program.run(1..=5);
    let local = program.store();
    let global = ObjectStore::in_memory().unwrap();
    drain(&*local, &global, Policy::Newest);
    let all = global.list("segments").unwrap();
    // As if it had died before the commit, in the middle of the last segment.
    global.remove(&name::manifest(Version(5), Level::Global)).unwrap();
    global.remove(&all[0].name).unwrap();
    assert!(check(&global).is_empty(), "nothing is offered that was not committed");
    let carried = drain(&*local, &global, Policy::Newest);
    assert_eq!(carried[0].segments, 1, "only what is missing is sent");
    assert_eq!(check(&global), [5]);
}

#[test]
fn damage_stays_where_it_is() {
    let mut program = Program::new();
    program.run(1..=1);
    let local = program.store();
    let segment = local.list("segments").unwrap().remove(0);
    let path = program.dir.path().join("job").join(&segment.name);
    let mut bytes = std::fs::read(&path).unwrap();
    bytes[5000] ^= 1;
    std::fs::write(&path, bytes).unwrap();
    let global = ObjectStore::in_memory().unwrap();
    let (stop, progress) = (AtomicBool::new(false), Progress::default());
    let drain = Drain::open(&*local, &global, encoding("lz4")).unwrap();
    let newest = drain.offered().unwrap().remove(0);
    let error = drain.carry(&newest, &Flow::new(&*local, &stop, &progress)).unwrap_err();
    assert_eq!(error.kind(), Kind::Corrupt, "{error}");
    assert!(global.list("segments").unwrap().is_empty());
    assert!(drain.arrived().unwrap().is_empty());
}

#[test]
fn a_damaged_checkpoint_is_passed_over_for_the_one_before() {
    let mut program = Program::new();
    program.run(1..=1);
    let before = program.store().list("segments").unwrap();
    program.run(2..=2);
    let local = program.store();
    let new = local.list("segments").unwrap();
    let new = new.iter().find(|segment| !before.contains(segment)).unwrap();
    let path = program.dir.path().join("job").join(&new.name);
    let mut bytes = std::fs::read(&path).unwrap();
    bytes[4100] ^= 1;
    std::fs::write(&path, bytes).unwrap();
    let global = ObjectStore::in_memory().unwrap();
    drain(&*local, &global, Policy::Newest);
    assert_eq!(check(&global), [1]);
}

#[test]
fn checkpoints_come_back_to_an_empty_local_store() {
    let mut program = Program::new();
    program.run(1..=3);
    let global = ObjectStore::in_memory().unwrap();
    drain(&*program.store(), &global, Policy::Every(1));
    let elsewhere = TempDir::new().unwrap();
    let local = open(&elsewhere.path().join("job"));
    let (stop, progress) = (AtomicBool::new(false), Progress::default());
    let flow = Flow::new(&local, &stop, &progress);
    let fetch = Drain::back(&global, &local, 2).unwrap();
    let newest = fetch.offered().unwrap().remove(0);
    fetch.carry(&newest, &flow).unwrap();
    drop(fetch);
    assert_eq!(check(&local), [3]);
    assert_eq!(Inventory::read(&local).unwrap().checkpoints[0].level, Level::Local);
    // The job goes on there, and what it stores refers to what was fetched.
    program.dir = elsewhere;
    program.run(4..=4);
    assert_eq!(check(&*program.store()), [4, 3]);
}

#[test]
fn one_drain_at_a_time_and_one_job_in_a_place() {
    let (mut one, mut two) = (Program::new(), Program::new());
    one.run(1..=1);
    two.run(1..=1);
    let global = ObjectStore::in_memory().unwrap();
    drain(&*one.store(), &global, Policy::Newest);
    let (local, other) = (one.store(), two.store());
    let refused = Drain::open(&*other, &global, encoding("none")).err().unwrap();
    assert!(matches!(refused, Error::OtherJob(_)), "{refused}");
    let _first = Drain::open(&*local, &global, encoding("none")).unwrap();
    let second = Drain::open(&*local, &global, encoding("none")).err().unwrap();
    assert_eq!(second.kind(), Kind::Busy);
}

#[test]
fn a_checkpoint_under_way_is_not_pruned_and_a_pruned_one_is_noticed() {
    let mut program = Program::new();
    program.run(1..=2);
    let local = program.store();
    let oldest = Inventory::read(&*local).unwrap().checkpoints.pop().unwrap();
    let held = local.lock(Lock::Keep(oldest.version.0)).unwrap();
    let prune = || {
        let inventory = Inventory::read(&*local).unwrap();
        let mut keep = standfast::prune::Keep { newest: 1, ..Default::default() };
        keep.versions = standfast::prune::kept_by_others(&*local, &inventory, &keep);
        let plan = standfast::prune::plan(&inventory, &local.list("").unwrap(), &keep);
        standfast::prune::execute(&*local, &plan).unwrap();
    };
    prune();
    assert_eq!(check(&*local), [2, 1]);
    drop(held);
    prune();
    assert_eq!(check(&*local), [2]);
    let global = ObjectStore::in_memory().unwrap();
    let (stop, progress) = (AtomicBool::new(false), Progress::default());
    let drain = Drain::open(&*local, &global, encoding("none")).unwrap();
    let gone = drain.carry(&oldest, &Flow::new(&*local, &stop, &progress)).unwrap_err();
    assert!(matches!(gone, Error::Gone(_)), "{gone}");
    assert_eq!(progress.sent.load(Ordering::Relaxed), 0);
}

#[test]
fn every_codec_brings_the_same_pages() {
    let mut program = Program::new();
    program.run(1..=2);
    let local = program.store();
    for codec in ["auto", "none", "lz4", "deflate:1", "zstd:9"] {
        let global = ObjectStore::in_memory().unwrap();
        let (stop, progress) = (AtomicBool::new(false), Progress::default());
        let flow = Flow::new(&*local, &stop, &progress);
        let drain = Drain::open(&*local, &global, encoding(codec)).unwrap();
        let newest = drain.offered().unwrap().remove(0);
        drain.carry(&newest, &flow).unwrap();
        assert_eq!(check(&global), [2], "{codec}");
    }
}

#[test]
fn global_storage_keeps_the_newest_and_one_of_so_many() {
    let mut program = Program::new();
    let global = ObjectStore::in_memory().unwrap();
    for version in 1..=7 {
        program.run(version..=version);
        let local = program.store();
        let (stop, progress) = (AtomicBool::new(false), Progress::default());
        let flow = Flow::new(&*local, &stop, &progress);
        let drain = Drain::open(&*local, &global, encoding("lz4")).unwrap();
        let drain = drain.keeping(Retention { newest: 2, every: 3 });
        let until = Until { policy: Policy::Newest, follow: false, tries: 0 };
        drain.run(&until, &flow, &mut |_| ()).unwrap();
    }
    assert_eq!(check(&global), [7, 6, 3]);
    let named: std::collections::HashSet<_> = Inventory::read(&global)
        .unwrap()
        .checkpoints
        .iter()
        .flat_map(|manifest| manifest.segments.iter().map(|segment| name::segment(segment.id)))
        .collect();
    assert_eq!(global.list("segments").unwrap().len(), named.len(), "nothing else stays");
}

#[test]
fn what_would_go_at_once_is_not_carried() {
    let mut program = Program::new();
    program.run(1..=3);
    let local = program.store();
    let global = ObjectStore::in_memory().unwrap();
    let (stop, progress) = (AtomicBool::new(false), Progress::default());
    let flow = Flow::new(&*local, &stop, &progress);
    let drain = Drain::open(&*local, &global, encoding("lz4")).unwrap();
    let drain = drain.keeping(Retention { newest: 1, every: 0 });
    let until = Until { policy: Policy::Every(1), follow: false, tries: 0 };
    let mut arrived = Vec::new();
    let mut tell = |event: Event<'_>| {
        if let Event::Arrived(one, _) = event {
            arrived.push(one.version.0);
            assert!(arrived.len() < 10, "the same ones again and again");
        }
    };
    drain.run(&until, &flow, &mut tell).unwrap();
    assert_eq!((arrived, check(&global)), (vec![3], vec![3]));
}

#[test]
fn a_target_that_was_pruned_meanwhile_gets_what_it_lost_again() {
    let mut program = Program::new();
    program.run(1..=2);
    let local = program.store();
    let global = ObjectStore::in_memory().unwrap();
    drain(&*local, &global, Policy::Every(1));
    // A prune without locks took the newest manifest and a segment that the other names.
    global.remove(&name::manifest(Version(2), Level::Global)).unwrap();
    let shared = Inventory::read(&global).unwrap().checkpoints[0].segments[0];
    global.remove(&name::segment(shared.id)).unwrap();
    assert_eq!(drain(&*local, &global, Policy::Newest)[0].segments, 1, "what is missing goes");
    assert_eq!(check(&global), [2, 1]);
}

/// A job of several small segments, whose second checkpoint is small and whose third is all new.
fn uneven(dir: &Path) -> Arc<dyn Store> {
    let settings = [
        ("store", dir.to_str().unwrap()),
        ("job", "job"),
        ("keep", "all"),
        ("codec", "none"),
        ("lab.block", "64KiB"),
        ("lab.segment", "64KiB"),
    ];
    let job = Job::open(&settings).unwrap();
    let mut state = vec![0u64; WORDS];
    let mut random = 1u64;
    let mut next = || {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        random
    };
    // SAFETY: the state outlives the job and is not touched while a checkpoint is taken.
    unsafe { job.protect("state", state.as_mut_ptr().cast(), 8 * WORDS, 8) }.unwrap();
    for (version, words) in [(1, WORDS), (2, 512), (3, WORDS)] {
        state[..words].iter_mut().for_each(|word| *word = next());
        job.checkpoint(Some(Version(version))).unwrap();
        job.wait(Version(version), Level::Local).unwrap();
        if version == 1 {
            let global = open(&dir.join("global"));
            drain(&open(&dir.join("job")), &global, Policy::Newest);
        }
    }
    job.close().unwrap();
    Arc::new(open(&dir.join("job")))
}

#[test]
fn when_time_is_short_one_that_will_be_late_gives_way_to_one_that_will_not() {
    let dir = TempDir::new().unwrap();
    let local = uneven(dir.path());
    let global = open(&dir.path().join("global"));
    let (stop, progress) = (AtomicBool::new(false), Progress::default());
    // The newest takes 9 s at this rate, the one before a tenth of one.
    let flow = Flow::new(&*local, &stop, &progress)
        .rate(Some(60_000))
        .deadline(Some(Instant::now() + Duration::from_secs(6)));
    let drain = Drain::open(&*local, &global, encoding("none")).unwrap();
    let until = Until { policy: Policy::Newest, follow: false, tries: 0 };
    let (mut arrived, mut late) = (Vec::new(), Vec::new());
    let ended = drain.run(&until, &flow, &mut |event| match event {
        Event::Arrived(carried, _) => arrived.push(carried.version.0),
        Event::PassedOver(version, Error::TooSlow(_)) => late.push(version.0),
        _ => {}
    });
    assert!(ended.is_ok(), "{ended:?}");
    assert_eq!((late, arrived), (vec![3], vec![2]));
    assert_eq!(check(&global), [2, 1]);
}
