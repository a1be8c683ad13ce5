//! The solver, from the sources in `examples/heat/nodes` to a program: as users build theirs.
//!
//! The sources travel inside this program, and are compiled in the directory of the demonstration.

use std::ffi::OsStr;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Result, bail};

use crate::Language;
use crate::output::os;
use crate::tools::Tools;

macro_rules! source {
    ($path:literal) => {
        include_str!(concat!("../../../", $path))
    };
}

const SOURCES: [(&str, &str); 8] = [
    ("heat.c", source!("examples/heat/nodes/heat.c")),
    ("heat.f90", source!("examples/heat/nodes/heat.f90")),
    ("standfast.h", source!("bindings/c/include/standfast.h")),
    ("standfast_mpi.h", source!("bindings/mpi/standfast_mpi.h")),
    ("standfast_mpi.c", source!("bindings/mpi/standfast_mpi.c")),
    ("standfast_start.c", source!("bindings/mpi/standfast_start.c")),
    ("standfast.f90", source!("bindings/fortran/standfast.f90")),
    ("standfast_mpi.f90", source!("bindings/fortran/standfast_mpi.f90")),
];

/// The solver's source, for people.
pub(crate) fn source(language: Language) -> &'static str {
    match language {
        Language::C => "examples/heat/nodes/heat.c",
        Language::Fortran => "examples/heat/nodes/heat.f90",
        Language::Rust => "examples/heat/rust/src/bin/heat_nodes.rs",
    }
}

/// The solver, ready to be started.
pub(crate) struct Program {
    pub(crate) path: PathBuf,
    /// What opens MPI for one that is not linked with it.
    pub(crate) adapter: Option<PathBuf>,
}

/// Compiles what is to be compiled with the MPI that is there, in a directory of its own.
pub(crate) fn build(tools: &Tools, dir: &Path) -> Result<Program> {
    std::fs::create_dir_all(dir).map_err(|error| os("make", dir.display(), error))?;
    for (name, text) in SOURCES {
        let path = dir.join(name);
        std::fs::write(&path, text).map_err(|error| os("write", path.display(), error))?;
    }
    if tools.language == Language::Rust {
        let words = ["-O2", "-shared", "-fPIC", "-I.", "standfast_mpi.c", "standfast_start.c"];
        compile(dir, &tools.mpicc, &[&words[..], &["-o", "adapter.so"]].concat())?;
        return Ok(Program { path: tools.built.clone(), adapter: Some(dir.join("adapter.so")) });
    }
    link(tools, dir)?;
    Ok(Program { path: dir.join("heat"), adapter: None })
}

/// Compiles the solver in C or Fortran, and links it with the library.
fn link(tools: &Tools, dir: &Path) -> Result<()> {
    // By the names that linkers and loaders look for.
    for name in ["libstandfast.so", concat!("libstandfast.so.", env!("CARGO_PKG_VERSION_MAJOR"))] {
        symlink(&tools.built, dir.join(name))
            .map_err(|error| os("link", tools.built.display(), error))?;
    }
    // Nothing fused, so that every processor computes the same.
    let options = ["-O2", "-ffp-contract=off"];
    let rpath = format!("-Wl,--disable-new-dtags,-rpath,{}", dir.display());
    let libraries = ["-o", "heat", "-L.", "-lstandfast", "-lm", rpath.as_str()];
    let (compiler, words) = if tools.language == Language::Fortran {
        compile(dir, &tools.mpicc, &["-O2", "-I.", "-c", "standfast_mpi.c"])?;
        let words = ["standfast.f90", "standfast_mpi.f90", "heat.f90", "standfast_mpi.o"];
        (&tools.mpifort, words)
    } else {
        (&tools.mpicc, ["-std=c99", "-I.", "heat.c", "standfast_mpi.c"])
    };
    compile(dir, compiler, &[&options[..], &words, &libraries].concat())
}

fn compile(dir: &Path, compiler: &str, words: &[impl AsRef<OsStr>]) -> Result<()> {
    let output = Command::new(compiler)
        .args(words)
        .current_dir(dir)
        .output()
        .map_err(|error| os("start", compiler, error))?;
    if output.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    bail!("{compiler} cannot build the solver: {said}\n'standfast demo' needs no compiler")
}
