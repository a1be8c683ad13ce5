//! Libraries and programs that a test needs and that another package of the product makes.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Mutex, PoisonError};
use std::time::SystemTime;

/// A dynamic library of the present sources, by its package. Tests of the whole workspace have built
/// it; tests of one package alone have not, and then it is built now, which takes long because its
/// dependencies are built with other features. The path is the same for all tests of a process: a
/// checkpoint knows the files that its program had mapped.
///
/// # Panics
/// If it cannot be built.
pub fn library(package: &str) -> PathBuf {
    let file = format!("lib{}.so", package.replace('-', "_"));
    fresh(package, |profile| profile.join("deps").join(&file))
}

/// A program of the present sources, as [`library`].
///
/// # Panics
/// If it cannot be built.
pub fn program(package: &str, name: &str) -> PathBuf {
    fresh(package, |profile| profile.join(name))
}

fn fresh(package: &str, place: impl Fn(&Path) -> PathBuf) -> PathBuf {
    // One at a time: who comes second finds it built.
    static BUILDING: Mutex<()> = Mutex::new(());
    let _building = BUILDING.lock().unwrap_or_else(PoisonError::into_inner);
    let exe = std::env::current_exe().expect("a process knows its program");
    let deps = exe.parent().expect("a test lies in a directory");
    let profile = deps.parent().expect("dependencies lie below the profile");
    let built = place(profile);
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let changed = ["crates", "bindings"].map(|part| newest(&root.join(part))).into_iter().max();
    if built.metadata().and_then(|about| about.modified()).ok() > changed {
        return built;
    }
    let target = profile.parent().expect("profiles lie below the target directory");
    let mut cargo = Command::new(std::env::var("CARGO").unwrap_or_else(|_| "cargo".into()));
    cargo.args(["build", "--locked", "-q", "-p", package, "--target-dir"]).arg(target);
    if profile.ends_with("release") {
        cargo.arg("--release");
    }
    let status = cargo.current_dir(root).status().expect("cargo can be started");
    assert!(status.success() && built.exists(), "{package} cannot be built");
    built
}

/// When a file below a directory was last changed.
fn newest(dir: &Path) -> SystemTime {
    let entries = std::fs::read_dir(dir).into_iter().flatten().flatten();
    let age = |entry: std::fs::DirEntry| {
        let about = entry.metadata().ok()?;
        if about.is_dir() { Some(newest(&entry.path())) } else { about.modified().ok() }
    };
    entries.filter_map(age).max().unwrap_or(SystemTime::UNIX_EPOCH)
}
