//! Attacks on a store: what another user plants or changes, and what somebody removes.
//!
//! Data: a job with two checkpoints -> an attack on its store -> the job opens and restarts -> refused, or
//! gone on from. An attack is refused if the job fails with an error, or goes on from a checkpoint of its
//! own; what remains of the store must be untouched by an opening that failed.

use std::os::unix::fs::{PermissionsExt, chown, lchown, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::Context;
use standfast::{Job, Kind};
use standfast_measure::{Bar, Better};
use tempfile::TempDir;

use crate::bars::Sheet;

/// Another user.
const OTHER: u32 = 65534;
/// What the job has reached by itself, and what the other user wants it to go on from.
const OWN: u64 = 2;
const PLANTED: u64 = 666;
const HEADERS: [&str; 3] = ["store", "manifests/header", "copies/header"];

type Attack = (&'static str, fn(&World) -> anyhow::Result<()>);

/// Files of somebody else, and files that somebody else may write to.
const FOREIGN: &[Attack] = &[
    ("a store in a shared directory", |world| world.plant("store", "store")),
    ("a job in an own store", |world| world.plant("store/heat", "store/heat")),
    ("a link to a foreign store", |world| {
        std::fs::rename(world.planted.join("store"), world.path("elsewhere"))?;
        give_away(&world.path("elsewhere"))?;
        world.link("elsewhere")
    }),
    ("a link to another own store", |world| {
        std::fs::rename(world.planted.join("store"), world.path("elsewhere"))?;
        world.link("elsewhere")
    }),
    ("manifests", |world| world.plant("store/heat/manifests", "store/heat/manifests")),
    ("a header", |world| world.plant("store/heat/store", "store/heat/store")),
    ("images", |world| give_away(&world.path("store/heat/images"))),
    ("segments", |world| give_away(&world.path("store/heat/segments"))),
    ("one manifest's file", |world| world.open_to_all("store/heat/manifests/v0000000002.local")),
    ("the store's directory", |world| world.open_to_all("store/heat")),
    ("a directory inside", |world| world.open_to_all("store/heat/segments")),
    ("the directory above", |world| world.open_to_all("store")),
    ("a shared directory that is not sticky", |world| world.open_to_all("")),
    ("a pipe for a header", |world| {
        HEADERS.iter().try_for_each(|header| {
            std::fs::remove_file(world.path("store/heat").join(header))?;
            let made =
                Command::new("mkfifo").arg(world.path("store/heat").join(header)).status()?;
            anyhow::ensure!(made.success(), "mkfifo");
            Ok(())
        })
    }),
    ("global storage", |world| {
        std::fs::rename(world.planted.join("store"), world.path("global"))?;
        give_away(&world.path("global"))?;
        Ok(std::fs::remove_dir_all(world.path("store"))?)
    }),
];

/// What is missing or damaged, and makes a store look empty.
const REMOVED: &[Attack] = &[
    ("the header removed", |world| world.remove(&HEADERS[..1])),
    ("the header emptied", |world| Ok(std::fs::write(world.path("store/heat/store"), b"")?)),
    ("a bit of the header flipped", |world| {
        let path = world.path("store/heat/store");
        let mut bytes = std::fs::read(&path)?;
        bytes[40] ^= 1;
        Ok(std::fs::write(path, bytes)?)
    }),
    ("the header and one copy removed", |world| world.remove(&HEADERS[..2])),
    ("the header and the other copy removed", |world| world.remove(&[HEADERS[0], HEADERS[2]])),
    ("the header and all copies removed", |world| world.remove(&HEADERS)),
    ("the manifests removed", |world| {
        Ok(std::fs::remove_dir_all(world.path("store/heat/manifests"))?)
    }),
    ("manifests and header removed", |world| {
        world.remove(&HEADERS[..1])?;
        Ok(std::fs::remove_dir_all(world.path("store/heat/manifests"))?)
    }),
    ("a store of version 0.1 without its header", |world| world.remove(&HEADERS)),
    ("a store of version 0.1 without its manifests", |world| {
        world.remove(&HEADERS[1..])?;
        Ok(std::fs::remove_dir_all(world.path("store/heat/manifests"))?)
    }),
    ("global storage without its header", |world| {
        std::fs::rename(world.path("store"), world.path("global"))?;
        HEADERS.iter().try_for_each(|header| {
            Ok(std::fs::remove_file(world.path("global/heat").join(header))?)
        })
    }),
];

/// Adds a row for each sort of attack: the share that was refused.
pub(crate) fn bars(letter: &'static str, sheet: &mut Sheet) -> anyhow::Result<()> {
    if rustix::process::geteuid().is_root() {
        row(letter, "files of others", FOREIGN, sheet)?;
        let held = held_by_reader()?;
        let name = "attacks refused of tried: a reader holds the writer's lock";
        sheet.bar(Bar::new(letter, name, f64::from(u8::from(!held)), Better::Higher, 1.0));
    } else {
        sheet.unmeasured(letter, "attacks refused of tried: files of others", "needs root");
    }
    row(letter, "header or manifests gone", REMOVED, sheet)
}

fn row(
    letter: &'static str,
    what: &str,
    attacks: &[Attack],
    sheet: &mut Sheet,
) -> anyhow::Result<()> {
    let mut refused = 0;
    for (name, attack) in attacks {
        match try_attack(*attack).with_context(|| format!("trying {name}"))? {
            true => refused += 1,
            false => eprintln!("not refused: {name}"),
        }
    }
    let name = format!("attacks refused of tried: {what} ({})", attacks.len());
    let share = f64::from(refused) / attacks.len() as f64;
    sheet.bar(Bar::new(letter, name, share, Better::Higher, 1.0));
    Ok(())
}

fn try_attack(attack: fn(&World) -> anyhow::Result<()>) -> anyhow::Result<bool> {
    let world = World::new()?;
    attack(&world)?;
    let before = listing(world.dir.path())?;
    Ok(match run(world.dir.path(), 0) {
        Ok(from) => (1..=OWN).contains(&from),
        Err(error) => {
            let is_refusal = matches!(error.kind(), Kind::Denied | Kind::Corrupt);
            is_refusal && listing(world.dir.path())? == before
        }
    })
}

/// A shared directory with the job's store, and what the other user would like to put there.
struct World {
    dir: TempDir,
    planted: PathBuf,
}

impl World {
    fn new() -> anyhow::Result<Self> {
        let dir = tempfile::tempdir()?;
        chmod(dir.path(), 0o1777)?;
        run(dir.path(), OWN).context("the job itself")?;
        let planted = dir.path().join("planted");
        std::fs::create_dir(&planted)?;
        run(&planted, PLANTED).context("what is planted")?;
        Ok(Self { dir, planted })
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// Puts something of the other user in the place of an own one.
    fn plant(&self, from: &str, to: &str) -> anyhow::Result<()> {
        let (from, to) = (self.planted.join(from), self.path(to));
        give_away(&from)?;
        std::fs::rename(&to, self.path("aside"))?;
        Ok(std::fs::rename(from, to)?)
    }

    /// The other user's link in the place of the store.
    fn link(&self, to: &str) -> anyhow::Result<()> {
        std::fs::rename(self.path("store"), self.path("aside"))?;
        symlink(to, self.path("store"))?;
        Ok(lchown(self.path("store"), Some(OTHER), Some(OTHER))?)
    }

    fn open_to_all(&self, name: &str) -> anyhow::Result<()> {
        chmod(&self.path(name), 0o777)
    }

    fn remove(&self, names: &[&str]) -> anyhow::Result<()> {
        names
            .iter()
            .try_for_each(|name| Ok(std::fs::remove_file(self.path("store/heat").join(name))?))
    }
}

/// Opens the job, restarts it, and lets it go on to a step: the step it went on from.
fn run(dir: &Path, to: u64) -> standfast::Result<u64> {
    let (store, global) = (dir.join("store"), dir.join("global"));
    let (store, global) = (store.to_string_lossy(), global.to_string_lossy());
    let job = Job::open(&[("store", &*store), ("job", "heat"), ("global", &*global)])?;
    let step = job.value::<u64>("step")?;
    drop(job.restart()?);
    let from = step.get();
    for now in (from + 1..=to).take(OWN as usize) {
        step.set(if to == PLANTED { PLANTED } else { now });
        job.checkpoint(None)?;
    }
    job.close()?;
    Ok(from)
}

/// Whether a user who may read a store can keep others from writing to it.
fn held_by_reader() -> anyhow::Result<bool> {
    let dir = tempfile::tempdir()?;
    chmod(dir.path(), 0o755)?;
    let store = dir.path().join("store");
    let job =
        Job::open(&[("store", &*store.to_string_lossy()), ("job", "heat"), ("share", "65534")])?;
    drop(job);
    let (user, heat) = (OTHER.to_string(), store.join("heat").display().to_string());
    let as_other = |script: String| {
        let mut command = Command::new("setpriv");
        command.args(["--reuid", &user, "--regid", &user, "--clear-groups", "sh", "-c", &script]);
        Ok::<bool, std::io::Error>(command.output()?.status.success())
    };
    anyhow::ensure!(as_other(format!("cat {heat}/store"))?, "the group cannot read");
    Ok(as_other(format!("flock --nonblock {heat}/lock.writer true"))?)
}

fn chmod(path: &Path, mode: u32) -> anyhow::Result<()> {
    Ok(std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode))?)
}

/// Makes a file, or a directory and all that is in it, the other user's.
fn give_away(path: &Path) -> anyhow::Result<()> {
    if path.is_dir() {
        for entry in std::fs::read_dir(path)? {
            give_away(&entry?.path())?;
        }
    }
    Ok(chown(path, Some(OTHER), Some(OTHER))?)
}

/// Names and lengths of everything that is no lock, below a directory.
fn listing(dir: &Path) -> anyhow::Result<Vec<(PathBuf, u64)>> {
    let mut all = Vec::new();
    for entry in std::fs::read_dir(dir)? {
        let path = entry?.path();
        let meta = path.symlink_metadata()?;
        let is_lock =
            path.file_name().is_some_and(|name| name.as_encoded_bytes().starts_with(b"lock."));
        if meta.is_dir() {
            all.extend(listing(&path)?);
        } else if !is_lock {
            all.push((path, meta.len()));
        }
    }
    all.sort();
    Ok(all)
}
