//! Whose store a job opens, and what it does where a store has lost what makes it one.

use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};
use std::path::{Path, PathBuf};

use standfast::{Job, Kind, Result};
use tempfile::TempDir;

const NOBODY: u32 = 65534;
const HEADERS: [&str; 3] = ["store", "manifests/header", "copies/header"];

/// What is done to a store, and what the refusal says.
type Attack<'a> = (&'a dyn Fn(&Path), &'a str);

struct World {
    dir: TempDir,
    global: bool,
}

impl World {
    /// A job that has taken two checkpoints, and has drained them where it has global storage.
    fn new(global: bool) -> Self {
        let world = Self { dir: TempDir::new().unwrap(), global };
        world.run(&[]).unwrap();
        world
    }

    fn store(&self) -> PathBuf {
        self.dir.path().join("store/heat")
    }

    /// Opens the job, goes on from its newest checkpoint and takes two more: the version it went on from.
    fn run(&self, more: &[(&str, &str)]) -> Result<u64> {
        let (store, global) = (self.dir.path().join("store"), self.dir.path().join("global"));
        let mut settings = vec![("store", store.to_str().unwrap()), ("job", "heat")];
        if self.global {
            settings.push(("global", global.to_str().unwrap()));
        }
        settings.extend(more);
        let job = Job::open(&settings)?;
        let step = job.value::<u64>("step")?;
        drop(job.restart()?);
        let from = step.get();
        for _ in 0..2 {
            step.set(step.get() + 1);
            job.checkpoint(None)?;
        }
        job.close()?;
        Ok(from)
    }
}

fn is_root() -> bool {
    let root = rustix::process::geteuid().is_root();
    if !root {
        eprintln!("skipped: only root can make files of others");
    }
    root
}

/// Every file below a directory, with its bytes.
fn files(dir: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let mut all = Vec::new();
    for entry in std::fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path()) {
        match entry.is_dir() {
            true => all.extend(files(&entry)),
            false if entry.to_string_lossy().contains("/lock.") => {}
            false => all.push((entry.clone(), std::fs::read(&entry).unwrap())),
        }
    }
    all.sort();
    all
}

#[test]
fn a_header_that_is_gone_or_damaged_comes_back_from_a_copy() {
    for damage in [None, Some(b"garbage".as_slice()), Some(b"")] {
        for left in HEADERS {
            let world = World::new(false);
            let whole = std::fs::read(world.store().join(left)).unwrap();
            for lost in HEADERS.into_iter().filter(|header| *header != left) {
                match damage {
                    None => std::fs::remove_file(world.store().join(lost)).unwrap(),
                    Some(bytes) => std::fs::write(world.store().join(lost), bytes).unwrap(),
                }
            }
            assert_eq!(world.run(&[]).unwrap(), 2, "{left}");
            for header in HEADERS {
                assert_eq!(std::fs::read(world.store().join(header)).unwrap(), whole, "{header}");
            }
        }
    }
}

#[test]
fn a_store_of_an_earlier_version_gets_copies_when_it_is_next_written() {
    let world = World::new(false);
    for copy in &HEADERS[1..] {
        std::fs::remove_file(world.store().join(copy)).unwrap();
    }
    assert_eq!(world.run(&[]).unwrap(), 2);
    assert!(HEADERS.iter().all(|header| world.store().join(header).is_file()));
}

#[test]
fn a_store_without_header_or_manifests_is_never_taken_for_empty() {
    let no_header = |store: &Path| {
        for header in HEADERS {
            std::fs::remove_file(store.join(header)).unwrap();
        }
    };
    let no_manifests = |store: &Path| std::fs::remove_dir_all(store.join("manifests")).unwrap();
    let neither = |store: &Path| {
        std::fs::remove_file(store.join("store")).unwrap();
        std::fs::remove_dir_all(store.join("manifests")).unwrap();
    };
    let attacks: [Attack<'_>; 3] =
        [(&no_header, "header is gone"), (&no_manifests, "no manifest"), (&neither, "no manifest")];
    for (attack, why) in attacks {
        let world = World::new(false);
        attack(&world.store());
        let before = files(&world.store());
        // Looking twice changes nothing either.
        for _ in 0..2 {
            let error = world.run(&[]).unwrap_err();
            assert_eq!(error.kind(), Kind::Corrupt, "{error}");
            let text = error.to_string();
            assert!(text.contains(why) && text.contains("move"), "{text}");
            assert!(files(&world.store()) == before, "{why}: the store was changed");
        }
    }
}

#[test]
fn a_store_of_somebody_else_is_not_gone_on_from() {
    if !is_root() {
        return;
    }
    let world = World::new(false);
    for path in [world.store(), world.store().join("store"), world.store().join("manifests")] {
        chown(&path, Some(NOBODY), None).unwrap();
        let error = world.run(&[]).unwrap_err();
        assert_eq!(error.kind(), Kind::Denied, "{error}");
        assert!(error.to_string().contains(path.to_str().unwrap()), "{error}");
        chown(&path, Some(0), None).unwrap();
    }
    chown(world.store().join("store"), Some(NOBODY), None).unwrap();
    assert_eq!(world.run(&[("share", "private, from 65534")]).unwrap(), 2);
}

#[test]
fn global_storage_of_somebody_else_is_refused() {
    if !is_root() {
        return;
    }
    let world = World::new(true);
    let global = world.dir.path().join("global/heat");
    std::fs::create_dir_all(&global).unwrap();
    std::fs::copy(world.store().join("store"), global.join("store")).unwrap();
    chown(&global, Some(NOBODY), None).unwrap();
    std::fs::remove_dir_all(world.store()).unwrap();
    let error = world.run(&[]).unwrap_err();
    assert_eq!(error.kind(), Kind::Denied, "{error}");
    chown(&global, Some(0), None).unwrap();
    world.run(&[]).unwrap();
}

#[test]
fn global_storage_without_its_header_is_not_taken_for_empty() {
    let world = World::new(true);
    let global = world.dir.path().join("global/heat/segments");
    std::fs::create_dir_all(&global).unwrap();
    std::fs::write(global.join("0123456789abcdef0123456789abcdef"), b"pages").unwrap();
    std::fs::remove_dir_all(world.store()).unwrap();
    let error = world.run(&[]).unwrap_err();
    assert_eq!(error.kind(), Kind::Corrupt, "{error}");
}

#[test]
fn what_is_shared_with_a_group_is_for_it_to_read() {
    if !is_root() {
        return;
    }
    let world = World { dir: TempDir::new().unwrap(), global: false };
    world.run(&[("share", "65534")]).unwrap();
    let of = |name: &str| {
        let meta = std::fs::metadata(world.store().join(name)).unwrap();
        (meta.mode() & 0o777, meta.gid())
    };
    assert_eq!(of(""), (0o750, NOBODY));
    assert_eq!(of("store"), (0o640, NOBODY));
    assert_eq!(of("lock.writer").0, 0o600);
    // Closed again, it is closed to the group with the next checkpoint.
    world.run(&[]).unwrap();
    assert_eq!(of("").0, 0o700);
}

#[test]
fn a_file_of_settings_that_others_may_write_is_refused() {
    // Another process: the variable is one for all threads of this one.
    const VARIABLE: &str = "STANDFAST_CONFIG";
    if std::env::var_os(VARIABLE).is_some() {
        let loaded = standfast::config::Loaded::load(&[]);
        match loaded {
            Ok(loaded) => println!("read {}", loaded.config.place.job),
            Err(error) => println!("refused {error}"),
        }
        return;
    }
    let dir = TempDir::new().unwrap();
    let file = dir.path().join("standfast.toml");
    let load = |more: &[(&str, &str)]| {
        let name = "a_file_of_settings_that_others_may_write_is_refused";
        let mut command = std::process::Command::new(std::env::current_exe().unwrap());
        command.args(["--exact", name, "--nocapture"]).env(VARIABLE, &file).envs(more.to_vec());
        String::from_utf8(command.output().unwrap().stdout).unwrap()
    };
    std::fs::write(&file, "job = \"mine\"\n").unwrap();
    assert!(load(&[]).contains("read mine"));
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o666)).unwrap();
    assert!(load(&[]).contains("others may write to it"), "{}", load(&[]));
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o644)).unwrap();
    if is_root() {
        chown(&file, Some(NOBODY), None).unwrap();
        let told = load(&[]);
        assert!(told.contains("refused") && told.contains("uid 65534"), "{told}");
        assert!(load(&[("STANDFAST_SHARE", "from 65534")]).contains("read mine"));
    }
    // A pipe that nobody writes to holds up nobody.
    std::fs::remove_file(&file).unwrap();
    let mode = rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR;
    let kind = rustix::fs::FileType::Fifo;
    rustix::fs::mknodat(rustix::fs::CWD, &file, kind, mode, 0).unwrap();
    assert!(load(&[]).contains("it is no plain file"));
}
