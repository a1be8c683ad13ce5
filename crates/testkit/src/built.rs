//! Libraries that a test needs and that another package of the workspace makes.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::SystemTime;

/// A dynamic library of the present sources, by its package. Tests of the whole workspace have built
/// it; tests of one package alone have not, and then it is built now, which takes long because its
/// dependencies are built with other features.
///
/// # Panics
/// If it cannot be built.
pub fn library(package: &str) -> PathBuf {
    let file = format!("lib{}.so", package.replace('-', "_"));
    let exe = std::env::current_exe().expect("a process knows its program");
    let deps = exe.parent().expect("a test lies in a directory");
    let built = deps.join(&file);
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let changed = ["crates", "bindings"].map(|part| newest(&root.join(part))).into_iter().max();
    if built.metadata().and_then(|about| about.modified()).ok() > changed {
        return built;
    }
    let profile = deps.parent().expect("dependencies lie below the profile");
    let target = profile.parent().expect("profiles lie below the target directory");
    let mut cargo = Command::new(std::env::var("CARGO").unwrap_or_else(|_| "cargo".into()));
    cargo.args(["build", "--locked", "-q", "-p", package, "--target-dir"]).arg(target);
    let status = cargo.current_dir(root).status().expect("cargo can be started");
    assert!(status.success(), "{package} cannot be built");
    profile.join(file)
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
