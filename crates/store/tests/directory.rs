//! What only a directory has: links, full and read-only file systems, other processes, crashes.

use std::io::{Read, Write};
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileExt, symlink};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};

use rustix::mount::{MountFlags, UnmountFlags};
use standfast_format::Kind;
use standfast_store::{DirStore, Io, Lock, LockGuard, MemoryStore, Options, Store};
use standfast_testkit::must::leave_out;
use tempfile::TempDir;

fn open(path: &Path) -> DirStore {
    DirStore::open(path, &Options::default()).unwrap()
}

#[track_caller]
fn expect_kind<T>(result: standfast_store::Result<T>, kind: Kind) -> String {
    let error = result.err().expect("expected a failure");
    assert_eq!(error.kind(), kind, "{error}");
    error.to_string()
}

fn files(dir: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().file_name());
    let mut names: Vec<String> = entries.map(|name| name.into_string().unwrap()).collect();
    names.sort();
    names
}

#[test]
fn links_lead_nowhere() {
    let (dir, outside) = (TempDir::new().unwrap(), TempDir::new().unwrap());
    std::fs::write(outside.path().join("secret"), b"secret").unwrap();
    symlink(outside.path(), dir.path().join("linked")).unwrap();
    symlink(outside.path().join("secret"), dir.path().join("file")).unwrap();
    let store = open(dir.path());
    for name in ["linked/secret", "file"] {
        expect_kind(store.open(name), Kind::Corrupt);
        expect_kind(store.remove(name), Kind::Corrupt);
    }
    expect_kind(store.put("linked/new", b"x"), Kind::Corrupt);
    expect_kind(store.create("linked/new", None), Kind::Corrupt);
    assert!(store.list("").unwrap().is_empty());
    store.put("file", b"mine").unwrap();
    assert_eq!(std::fs::read(outside.path().join("secret")).unwrap(), b"secret");
    assert_eq!(files(outside.path()), ["secret"]);
    assert_eq!(store.get("file", 10).unwrap(), b"mine");
}

#[test]
fn a_planted_part_or_lock_link_is_not_followed() {
    let (dir, outside) = (TempDir::new().unwrap(), TempDir::new().unwrap());
    let target = outside.path().join("target");
    std::fs::write(&target, b"untouched").unwrap();
    symlink(&target, dir.path().join("lock.writer")).unwrap();
    symlink(&target, dir.path().join("a~1-0.part")).unwrap();
    let store = open(dir.path());
    assert!(store.lock(Lock::Writer).is_err());
    store.discard_unsealed().unwrap();
    assert_eq!(std::fs::read(&target).unwrap(), b"untouched");
}

/// Runs something while a child has been forked and not yet become another program: until then it has
/// open what this process had. The child itself first does what it is told.
fn beside_a_fork(in_child: impl Fn() + Send + Sync + 'static, beside: impl FnOnce()) {
    let (mut here, mut there) = UnixStream::pair().unwrap();
    let mut command = Command::new("true");
    let parents_end = here.as_raw_fd();
    let wait = move || {
        // SAFETY: the child's copy is nobody's; with it the child would wait for itself.
        unsafe { rustix::io::close(parents_end) };
        in_child();
        there.write_all(b"f")?;
        there.read_exact(&mut [0])
    };
    // SAFETY: the child allocates nothing and takes no lock of this process.
    unsafe { command.pre_exec(wait) };
    let child = std::thread::spawn(move || command.status());
    here.read_exact(&mut [0]).unwrap();
    beside();
    here.write_all(b"g").unwrap();
    assert!(child.join().unwrap().unwrap().success());
}

#[test]
fn a_forked_child_keeps_no_lock_that_was_given_up() {
    let dir = TempDir::new().unwrap();
    let store = open(dir.path());
    for (lock, against) in [
        (Lock::Writer, Lock::Writer),
        (Lock::ReadExclusive, Lock::ReadShared),
        (Lock::Keep(5), Lock::Drop(5)),
    ] {
        let held = store.lock(lock).unwrap();
        expect_kind(store.lock(against), Kind::Busy);
        beside_a_fork(
            || (),
            || {
                drop(held);
                drop(store.lock(against).unwrap());
            },
        );
    }
}

#[test]
fn a_lock_that_was_handed_on_lasts_as_long_as_its_last_copy() {
    let dir = TempDir::new().unwrap();
    let store = open(dir.path());
    let held = store.lock(Lock::Writer).unwrap();
    let copy = held.file().unwrap().try_clone().unwrap();
    drop(held);
    expect_kind(store.lock(Lock::Writer), Kind::Busy);
    drop(copy);
    drop(store.lock(Lock::Writer).unwrap());
}

#[test]
fn a_forked_child_gives_up_no_lock_of_its_parent() {
    let dir = TempDir::new().unwrap();
    let store = open(dir.path());
    for (lock, against) in [(Lock::Writer, Lock::Writer), (Lock::Keep(5), Lock::Drop(5))] {
        let held = Arc::new(Mutex::new(Some(store.lock(lock).unwrap())));
        let of_child = Arc::clone(&held);
        let give_up = move || drop(of_child.lock().unwrap().take());
        beside_a_fork(give_up, || drop(expect_kind(store.lock(against), Kind::Busy)));
        assert!(held.lock().unwrap().take().is_some());
        drop(store.lock(against).unwrap());
    }
}

#[test]
fn foreign_files_are_passed_over() {
    let dir = TempDir::new().unwrap();
    let store = open(dir.path());
    store.put("segments/1", b"x").unwrap();
    for name in ["a b", ".hidden", "a~2-0.part", "lock.writer"] {
        std::fs::write(dir.path().join(name), b"foreign").unwrap();
    }
    std::fs::create_dir_all(dir.path().join("odd dir/sub")).unwrap();
    std::fs::write(dir.path().join("odd dir/sub/f"), b"foreign").unwrap();
    let pipe = dir.path().join("pipe");
    rustix::fs::mkfifoat(rustix::fs::CWD, &pipe, rustix::fs::Mode::from_raw_mode(0o600)).unwrap();
    let names: Vec<String> = store.list("").unwrap().into_iter().map(|o| o.name).collect();
    assert_eq!(names, ["segments/1"]);
    expect_kind(store.open("pipe"), Kind::Corrupt);
}

#[test]
fn leftovers_of_crashed_writers_are_discarded() {
    let dir = TempDir::new().unwrap();
    let store = open(dir.path());
    store.put("segments/1", b"kept").unwrap();
    std::fs::write(dir.path().join("segments/2~99-0.part"), vec![1; 1 << 20]).unwrap();
    std::fs::write(dir.path().join("3~99-1.part"), vec![1; 1 << 20]).unwrap();
    let living = store.create("segments/4", None).unwrap();
    let _lock = store.lock(Lock::Writer).unwrap();
    assert!(store.discard_unsealed().unwrap() >= 2 << 20);
    living.seal().unwrap();
    assert_eq!(files(&dir.path().join("segments")), ["1", "4"]);
    assert_eq!(files(dir.path()), ["lock.writer", "segments"]);
}

#[test]
fn a_shortened_file_is_reported() {
    let dir = TempDir::new_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let store = open(dir.path());
    store.put("a", &[1; 10_000]).unwrap();
    let reader = store.open("a").unwrap();
    let file = std::fs::OpenOptions::new().write(true).open(dir.path().join("a")).unwrap();
    file.set_len(5000).unwrap();
    let mut buf = [0; 10_000];
    expect_kind(reader.read_at(0, &mut buf), Kind::Corrupt);
    file.write_all_at(&[1], 9_999).unwrap();
    assert_eq!(reader.read_at(0, &mut buf).unwrap(), 10_000);
}

#[test]
fn a_file_is_no_store() {
    let file = tempfile::NamedTempFile::new().unwrap();
    expect_kind(DirStore::open(file.path(), &Options::default()), Kind::Invalid);
    expect_kind(DirStore::open(file.path().join("below"), &Options::default()), Kind::Invalid);
}

#[test]
fn an_object_in_the_place_of_a_directory_is_a_clear_error() {
    let dir = TempDir::new().unwrap();
    let store = open(dir.path());
    store.put("a", b"x").unwrap();
    expect_kind(store.put("a/b", b"y"), Kind::Invalid);
    expect_kind(store.open("a/b"), Kind::Missing);
    store.put("d/e", b"x").unwrap();
    expect_kind(store.put("d", b"y"), Kind::Invalid);
    assert_eq!(files(dir.path()), ["a", "d"]);
}

/// A small file system in memory, or `None` (with the reason printed) where not permitted.
struct Mount(PathBuf, #[expect(dead_code, reason = "removes the mount point")] TempDir);

fn mount_tmpfs(options: &str) -> Option<Mount> {
    let dir = TempDir::new().unwrap();
    let data = std::ffi::CString::new(options).unwrap();
    match rustix::mount::mount("tmpfs", dir.path(), "tmpfs", MountFlags::empty(), &*data) {
        Ok(()) => Some(Mount(dir.path().to_owned(), dir)),
        Err(errno) => {
            leave_out("mount", format!("cannot mount a tmpfs: {errno}"));
            None
        }
    }
}

impl Mount {
    fn remount_read_only(&self) {
        let flags = MountFlags::RDONLY;
        rustix::mount::mount_remount(&self.0, flags, c"").unwrap();
    }
}

impl Drop for Mount {
    fn drop(&mut self) {
        let _ = rustix::mount::unmount(&self.0, UnmountFlags::DETACH);
    }
}

#[test]
fn a_full_disk_loses_nothing_and_gives_its_space_back() {
    let Some(mount) = mount_tmpfs("size=16m") else { return };
    for io in [Io::Auto, Io::Buffered] {
        let options = Options { io, io_threads: 2, chunk_bytes: 256 << 10, ..Options::default() };
        let store = DirStore::open(mount.0.join("store"), &options).unwrap();
        store.put("kept", b"kept").unwrap();
        let free = store.free_bytes().unwrap().unwrap();
        for hint in [None, Some(32 << 20), Some(u64::MAX)] {
            let mut writer = store.create("big", hint).unwrap();
            let error = (0..64).find_map(|_| writer.append(&[7; 512 << 10]).err());
            let error = error.expect("32 MiB do not fit into 16");
            assert_eq!(error.kind(), Kind::Full, "{error}");
            assert!(store.free_bytes().unwrap().unwrap() + (64 << 10) >= free, "space came back");
            let again = writer.append(b"more").unwrap_err();
            assert_eq!(again.kind(), Kind::Full, "{again}");
            assert_eq!(writer.seal().unwrap_err().kind(), Kind::Full);
        }
        expect_kind(store.put("big", &vec![7; 32 << 20]), Kind::Full);
        expect_kind(store.put_new("big", &vec![7; 32 << 20]), Kind::Full);
        assert_eq!(store.list("").unwrap().len(), 1);
        assert_eq!(store.get("kept", 10).unwrap(), b"kept");
        assert_eq!(store.discard_unsealed().unwrap(), 0, "no part file was left");
        store.put("small", &vec![7; 8 << 20]).unwrap();
        store.remove("small").unwrap();
    }
}

#[test]
fn a_read_only_directory_can_be_read() {
    let Some(mount) = mount_tmpfs("size=16m") else { return };
    let path = mount.0.join("store");
    let store = open(&path);
    store.put("segments/1", b"data").unwrap();
    let check = |store: &DirStore| {
        let _lock = store.lock(Lock::ReadShared).unwrap();
        assert_eq!(store.get("segments/1", 10).unwrap(), b"data");
        assert_eq!(store.list("").unwrap().len(), 1);
        for text in [
            expect_kind(store.put("segments/2", b"x"), Kind::Denied),
            expect_kind(store.put("new/2", b"x"), Kind::Denied),
            expect_kind(store.create("segments/2", None), Kind::Denied),
            expect_kind(store.remove("segments/1"), Kind::Denied),
            expect_kind(store.lock(Lock::Writer), Kind::Denied),
            expect_kind(store.lock(Lock::ReadExclusive), Kind::Denied),
        ] {
            assert!(text.contains("Read-only file system"), "{text}");
        }
    };
    mount.remount_read_only();
    check(&open(&path));
    expect_kind(DirStore::open(mount.0.join("other"), &Options::default()), Kind::Denied);
}

/// What the child does when this test binary is started as one.
const ROLE: &str = "STANDFAST_TEST_ROLE";
const STORE: &str = "STANDFAST_TEST_STORE";

/// Starts this binary again as another process that runs only [`as_another_process`].
fn another_process(role: &str, store: &Path) -> Child {
    Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "as_another_process", "--nocapture"])
        .env(ROLE, role)
        .env(STORE, store)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap()
}

/// Not a test of its own: nothing without the variables that [`another_process`] sets.
#[test]
fn as_another_process() {
    let Ok(role) = std::env::var(ROLE) else { return };
    let store = open(Path::new(&std::env::var_os(STORE).unwrap()));
    let _held = match &*role {
        "writer" => store.lock(Lock::Writer).unwrap(),
        "reader" => store.lock(Lock::ReadShared).unwrap(),
        other => panic!("unknown role {other}"),
    };
    let mut unsealed = store.create("segments/unsealed", None).unwrap();
    unsealed.append(&vec![1; 3 << 20]).unwrap();
    store.put(&format!("from-{role}"), b"whole").unwrap();
    println!("\nready");
    // Until killed, or until the parent is gone.
    let _ = std::io::stdin().read_line(&mut String::new());
}

/// Waits for the child's word that it holds its lock.
fn wait_until_ready(child: &mut Child) {
    use std::io::{BufRead, BufReader};
    let lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let ready = lines.map_while(Result::ok).any(|line| line == "ready");
    assert!(ready, "the other process failed");
}

#[test]
fn two_processes_on_one_store() {
    let dir = TempDir::new_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let store: Arc<dyn Store> = Arc::new(open(dir.path()));
    let mut writer = another_process("writer", dir.path());
    wait_until_ready(&mut writer);
    let mut reader = another_process("reader", dir.path());
    wait_until_ready(&mut reader);

    let text = expect_kind(store.lock(Lock::Writer), Kind::Busy);
    assert!(text.contains(&format!("pid {}", writer.id())), "{text}");
    let text = expect_kind(store.lock(Lock::ReadExclusive), Kind::Busy);
    assert!(text.contains(&format!("pid {}", reader.id())), "{text}");
    drop(store.lock(Lock::ReadShared).unwrap());
    assert_eq!(store.discard_unsealed().unwrap(), 0, "both writers live");
    let names: Vec<String> = store.list("").unwrap().into_iter().map(|o| o.name).collect();
    assert_eq!(names, ["from-reader", "from-writer"]);

    for child in [&mut writer, &mut reader] {
        child.kill().unwrap();
        assert!(!child.wait().unwrap().success(), "it was killed, not done");
    }
    let _writing = store.lock(Lock::Writer).expect("a dead holder holds nothing");
    let _pruning = store.lock(Lock::ReadExclusive).expect("a dead holder holds nothing");
    assert!(store.discard_unsealed().unwrap() >= 2 * (2 << 20), "their leftovers went");
    assert_eq!(store.list("").unwrap().len(), 2);
    assert_eq!(files(&dir.path().join("segments")), [""; 0]);
}

#[test]
fn busy_ranks_are_seen_by_a_drain() {
    let dir = TempDir::new().unwrap();
    let store = open(dir.path());
    drop(store.lock(Lock::Idle).unwrap());
    let one = store.lock(Lock::Busy).unwrap();
    let two = store.lock(Lock::Busy).unwrap();
    expect_kind(store.lock(Lock::Idle), Kind::Busy);
    drop(one);
    expect_kind(store.lock(Lock::Idle), Kind::Busy);
    drop(two);
    drop(store.lock(Lock::Idle).unwrap());
}

#[test]
fn an_object_that_must_be_new_replaces_none() {
    let dir = TempDir::new().unwrap();
    for store in [&open(dir.path()) as &dyn Store, &MemoryStore::new()] {
        let seal = |byte: u8| {
            let mut writer = store.create("segments/1", None).unwrap();
            writer.append(&[byte; 5000]).unwrap();
            writer.seal_new()
        };
        assert_eq!(seal(1).unwrap(), 5000);
        assert_eq!(seal(2).unwrap_err().kind(), Kind::Busy);
        assert_eq!(store.get("segments/1", 5000).unwrap(), [1; 5000]);
        assert_eq!(store.discard_unsealed().unwrap(), 0, "the second left nothing");
    }
}

#[test]
fn only_the_writer_lock_of_this_store_is_taken_over() {
    let dir = TempDir::new().unwrap();
    let (one, other) = (open(&dir.path().join("one")), open(&dir.path().join("other")));
    let handed =
        |lock: &LockGuard| std::os::fd::OwnedFd::from(lock.file().unwrap().try_clone().unwrap());
    let (held, foreign) = (one.lock(Lock::Writer).unwrap(), other.lock(Lock::Writer).unwrap());
    for wrong in [
        handed(&foreign),
        handed(&one.lock(Lock::Drain).unwrap()),
        std::fs::File::open("/dev/null").unwrap().into(),
    ] {
        assert_eq!(one.adopt_writer_lock(wrong).unwrap_err().kind(), Kind::Invalid);
    }
    // The right file, opened by somebody who does not hold the lock.
    let unlocked = std::fs::File::open(dir.path().join("one/lock.writer")).unwrap();
    assert_eq!(one.adopt_writer_lock(unlocked.into()).unwrap_err().kind(), Kind::Busy);
    let taken = one.adopt_writer_lock(handed(&held)).unwrap();
    drop(held);
    assert!(one.lock(Lock::Writer).is_err(), "whoever took it over holds it");
    drop(taken);
    drop(one.lock(Lock::Writer).unwrap());
}

#[test]
fn a_directory_goes_with_the_last_object_in_it() {
    let dir = TempDir::new().unwrap();
    let store = open(dir.path());
    for name in ["images/1/a", "images/1/b", "images/2/a", "marks/a"] {
        store.put(name, b"x").unwrap();
    }
    store.remove("images/1/a").unwrap();
    assert_eq!(files(&dir.path().join("images")), ["1", "2"]);
    store.remove("images/1/b").unwrap();
    store.remove("marks/a").unwrap();
    assert_eq!(files(&dir.path().join("images")), ["2"]);
    assert_eq!(files(&dir.path().join("marks")), [""; 0], "the first row stays");
    // What an earlier version has left goes when leftovers do; what is used stays.
    std::fs::create_dir(dir.path().join("images/0")).unwrap();
    store.discard_unsealed().unwrap();
    assert_eq!(files(&dir.path().join("images")), ["2"]);
    store.put("images/1/a", b"again").unwrap();
    assert_eq!(store.get("images/1/a", 9).unwrap(), b"again");
}

#[test]
fn writers_do_not_mind_that_others_remove_the_directory() {
    let dir = TempDir::new().unwrap();
    let store = open(dir.path());
    std::thread::scope(|scope| {
        for number in 0..4 {
            let store = &store;
            scope.spawn(move || {
                let name = format!("images/all/{number}");
                for round in 0..300u32 {
                    store.put(&name, &round.to_le_bytes()).unwrap();
                    assert_eq!(store.get(&name, 4).unwrap(), round.to_le_bytes());
                    store.remove(&name).unwrap();
                }
            });
        }
    });
    assert_eq!(store.list("").unwrap(), []);
}
