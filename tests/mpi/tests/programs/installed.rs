//! The library as a user gets it: installed by `install.sh` below a temporary directory.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::OnceLock;

/// The package's directory.
pub(crate) fn package() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// A file or directory of the repository.
pub(crate) fn repository(path: &str) -> PathBuf {
    package().join("../..").join(path)
}

/// Where cargo leaves the libraries that these tests depend on: beside them.
pub(crate) fn build() -> PathBuf {
    let tests = std::env::current_exe().expect("a test has a path");
    tests.parent().expect("and a directory").to_owned()
}

/// Where the library is installed, once for all tests of this process.
pub(crate) fn prefix() -> &'static Path {
    static PREFIX: OnceLock<PathBuf> = OnceLock::new();
    PREFIX.get_or_init(|| {
        let prefix = Path::new(env!("CARGO_TARGET_TMPDIR")).join("mpi-prefix");
        run(Command::new(repository("bindings/c/install.sh")).arg(&prefix).arg(build()));
        prefix
    })
}

/// Runs a command that must succeed.
pub(crate) fn run(command: &mut Command) -> Output {
    let output = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    assert!(
        output.status.success(),
        "{command:?}: {}\n{}{}",
        output.status,
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
    output
}
