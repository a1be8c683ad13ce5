//! Whose store it is, and who may read it. Foreign files are made by root; an ordinary user is played by
//! `setpriv`.

use std::os::unix::fs::{MetadataExt, PermissionsExt, chown, lchown, symlink};
use std::path::Path;
use std::process::Command;

use standfast_format::Kind;
use standfast_store::{DirStore, Lock, Options, Store};
use standfast_sys::trust::Trust;
use tempfile::TempDir;

/// A user and a group that are nobody's.
const NOBODY: u32 = 65534;

fn is_root() -> bool {
    let root = rustix::process::geteuid().is_root();
    if !root {
        eprintln!("skipped: only root can make files of others");
    }
    root
}

fn open(path: &Path) -> standfast_store::Result<DirStore> {
    DirStore::open(path, &Options::default())
}

fn open_with(path: &Path, trust: Trust) -> standfast_store::Result<DirStore> {
    DirStore::open(path, &Options { trust, ..Options::default() })
}

fn chmod(path: &Path, mode: u32) {
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
}

fn mode(path: &Path) -> u32 {
    std::fs::metadata(path).unwrap().mode() & 0o777
}

#[track_caller]
fn refused<T>(result: standfast_store::Result<T>) -> String {
    let error = result.err().expect("expected a refusal");
    assert_eq!(error.kind(), Kind::Denied, "{error}");
    error.to_string()
}

/// Runs a shell command as nobody.
fn as_nobody(command: &str) -> bool {
    let user = NOBODY.to_string();
    let arguments = ["--reuid", &user, "--regid", &user, "--clear-groups", "sh", "-c", command];
    Command::new("setpriv").args(arguments).output().unwrap().status.success()
}

/// A store with an object, in a directory that everybody may write to, as `/tmp` is.
fn world() -> TempDir {
    let dir = TempDir::new().unwrap();
    chmod(dir.path(), 0o1777);
    open(&dir.path().join("store/job")).unwrap().put("segments/1", b"pages").unwrap();
    dir
}

#[test]
fn a_store_of_somebody_else_is_refused_with_its_owner_and_path() {
    if !is_root() {
        return;
    }
    let world = world();
    let (place, job) = (world.path().join("store"), world.path().join("store/job"));
    let object = job.join("segments/1");
    for foreign in [&place, &job, &job.join("segments"), &object] {
        chown(foreign, Some(NOBODY), None).unwrap();
        let text = refused(open(&job).and_then(|store| store.get("segments/1", 9)));
        assert!(text.starts_with(&foreign.display().to_string()), "{text}");
        assert!(text.contains("uid 65534") && text.contains("share"), "{text}");
        let named = Trust { users: vec![NOBODY], group: None };
        let store = open_with(&job, named).unwrap();
        assert_eq!(store.get("segments/1", 9).unwrap(), b"pages");
        chown(foreign, Some(0), None).unwrap();
    }
    assert_eq!(open(&job).unwrap().get("segments/1", 9).unwrap(), b"pages");
}

#[test]
fn what_others_may_write_to_is_refused() {
    let world = world();
    let (place, job) = (world.path().join("store"), world.path().join("store/job"));
    let segments = job.join("segments");
    for (open_to_all, closed) in
        [(&place, 0o700), (&job, 0o700), (&segments, 0o700), (&segments.join("1"), 0o600)]
    {
        chmod(open_to_all, 0o777);
        let text = refused(open(&job).and_then(|store| store.get("segments/1", 9)));
        assert!(text.starts_with(&open_to_all.display().to_string()), "{text}");
        assert!(text.contains("mode 0777") && text.contains("chmod go-w"), "{text}");
        chmod(open_to_all, closed);
    }
    // Nobody else can replace what is in a sticky directory, but what is read must not be one.
    chmod(&place, 0o1777);
    open(&job).unwrap();
    chmod(&job, 0o1777);
    refused(open(&job));
}

#[test]
fn a_place_that_somebody_else_can_replace_is_refused() {
    let world = world();
    let job = world.path().join("store/job");
    chmod(world.path(), 0o777);
    let text = refused(open(&job));
    assert!(text.starts_with(&format!("{} ", world.path().display())), "{text}");
    if is_root() {
        // The owner of a sticky directory can still rename everything in it.
        chmod(world.path(), 0o1777);
        chown(world.path(), Some(NOBODY), None).unwrap();
        refused(open(&job));
    }
}

#[test]
fn links_of_others_are_not_followed() {
    if !is_root() {
        return;
    }
    let world = world();
    let link = world.path().join("link");
    symlink(world.path().join("store"), &link).unwrap();
    open(&link.join("job")).unwrap();
    lchown(&link, Some(NOBODY), None).unwrap();
    refused(open(&link.join("job")));
}

#[test]
fn whatever_the_umask_only_the_owner_can_read() {
    if !is_root() {
        return;
    }
    let world = world();
    let job = world.path().join("store/job");
    let store = open(&job).unwrap();
    let mut writer = store.create("images/v1/rank-0", None).unwrap();
    writer.append(&[1; 10_000]).unwrap();
    let part = std::fs::read_dir(job.join("images/v1")).unwrap().next().unwrap().unwrap();
    assert_eq!(mode(&part.path()), 0o600);
    writer.seal().unwrap();
    let locks: Vec<_> = [Lock::Writer, Lock::ReadShared, Lock::Drain, Lock::Busy, Lock::Keep(1)]
        .into_iter()
        .map(|lock| store.lock(lock).unwrap())
        .collect();
    for entry in ["", "segments", "images", "images/v1"] {
        assert_eq!(mode(&job.join(entry)), 0o700, "{entry}");
    }
    assert_eq!(mode(&world.path().join("store")), 0o700);
    for entry in
        ["segments/1", "images/v1/rank-0", "lock.writer", "lock.reader", "lock.checkpoints"]
    {
        assert_eq!(mode(&job.join(entry)), 0o600, "{entry}");
    }
    assert!(!as_nobody(&format!("ls {}", job.display())));
    drop(locks);
}

#[test]
fn a_store_of_an_earlier_version_is_closed_when_it_is_next_written() {
    let world = world();
    let job = world.path().join("store/job");
    std::fs::write(job.join("lock.writer"), b"").unwrap();
    for (entry, before) in [("", 0o755), ("segments", 0o755), ("lock.writer", 0o644)] {
        chmod(&job.join(entry), before);
    }
    let store = open(&job).unwrap();
    assert_eq!(store.get("segments/1", 9).unwrap(), b"pages");
    assert_eq!(mode(&job), 0o755, "who reads changes nothing");
    store.put("segments/2", b"x").unwrap();
    drop(store.lock(Lock::Writer).unwrap());
    assert_eq!(mode(&job), 0o700);
    assert_eq!(mode(&job.join("segments")), 0o700);
    assert_eq!(mode(&job.join("lock.writer")), 0o600);
}

#[test]
fn a_group_may_read_and_hold_up_nobody() {
    if !is_root() {
        return;
    }
    let world = world();
    let job = world.path().join("shared/job");
    let trust = Trust { group: Some(NOBODY), users: vec![] };
    let store = open_with(&job, trust).unwrap();
    store.put("segments/1", b"pages").unwrap();
    for lock in [Lock::Writer, Lock::ReadExclusive, Lock::Drain, Lock::Busy, Lock::Keep(1)] {
        drop(store.lock(lock).unwrap());
    }
    for entry in ["", "segments"] {
        assert_eq!(mode(&job.join(entry)), 0o750, "{entry}");
    }
    let meta = std::fs::metadata(job.join("segments/1")).unwrap();
    assert_eq!((meta.mode() & 0o777, meta.gid()), (0o640, NOBODY));
    let path = job.display();
    assert!(as_nobody(&format!("cat {path}/segments/1")));
    assert!(!as_nobody(&format!("touch {path}/segments/new")));
    for lock in ["writer", "reader", "drain", "busy", "checkpoints"] {
        assert!(job.join(format!("lock.{lock}")).exists(), "{lock}");
        let taken = as_nobody(&format!("flock --nonblock {path}/lock.{lock} true"));
        assert!(!taken, "a reader could hold up writers with lock.{lock}");
    }
}

#[test]
fn files_of_members_of_the_group_are_read() {
    if !is_root() {
        return;
    }
    let world = world();
    let job = world.path().join("store/job");
    for path in ["store", "store/job", "store/job/segments", "store/job/segments/1"] {
        chown(world.path().join(path), Some(NOBODY), Some(0)).unwrap();
    }
    // The group of nobody is 65534, whatever group its files have.
    let member = Trust { group: Some(NOBODY), users: vec![] };
    let store = open_with(&job, member).unwrap();
    assert_eq!(store.get("segments/1", 9).unwrap(), b"pages");
    refused(open_with(&job, Trust { group: Some(1), users: vec![] }));
}

#[test]
fn a_pipe_in_the_place_of_a_file_is_refused_at_once() {
    let world = world();
    let job = world.path().join("store/job");
    let store = open(&job).unwrap();
    let kind = rustix::fs::FileType::Fifo;
    for name in ["pipe", "lock.writer"] {
        let mode = rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR;
        rustix::fs::mknodat(rustix::fs::CWD, job.join(name), kind, mode, 0).unwrap();
    }
    assert_eq!(store.get("pipe", 9).unwrap_err().kind(), Kind::Corrupt);
    assert_eq!(store.lock(Lock::Writer).unwrap_err().kind(), Kind::Corrupt);
}
