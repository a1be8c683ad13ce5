//! References as (hash, owner): what images of top-K jobs say of pages that other ranks store, against
//! the memory of all ranks.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::atomic::AtomicBool;
use std::thread::JoinHandle;
use std::time::Duration;

use standfast::config::Loaded;
use standfast::{Image, Job, Kind, Level, Manifest, Rank, Version};
use standfast_agent::{Daemon, Place};
use standfast_comm::Comm;
use standfast_drain::policy::Policy;
use standfast_drain::{Drain, Encoding, Flow, Progress, Until};
use standfast_format::{StoreHeader, name};
use standfast_reduce::PageHasher;
use standfast_restart::{Inventory, read_image};
use standfast_store::{DirStore, Options};
use standfast_testkit::run_threads;

const PAGE: usize = 4096;
const PAGE_WORDS: usize = PAGE / 8;
/// The last page is cut short.
const WORDS: usize = 60 * PAGE_WORDS - 7;

/// Of five pages one is the same on all ranks and changes with the step, one is a rank's own, one is
/// the same everywhere and for ever, one is zero, and one is so until most ranks leave it.
fn word(rank: usize, step: u64, at: usize) -> u64 {
    let (rank, step) = match (at / PAGE_WORDS) % 5 {
        0 => (0, step),
        1 => (1 + rank as u64, 0),
        2 => (0, 0),
        3 => return 0,
        _ if step > 1 && !(rank + at / PAGE_WORDS).is_multiple_of(3) => (1 + rank as u64, step),
        _ => (0, 1),
    };
    ((at as u64) << 32 | rank << 16 | step).wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1
}

fn contents(rank: usize, step: u64) -> Vec<u64> {
    (0..WORDS).map(|at| word(rank, step, at)).collect()
}

/// The pages of a rank's memory, the last one filled up.
fn pages(rank: usize, step: u64) -> Vec<Vec<u8>> {
    let bytes: Vec<u8> = contents(rank, step).iter().flat_map(|word| word.to_ne_bytes()).collect();
    let whole = |page: &[u8]| [page, &vec![0; PAGE - page.len()]].concat();
    bytes.chunks(PAGE).map(whole).collect()
}

/// A job on nodes, which may have agents.
struct World {
    dir: tempfile::TempDir,
    node_of: Vec<usize>,
    /// Whether each node has a store of its own.
    apart: bool,
    agents: Vec<(Place, JoinHandle<()>)>,
    settings: Vec<(&'static str, String)>,
}

impl World {
    fn new(node_of: &[usize], apart: bool) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let settings = vec![("lab.strategy", "topk".into()), ("keep", "all".into())];
        Self { dir, node_of: node_of.to_vec(), apart, agents: Vec::new(), settings }
    }

    fn with(mut self, name: &'static str, text: impl Into<String>) -> Self {
        self.settings.push((name, text.into()));
        self
    }

    fn with_agents(mut self) -> Self {
        let agent = self.dir.path().join("agent");
        for node in 0..=*self.node_of.iter().max().unwrap() {
            let place = PathBuf::from(format!("{}-n{node}", agent.display()));
            let place = Place::open(Some(&place)).unwrap();
            let daemon = Daemon::bind(&place, Duration::from_secs(600)).unwrap().unwrap();
            self.agents.push((place, std::thread::spawn(move || daemon.run())));
        }
        self.with("lab.write", "wag-dbi")
            .with("lab.agent_dir", agent.to_str().unwrap())
            .with("lab.agent_command", "/no/such/command")
    }

    fn ranks(&self) -> usize {
        self.node_of.len()
    }

    /// The directory of a node's store.
    fn store(&self, node: usize) -> PathBuf {
        let store = self.dir.path().join("store");
        if self.apart { store.join(format!("n{node}/job")) } else { store.join("job") }
    }

    fn open(&self, comm: &dyn Comm) -> Job {
        let store = self.dir.path().join(if self.apart { "store/{node}" } else { "store" });
        let node = format!("n{}", self.node_of[comm.rank()]);
        let base = [("store", store.to_str().unwrap()), ("lab.node", &node), ("lab.page", "4KiB")];
        let own = |(name, text): (&str, &str)| (name.to_owned(), text.to_owned());
        let more = self.settings.iter().map(|(name, text)| (*name, text.as_str()));
        let settings = standfast_testkit::last_of_each(base.into_iter().chain(more).map(own));
        Job::open_comm(Loaded::load(&settings).unwrap(), comm).unwrap()
    }

    /// Restarts from the newest checkpoint, if there is one, and takes these; the images of all
    /// ranks, step by step.
    fn run(&self, steps: std::ops::RangeInclusive<u64>) -> Vec<Vec<Image>> {
        let by_rank = run_threads(self.ranks(), |comm| {
            let (job, rank) = (self.open(&comm), comm.rank());
            let field = job.alloc::<u64>("field", WORDS).unwrap();
            if *steps.start() > 1 {
                let before = steps.start() - 1;
                assert_eq!(job.restart().unwrap().unwrap().version, Version(before));
                assert!(field.read()[..] == contents(rank, before)[..], "rank {rank}: wrong data");
            }
            let images = steps.clone().map(|step| {
                field.write().copy_from_slice(&contents(rank, step));
                job.checkpoint(Some(Version(step))).unwrap();
                job.wait(Version(step), Level::Local).unwrap();
                job.image(Version(step)).unwrap()
            });
            images.collect::<Vec<Image>>()
        });
        let of_step = |at: usize| by_rank.iter().map(|images| images[at].clone()).collect();
        (0..by_rank[0].len()).map(of_step).collect()
    }

    fn hasher(&self) -> PageHasher {
        let header = std::fs::read(self.store(0).join(name::STORE)).unwrap();
        PageHasher::new(
            standfast_format::HashKind::Xxh3,
            &StoreHeader::decode(&header).unwrap().key,
        )
    }
}

impl Drop for World {
    fn drop(&mut self) {
        for (place, agent) in self.agents.drain(..) {
            let _ = standfast_agent::stop(&place, true);
            let _ = agent.join();
        }
    }
}

/// The references of an image: hash and owner by page.
fn references(image: &Image) -> HashMap<u64, (Vec<u8>, Rank)> {
    let mut all = HashMap::new();
    for reference in image.references.as_ref().expect("top-K writes them") {
        assert_eq!(image.regions[reference.region as usize].name, "field");
        let hashes = reference.hashes.chunks_exact(image.hash.bytes());
        for (page, hash) in (reference.page..).zip(hashes) {
            assert!(all.insert(page, (hash.to_vec(), reference.owner)).is_none());
        }
    }
    all
}

/// Compares what the images of a step say with the memory of all ranks. A page that nobody had
/// before belongs to the one rank that has it and does not refer to it; from then on it is that rank's.
fn check(hasher: &PageHasher, images: &[Image], step: u64, owner_of: &mut HashMap<Vec<u8>, Rank>) {
    let listed: Vec<_> = images.iter().map(references).collect();
    let memory: Vec<_> = (0..images.len()).map(|rank| pages(rank, step)).collect();
    let zero = vec![0; PAGE];
    let everywhere = || {
        let of_rank = |rank: usize| memory[rank].iter().enumerate().map(move |page| (rank, page));
        (0..memory.len()).flat_map(of_rank).filter(|(_, (_, bytes))| **bytes != zero)
    };
    let mut stored: HashMap<&Vec<u8>, Rank> = HashMap::new();
    for (rank, (page, bytes)) in everywhere() {
        if !owner_of.contains_key(bytes) && !listed[rank].contains_key(&(page as u64)) {
            let other = stored.insert(bytes, Rank(rank as u32));
            assert_eq!(other, None, "step {step}, rank {rank}, page {page}: two ranks store it");
        }
    }
    owner_of.extend(stored.into_iter().map(|(bytes, rank)| (bytes.clone(), rank)));
    let mut expected: Vec<HashMap<u64, (Vec<u8>, Rank)>> = vec![HashMap::new(); images.len()];
    for (rank, (page, bytes)) in everywhere() {
        let owner = *owner_of.get(bytes).expect("one rank stores it");
        if owner.0 as usize != rank {
            let mut hash = vec![0; 16];
            hasher.hash(bytes, &mut hash);
            expected[rank].insert(page as u64, (hash, owner));
        }
    }
    assert!(expected.iter().any(|list| !list.is_empty()), "ranks have pages in common");
    for (rank, (listed, expected)) in listed.iter().zip(&expected).enumerate() {
        let other = (0..60).find(|page| listed.get(page) != expected.get(page));
        assert_eq!(other, None, "step {step}, rank {rank}: this page");
    }
}

/// Three checkpoints, a restart, two more.
fn life(world: &World) {
    let mut owner_of = HashMap::new();
    for steps in [1..=3, 4..=5] {
        let first = *steps.start();
        for (images, step) in world.run(steps).iter().zip(first..) {
            check(&world.hasher(), images, step, &mut owner_of);
        }
    }
    world.run(6..=6);
}

#[test]
fn references_are_those_of_the_memory_of_all_ranks() {
    for size in [2, 3, 5] {
        life(&World::new(&vec![0; size], false));
    }
    life(&World::new(&[0; 7], false).with("capture", "cow").with("lab.segment", "128KiB"));
}

#[test]
fn owners_are_ranks_also_where_an_agent_writes_for_all_of_them() {
    life(&World::new(&[0; 5], false).with_agents());
    life(&World::new(&[0, 0, 1, 1, 0], true).with_agents());
    life(&World::new(&[0, 1, 1], true));
}

#[test]
fn the_exact_strategy_writes_none() {
    let world = World::new(&[0; 3], false).with("lab.strategy", "exact");
    let images = world.run(1..=1).concat();
    assert!(images.iter().all(|image| image.references.is_none()));
    // Another strategy goes on with what it left.
    let world = world.with("lab.strategy", "topk");
    let images = &world.run(2..=2)[0];
    for image in images {
        // As it is told by the segments that the runs lead to: each is of one rank.
        let told = image.referred().map(|piece| {
            let standfast_format::Run::Stored { segment, .. } = piece.run else { panic!("zeros") };
            (piece.reference.owner, image.segments[segment as usize].rank)
        });
        let told: Vec<_> = told.collect();
        assert!(!told.is_empty() && told.iter().all(|(owner, writer)| owner == writer));
    }
}

#[test]
fn references_reach_global_storage_and_come_back_from_there() {
    let world = World::new(&[0, 0, 1, 1], true);
    let global = world.dir.path().join("global");
    let world = world.with("global", global.to_str().unwrap());
    let local = world.run(1..=1).remove(0);
    let far = DirStore::open(global.join("job"), &Options::default()).unwrap();
    for node in 0..2 {
        let near = DirStore::open(world.store(node), &Options::default()).unwrap();
        let (stop, progress) = (AtomicBool::new(false), Progress::default());
        let flow = Flow::new(&near, &stop, &progress);
        let codec = "zstd:3".parse().unwrap();
        let encoding = Encoding { codec, threads: 2 };
        let until = Until { policy: Policy::Newest, follow: false, tries: 0 };
        let drain = Drain::open(&near, &far, encoding).unwrap();
        drain.run(&until, &flow, &mut |_| {}).unwrap();
    }
    let manifest = Inventory::read(&far).unwrap().checkpoints.remove(0);
    for (rank, near) in (0..).zip(&local) {
        let image = read_image(&far, &manifest, Rank(rank)).unwrap();
        assert_eq!(image.references, near.references);
        assert_ne!(image.segments, near.segments, "compressed anew");
    }
    for node in 0..2 {
        std::fs::remove_dir_all(world.store(node)).unwrap();
    }
    // What follows leans on nothing that no node has.
    let images = world.run(2..=2).remove(0);
    check(&world.hasher(), &images, 2, &mut HashMap::new());
}

/// Writes an image anew, and the manifest so that it names that one.
fn forge(world: &World, rank: u32, forge: impl FnOnce(&mut Image)) {
    let path = world.store(0).join(name::manifest(Version(1), Level::Local));
    let mut manifest = Manifest::decode(&std::fs::read(&path).unwrap()).unwrap();
    let object = world.store(0).join(name::image(Version(1), manifest.attempt, Rank(rank)));
    let (mut image, _) = Image::decode(&std::fs::read(&object).unwrap()).unwrap();
    forge(&mut image);
    let (bytes, digest) = image.encode();
    let named = manifest.images.iter_mut().find(|image| image.rank == Rank(rank)).unwrap();
    (named.file_bytes, named.digest) = (bytes.len() as u64, digest);
    std::fs::write(object, bytes).unwrap();
    std::fs::write(path, manifest.encode()).unwrap();
}

#[test]
fn a_reference_to_another_hash_is_refused_and_nothing_is_restored() {
    let world = World::new(&[0; 3], false);
    let images = world.run(1..=1).remove(0);
    let at = images.iter().position(|image| !image.references.as_ref().unwrap().is_empty());
    let (rank, image) = (at.unwrap() as u32, &images[at.unwrap()]);
    let last = image.references.as_ref().unwrap().last().unwrap();
    let page = last.page + last.pages(image.hash) - 1;
    forge(&world, rank, |image| {
        let last = image.references.as_mut().unwrap().last_mut().unwrap();
        *last.hashes.last_mut().unwrap() ^= 1;
    });
    let named = format!("image of rank {rank} of checkpoint 1, region \"field\", page {page}: ");
    run_threads(3, |comm| {
        let job = world.open(&comm);
        let field = job.alloc::<u64>("field", WORDS).unwrap();
        field.write().fill(7);
        let error = job.restart_from(Version(1)).unwrap_err();
        assert_eq!(error.kind(), Kind::Corrupt, "{error}");
        assert!(error.to_string().contains(&named), "{error}");
        assert!(field.read().iter().all(|word| *word == 7), "not a byte of it");
        let mut bytes = vec![7; 8 * WORDS];
        let error = job.read_region_of(Version(1), Rank(rank), "field", &mut bytes).unwrap_err();
        assert!(error.kind() == Kind::Corrupt && error.to_string().contains(&named), "{error}");
        assert!(bytes.iter().all(|byte| *byte == 7), "not a byte of it");
    });
}

/// A run that leads elsewhere, with a digest over the hashes that are found there: only the
/// reference knows better.
#[test]
fn a_run_to_another_page_is_found_although_the_digest_of_the_region_fits() {
    let world = World::new(&[0; 3], false);
    let images = world.run(1..=1).remove(0);
    let hasher = world.hasher();
    let several = |image: &&Image| image.references.as_ref().unwrap().len() > 1;
    let rank = images.iter().find(several).expect("owners take turns").rank;
    forge(&world, rank.0, |image| {
        // Two pages that others store change places.
        let listed: Vec<(u64, standfast_format::Run)> =
            image.referred().map(|piece| (piece.page, piece.run.part(0, 1))).collect();
        let ((first, one), (second, other)) = (listed[0], listed[listed.len() - 1]);
        let field = &mut image.regions[0];
        let mut runs = Vec::new();
        for run in &field.runs {
            runs.extend((0..run.pages()).map(|at| run.part(at, 1)));
        }
        (runs[first as usize], runs[second as usize]) = (other, one);
        field.runs = runs;
        let mut memory = pages(rank.0 as usize, 1);
        memory.swap(first as usize, second as usize);
        let mut hashes = vec![0; 16 * memory.len()];
        for (page, hash) in memory.iter().zip(hashes.chunks_exact_mut(16)) {
            hasher.hash(page, hash);
        }
        field.pages_digest = standfast_format::Digest::of(&hashes);
    });
    run_threads(3, |comm| {
        let job = world.open(&comm);
        let field = job.alloc::<u64>("field", WORDS).unwrap();
        field.write().fill(7);
        let error = job.restart_from(Version(1)).unwrap_err();
        assert!(error.to_string().contains("with another hash"), "{error}");
        assert!(field.read().iter().all(|word| *word == 7), "not a byte of it");
    });
}
