//! The agent against clients that do not keep to the protocol, and its own end.

use std::io::Write;
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use standfast_checkpoint::Order;
use standfast_format::{
    AttemptId, HashKind, Image, JobId, Pledge, Rank, SegmentId, Stats, StoreHeader, Version, name,
};
use standfast_reduce::PageHasher;
use standfast_store::{DirStore, Lock, LockGuard, Options, Store};
use standfast_sys::trust::Trust;

use super::Daemon;
use crate::client::{Link, Member};
use crate::message::{
    Begin, Block, HandOver, Nonce, PROTOCOL, Packing, Reply, Request, StoreUse, Token,
};
use crate::place::Place;
use crate::wire::{self, Inbox, MESSAGE_BYTES_MAX};

const FLUSH_MAX: Duration = Duration::from_secs(60);

struct World {
    dir: tempfile::TempDir,
    place: Place,
    agent: Option<JoinHandle<()>>,
}

fn world() -> World {
    let dir = tempfile::tempdir().unwrap();
    let place = Place::open(Some(&dir.path().join("agent"))).unwrap();
    let daemon = Daemon::bind(&place, Duration::from_secs(600)).unwrap().unwrap();
    let agent = Some(std::thread::spawn(move || daemon.run()));
    World { dir, place, agent }
}

impl World {
    /// Waits until the agent has noticed that its clients are gone.
    fn wait_over(&self) {
        while !crate::status(&self.place).unwrap().sessions.is_empty() {
            std::thread::sleep(Duration::from_millis(1));
        }
    }
}

impl Drop for World {
    fn drop(&mut self) {
        crate::stop(&self.place, true).unwrap();
        self.agent.take().unwrap().join().unwrap();
    }
}

/// A client that says what it likes.
struct Client {
    stream: Arc<UnixStream>,
    inbox: Inbox,
    /// Of the session that it has joined.
    nonce: Nonce,
}

impl Client {
    fn new(place: &Place) -> Self {
        let stream = Arc::new(UnixStream::connect(place.socket()).unwrap());
        let inbox = Inbox::new(Arc::clone(&stream), MESSAGE_BYTES_MAX);
        Self { stream, inbox, nonce: Nonce([0; 16]) }
    }

    fn say(&mut self, request: &Request) {
        wire::send(&self.stream, request, None).unwrap();
    }

    fn hear(&mut self) -> Option<Reply> {
        loop {
            match self.inbox.receive().ok().flatten() {
                Some(Reply::Beat) => {}
                Some(joined @ Reply::Joined { nonce, .. }) => {
                    self.nonce = nonce;
                    return Some(joined);
                }
                reply => return reply,
            }
        }
    }

    /// Whether the agent refuses and hangs up.
    fn is_refused(&mut self) -> bool {
        matches!(self.hear(), Some(Reply::Refused(_))) && self.hear().is_none()
    }

    fn begin(place: &Place, begin: Begin, lock: &LockGuard) -> Self {
        let mut client = Self::new(place);
        client.say(&Request::Hello { protocol: PROTOCOL });
        assert!(matches!(client.hear(), Some(Reply::Welcome { .. })));
        let lock = lock.file().unwrap().as_fd();
        wire::send(&client.stream, &Request::Begin(Box::new(begin)), Some(lock)).unwrap();
        client
    }
}

fn store(dir: &Path) -> (DirStore, LockGuard) {
    let store = DirStore::open(dir.join("store"), &Options::default()).unwrap();
    let header = StoreHeader { id: JobId([4; 16]), job: "j".into(), key: [0; 32], created_ns: 0 };
    standfast_checkpoint::complete_header(&store, &header).unwrap();
    let lock = store.lock(Lock::Writer).unwrap();
    (store, lock)
}

fn wanted(dir: &Path) -> Begin {
    Begin {
        token: Token([1; 16]),
        node: "n0".into(),
        store: StoreUse {
            path: dir.join("store").to_str().unwrap().into(),
            job: JobId([4; 16]),
            io: "auto".into(),
            io_threads: 2,
            trust: Trust::default(),
        },
        ranks: vec![0],
        job_ranks: 1,
        packing: Packing {
            hash: HashKind::Xxh3,
            page_bytes: 4096,
            block_bytes: 16 << 10,
            pool_bytes: 1 << 20,
            threads: 1,
            codec: "none".into(),
            gpu: false,
            filter: "auto".into(),
        },
        keep: 0,
        keep_every: 0,
        global: None,
    }
}

const ORDER: Order = Order {
    version: Version(1),
    attempt: AttemptId([3; 8]),
    taken_ns: 0,
    sequence: 1,
    abandons: None,
};

fn block(nonce: Nonce, unit: u32, pages: u32) -> Request {
    let (stream, hashes) = (SegmentId([5; 16]), vec![0; pages.min(64) as usize * 16]);
    let block = Block { order: ORDER, stream, number: 0, unit, pages, elem: 0, hashes };
    Request::Blocks(nonce, vec![block])
}

#[test]
fn strange_bytes_and_requests_out_of_turn_end_the_conversation_only() {
    let world = world();
    let mut strange = Client::new(&world.place);
    (&*strange.stream).write_all(&[0xff; 64]).unwrap();
    assert!(strange.is_refused());
    let mut newer = Client::new(&world.place);
    newer.say(&Request::Hello { protocol: PROTOCOL + 1 });
    assert!(newer.is_refused());
    for request in [
        Request::Lease { count: 1 },
        Request::Return { units: vec![0] },
        block(Nonce([0; 16]), 0, 1),
        Request::Leave,
        Request::Join { token: Token([9; 16]), rank: 0 },
        Request::Begin(Box::new(wanted(world.dir.path()))),
    ] {
        let mut client = Client::new(&world.place);
        client.say(&request);
        assert!(client.is_refused(), "{request:?}");
    }
    assert!(crate::status(&world.place).unwrap().sessions.is_empty());
}

#[test]
fn wrong_sessions_are_refused() {
    let world = world();
    let (_store, lock) = store(world.dir.path());
    let good = || wanted(world.dir.path());
    let packed = |packing| Begin { packing, ..good() };
    let stored = |store| Begin { store, ..good() };
    for bad in [
        packed(Packing { page_bytes: 3000, ..good().packing }),
        packed(Packing { block_bytes: 5000, ..good().packing }),
        packed(Packing { block_bytes: 0, ..good().packing }),
        Begin { ranks: vec![], ..good() },
        Begin { ranks: vec![1], ..good() },
        Begin { ranks: vec![1, 0], job_ranks: 2, ..good() },
        Begin { ranks: vec![0, 0], job_ranks: 2, ..good() },
        Begin { job_ranks: u32::MAX, ..good() },
        packed(Packing { pool_bytes: u64::MAX, ..good().packing }),
        packed(Packing { codec: "zip".into(), ..good().packing }),
        packed(Packing { filter: "x".into(), ..good().packing }),
        stored(StoreUse { io: "x".into(), ..good().store }),
        stored(StoreUse { path: "relative".into(), ..good().store }),
        stored(StoreUse { path: "/dev/null/nowhere".into(), ..good().store }),
        stored(StoreUse { job: JobId([5; 16]), ..good().store }),
    ] {
        let what = format!("{bad:?}");
        assert!(Client::begin(&world.place, bad, &lock).is_refused(), "{what}");
    }
    let mut client = Client::begin(&world.place, good(), &lock);
    assert!(matches!(client.hear(), Some(Reply::Joined { units: 64, unit_bytes: 16384, .. })));
}

#[test]
fn a_flush_waits_for_a_session_whose_rank_dies_while_it_is_opened() {
    let world = world();
    for number in 0..20 {
        let (store, lock) = store(world.dir.path());
        let begin = Begin { token: Token([number; 16]), ..wanted(world.dir.path()) };
        // What it sent along is the only one that holds the lock.
        drop((Client::begin(&world.place, begin, &lock), lock));
        crate::flush(&world.place, &wanted(world.dir.path()).store.path, FLUSH_MAX).unwrap();
        drop(store.lock(Lock::Writer).unwrap());
    }
}

#[test]
fn hostile_units_and_images_harm_only_their_own_checkpoint() {
    let world = world();
    let (store, lock) = store(world.dir.path());
    // A unit of nobody's, one that does not exist, one with too many pages.
    for (unit, pages) in [(0, 1), (u32::MAX, 1), (0, u32::MAX)] {
        let mut client = Client::begin(&world.place, wanted(world.dir.path()), &lock);
        assert!(matches!(client.hear(), Some(Reply::Joined { .. })));
        if pages > 1 {
            client.say(&Request::Lease { count: 64 });
            let Some(Reply::Granted { units }) = client.hear() else { panic!("not granted") };
            assert!(units.contains(&0) && units.len() <= 16, "a share of the pool: {units:?}");
        }
        client.say(&block(client.nonce, unit, pages));
        let mut heard = client.hear();
        if matches!(heard, Some(Reply::Settled(_))) {
            heard = client.hear();
        }
        assert!(matches!(heard, Some(Reply::Refused(_))), "{heard:?}");
        drop(client);
        world.wait_over();
    }
    let mut client = Client::begin(&world.place, wanted(world.dir.path()), &lock);
    assert!(matches!(client.hear(), Some(Reply::Joined { .. })));
    let part = HandOver {
        order: ORDER,
        image: vec![7; 100],
        streams: vec![],
        stats: Stats::default(),
        elapsed_ns: u64::MAX,
    };
    client.say(&Request::HandOver(client.nonce, Box::new(part)));
    let Some(Reply::Settled(settled)) = client.hear() else { panic!("not settled") };
    assert!(settled.outcome.is_err() && settled.holdings.is_empty());
    client.say(&Request::Leave);
    assert!(matches!(client.hear(), Some(Reply::Left)));
    let left: Vec<String> = store.list("").unwrap().into_iter().map(|object| object.name).collect();
    assert_eq!(left, ["copies/header", "manifests/header", name::STORE]);
}

#[test]
fn a_node_that_is_not_alone_pledges_and_commits_nothing() {
    let world = world();
    let (store, lock) = store(world.dir.path());
    let begin = Begin { ranks: vec![3], job_ranks: 8, ..wanted(world.dir.path()) };
    let mut client = Client::begin(&world.place, begin, &lock);
    assert!(matches!(client.hear(), Some(Reply::Joined { .. })));
    let image = Image {
        job: JobId([4; 16]),
        version: ORDER.version,
        rank: Rank(3),
        page_bytes: 4096,
        hash: HashKind::Xxh3,
        segments: vec![],
        regions: vec![],
        references: None,
    };
    let part = HandOver {
        order: ORDER,
        image: image.encode().0,
        streams: vec![],
        stats: Stats::default(),
        elapsed_ns: 0,
    };
    client.say(&Request::HandOver(client.nonce, Box::new(part)));
    let Some(Reply::Settled(settled)) = client.hear() else { panic!("not settled") };
    assert!(settled.outcome.is_ok() && settled.pledged.is_some());
    assert!(!store.list(name::MANIFESTS).unwrap().iter().any(|one| one.name.ends_with(".local")));
    let object = name::pledge(ORDER.version, ORDER.attempt);
    let pledge = Pledge::decode(&store.get(&object, 1 << 20).unwrap()).unwrap();
    assert_eq!((pledge.ranks, pledge.parts.len(), pledge.parts[0].rank), (8, 1, Rank(3)));
}

#[test]
fn another_user_is_sent_away() {
    if !rustix::process::geteuid().is_root() {
        return standfast_testkit::must::leave_out("root", "only root can be somebody else");
    }
    let world = world();
    // Wider than any agent makes them, so that the peer's uid is all that is left to look at.
    for path in [world.dir.path(), world.place.dir(), &world.place.socket()] {
        std::fs::set_permissions(path, std::os::unix::fs::PermissionsExt::from_mode(0o777))
            .unwrap();
    }
    let heard = std::thread::scope(|scope| {
        let stranger = || {
            // SAFETY: the bare system call changes this thread alone, which ends right after.
            let became = unsafe { libc::syscall(libc::SYS_setresuid, 65534, 65534, 65534) };
            assert_eq!(became, 0);
            let mut client = Client::new(&world.place);
            // It may have hung up already.
            let _ = wire::send(&client.stream, &Request::Hello { protocol: PROTOCOL }, None);
            client.hear().is_some()
        };
        scope.spawn(stranger).join().unwrap()
    });
    assert!(!heard, "nothing is said to strangers");
    let told = log_lines(&world.place);
    assert!(told.iter().any(|line| line["event"] == "stranger" && line["uid"] == 65534));
    let permissions = std::os::unix::fs::PermissionsExt::from_mode(0o700);
    std::fs::set_permissions(world.place.dir(), permissions).unwrap();
}

/// The log: every line is an object with its time, its process and what happened.
fn log_lines(place: &Place) -> Vec<serde_json::Value> {
    let text = std::fs::read_to_string(place.log()).unwrap();
    let lines: Vec<serde_json::Value> =
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    for line in &lines {
        assert!(line["time_ms"].is_u64() && line["event"].is_string(), "{line}");
        assert_eq!(line["pid"], std::process::id());
    }
    lines
}

#[test]
fn the_log_tells_what_became_of_a_session() {
    let world = world();
    let (_store, lock) = store(world.dir.path());
    let mut client = Client::begin(&world.place, wanted(world.dir.path()), &lock);
    assert!(matches!(client.hear(), Some(Reply::Joined { .. })));
    drop(client);
    world.wait_over();
    let lines = log_lines(&world.place);
    let events: Vec<&str> = lines.iter().filter_map(|line| line["event"].as_str()).collect();
    assert_eq!(events, ["start", "begin", "rank lost", "over"]);
}

#[test]
fn an_agent_without_work_ends_and_another_can_begin() {
    let dir = tempfile::tempdir().unwrap();
    let place = Place::open(Some(&dir.path().join("agent"))).unwrap();
    for _ in 0..2 {
        let daemon = Daemon::bind(&place, Duration::from_millis(50)).unwrap().unwrap();
        assert!(Daemon::bind(&place, Duration::ZERO).unwrap().is_none(), "one at a time");
        daemon.run();
        assert!(crate::status(&place).is_err());
    }
    crate::flush(&place, "/anything", FLUSH_MAX).unwrap();
}

#[test]
fn a_rank_that_hangs_does_not_keep_the_lock_of_one_that_died() {
    let world = world();
    let (store, lock) = store(world.dir.path());
    let begin = Begin { ranks: vec![0, 1], job_ranks: 2, ..wanted(world.dir.path()) };
    let mut first = Client::begin(&world.place, begin, &lock);
    assert!(matches!(first.hear(), Some(Reply::Joined { .. })));
    let mut second = Client::new(&world.place);
    second.say(&Request::Join { token: Token([1; 16]), rank: 1 });
    assert!(matches!(second.hear(), Some(Reply::Joined { .. })));
    drop(lock);
    drop(first);
    while crate::status(&world.place).unwrap().sessions[0].connected > 1 {
        std::thread::sleep(Duration::from_millis(1));
    }
    while store.lock(Lock::Writer).is_err() {
        std::thread::sleep(Duration::from_millis(1));
    }
}

#[test]
fn the_lock_is_held_until_the_session_is_over() {
    let world = world();
    let (store, lock) = store(world.dir.path());
    let mut client = Client::begin(&world.place, wanted(world.dir.path()), &lock);
    assert!(matches!(client.hear(), Some(Reply::Joined { .. })));
    drop(lock);
    assert!(store.lock(Lock::Writer).is_err(), "the agent has it still");
    drop(client);
    world.wait_over();
    drop(store.lock(Lock::Writer).unwrap());
}

#[test]
fn a_rank_has_units_mapped_before_it_needs_them_and_gives_them_back() {
    // It gets a quarter of the 64 units at a time, and no more than its share of them in all.
    for (ranks, most) in [(1, 48), (2, 32)] {
        let world = world();
        let (_store, lock) = store(world.dir.path());
        let hasher = PageHasher::new(HashKind::Xxh3, &[0; 32]);
        let member = Member { rank: 0, hasher, page_bytes: 4096 };
        let lock = lock.file().unwrap().as_fd();
        let link = Link::begin(&world.place, wanted(world.dir.path()), lock, member).unwrap();
        link.warm(40 * (16 << 10), ranks);
        let end = Instant::now() + Duration::from_secs(60);
        loop {
            let session = crate::status(&world.place).unwrap().sessions.remove(0);
            assert!(session.units_peak <= most, "{session:?}");
            if (session.units_peak, session.units_free) == (most, session.units) {
                break;
            }
            assert!(Instant::now() < end && link.lost().is_none(), "{session:?}");
            std::thread::sleep(Duration::from_millis(1));
        }
    }
}
