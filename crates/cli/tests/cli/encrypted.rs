//! Global storage with a key: what is drained there can be read with the key, and only with it.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use standfast::{Job, Level};

const SECRET: &[u8] = b"a secret that was planted in the state";
const JOB: &str = "planted-job";
const REGION: &str = "planted-region";

/// A place with a local store, two keys, and words for the command.
struct World {
    dir: tempfile::TempDir,
}

impl World {
    fn new() -> Self {
        let world = Self { dir: tempfile::tempdir().unwrap() };
        for (name, digit) in [("key", "a"), ("other", "b")] {
            let path = world.path(name);
            std::fs::write(&path, digit.repeat(64)).unwrap();
            std::fs::set_permissions(&path, PermissionsExt::from_mode(0o600)).unwrap();
        }
        let job = world.open("local", &[("codec", "none")]).unwrap();
        let region = job.alloc::<u8>(REGION, 300_000).unwrap();
        for version in 1..=3 {
            region.write()[5000..5000 + SECRET.len()].copy_from_slice(SECRET);
            region.write()[100_000] = version;
            let version = job.checkpoint(None).unwrap();
            job.wait(version, Level::Local).unwrap();
        }
        job.close().unwrap();
        world
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    fn open(&self, store: &str, more: &[(&str, &str)]) -> standfast::Result<Job> {
        let store = self.path(store).display().to_string();
        Job::open(&[&[("store", &*store), ("job", JOB)], more].concat())
    }

    fn run(&self, args: &[&str]) -> Output {
        let mut command = Command::new(assert_cmd::cargo::cargo_bin("standfast"));
        for (name, _) in std::env::vars().filter(|(name, _)| name.starts_with("STANDFAST_")) {
            command.env_remove(name);
        }
        command.current_dir(self.dir.path()).args(["--job", JOB]).args(args).output().unwrap()
    }

    #[track_caller]
    fn good(&self, args: &[&str]) -> String {
        let output = self.run(args);
        assert!(output.status.success(), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    }

    /// Fails with this exit code and says all of these.
    #[track_caller]
    fn bad(&self, args: &[&str], code: i32, texts: &[&str]) {
        let output = self.run(args);
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(code), "{args:?}: {said}");
        for text in texts {
            assert!(said.contains(text), "{text:?} is not in {said}");
        }
    }

    fn drain(&self) {
        let drain = ["--store", "local", "--global-key", "key", "drain", "--to", "global"];
        self.good(&[&drain[..], &["--codec", "none"]].concat());
    }
}

fn files(dir: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path());
    entries.flat_map(|path| if path.is_dir() { files(&path) } else { vec![path] }).collect()
}

fn holds(path: &Path, text: &[u8]) -> bool {
    std::fs::read(path).unwrap().windows(text.len()).any(|part| part == text)
}

#[test]
fn nothing_of_a_job_can_be_read_there() {
    let world = World::new();
    world.drain();
    let found = |place: &str, text: &[u8]| {
        files(&world.path(place)).iter().filter(|file| holds(file, text)).count()
    };
    for text in [SECRET, REGION.as_bytes(), JOB.as_bytes()] {
        assert!(found("local", text) > 0, "the local store is as it was");
        assert_eq!(found("global", text), 0);
    }
}

#[test]
fn the_key_opens_it_for_commands_and_restarts() {
    let world = World::new();
    world.drain();
    let key = ["--store", "global", "--global-key", "key"];
    assert!(world.good(&[&key[..], &["ls"]].concat()).contains('3'));
    assert!(world.good(&[&key[..], &["show"]].concat()).contains(REGION));
    world.good(&[&key[..], &["verify"]].concat());
    world.good(&[&key[..], &["export", "3", "--to", "out"]].concat());
    assert!(files(&world.path("out")).iter().any(|file| holds(file, SECRET)));
    let (global, key) = (world.path("global"), world.path("key"));
    let words = [("global", global.to_str().unwrap()), ("global_key", key.to_str().unwrap())];
    let job = world.open("elsewhere", &words).unwrap();
    let region = job.alloc::<u8>(REGION, 300_000).unwrap();
    assert_eq!(job.restart().unwrap().unwrap().version.0, 3);
    assert_eq!(region.read()[5000..5000 + SECRET.len()], *SECRET);
    // The restarted job goes on, and what it stores is drained to the same place.
    let version = job.checkpoint(None).unwrap();
    job.wait(version, Level::Local).unwrap();
    job.close().unwrap();
    let drain = ["--store", "elsewhere", "--global-key", "key", "drain", "--to", "global"];
    world.good(&[&drain[..], &["--keep", "1"]].concat());
    let text = world.good(&["--store", "global", "--global-key", "key", "--json", "ls"]);
    assert!(text.contains("\"version\":4") && !text.contains("\"version\":3"), "{text}");
}

#[test]
fn a_checkpoint_is_fetched_with_settings_alone() {
    let world = World::new();
    world.drain();
    let words = "store = \"back\"\nglobal = \"global\"\nglobal_key = \"key\"\n";
    std::fs::write(world.path("standfast.toml"), words).unwrap();
    assert!(world.good(&["fetch"]).contains("checkpoint 3"));
    let job = world.open("back", &[]).unwrap();
    let region = job.alloc::<u8>(REGION, 300_000).unwrap();
    job.restart().unwrap().expect("a checkpoint");
    assert_eq!(region.read()[5000..5000 + SECRET.len()], *SECRET);
}

#[test]
fn wrong_missing_and_needless_keys_are_told() {
    let world = World::new();
    world.drain();
    let wrong = "was encrypted with another key (fingerprint ";
    world.bad(&["--store", "global", "--global-key", "other", "ls"], 15, &[wrong, ", this is "]);
    world.bad(
        &["--store", "local", "--global-key", "other", "drain", "--to", "global"],
        15,
        &[wrong],
    );
    let encrypted = "is encrypted (key with fingerprint ";
    for command in ["ls", "verify", "show"] {
        world.bad(&["--store", "global", command], 15, &[encrypted, "--global-key"]);
    }
    world.bad(&["--store", "local", "drain", "--to", "global"], 15, &[encrypted]);
    world.good(&["--store", "local", "drain", "--to", "plain"]);
    let fetch = ["--store", "back", "--global-key", "key", "fetch", "--from", "plain"];
    world.bad(&fetch, 10, &["is not encrypted", "remove global_key"]);
    let global = world.path("global").display().to_string();
    let key = world.path("other").display().to_string();
    let error = world.open("new", &[("global", &global), ("global_key", &key)]).err().unwrap();
    assert!(error.to_string().contains(wrong), "{error}");
    std::fs::set_permissions(world.path("key"), PermissionsExt::from_mode(0o644)).unwrap();
    world.bad(
        &["--store", "global", "--global-key", "key", "ls"],
        15,
        &["global_key: others can read key; chmod 600 it"],
    );
}

#[test]
fn every_flipped_byte_of_a_store_is_found() {
    let world = World::new();
    world.drain();
    let intact = |world: &World| {
        let verify = ["--store", "global", "--global-key", "key", "verify"];
        world.run(&verify).status.success()
    };
    assert!(intact(&world));
    // Verifying is a process each: some bytes of each file, those of its tail among them.
    for file in files(&world.path("global")) {
        let sound = std::fs::read(&file).unwrap();
        if sound.is_empty() || file.to_string_lossy().contains("lock.") {
            continue;
        }
        for at in [0, sound.len() / 2, sound.len() - 60, sound.len() - 20, sound.len() - 1] {
            let mut broken = sound.clone();
            broken[at] ^= 4;
            std::fs::write(&file, &broken).unwrap();
            assert!(!intact(&world), "{} at {at}", file.display());
        }
        std::fs::write(&file, &sound).unwrap();
    }
    assert!(intact(&world));
}

#[test]
fn commands_for_keys_do_not_come_from_a_file() {
    let world = World::new();
    std::fs::write(world.path("standfast.toml"), "global_key = \"!touch ran\"\n").unwrap();
    world.bad(&["--store", "local", "ls"], 18, &["a command comes from environment or call only"]);
    assert!(!world.path("ran").exists());
    std::fs::remove_file(world.path("standfast.toml")).unwrap();
    let drain = ["--store", "local", "--global-key", "!cat key", "drain", "--to", "global"];
    world.good(&drain);
    world.good(&["--store", "global", "--global-key", "key", "verify"]);
}
