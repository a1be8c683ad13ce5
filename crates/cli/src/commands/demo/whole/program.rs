//! The solver, from the sources in `examples/heat/nodes` to a program: as users build theirs.
//!
//! The sources travel inside this command, so that an installed one can show everything as well.

use std::ffi::OsStr;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;

use standfast::Kind;

use super::tools::Tools;
use crate::args::Language;
use crate::failure::{Failure, Result};

macro_rules! source {
    ($path:literal) => {
        include_str!(concat!("../../../../../../", $path))
    };
}

const SOURCES: [(&str, &str); 7] = [
    ("heat.c", source!("examples/heat/nodes/heat.c")),
    ("heat.f90", source!("examples/heat/nodes/heat.f90")),
    ("standfast.h", source!("bindings/c/include/standfast.h")),
    ("standfast_mpi.h", source!("bindings/mpi/standfast_mpi.h")),
    ("standfast_mpi.c", source!("bindings/mpi/standfast_mpi.c")),
    ("standfast.f90", source!("bindings/fortran/standfast.f90")),
    ("standfast_mpi.f90", source!("bindings/fortran/standfast_mpi.f90")),
];

/// The solver's source, for people.
pub(super) fn source(language: Language) -> &'static str {
    match language {
        Language::C => "examples/heat/nodes/heat.c",
        Language::Fortran => "examples/heat/nodes/heat.f90",
    }
}

/// Compiles the solver in a directory of its own.
pub(super) fn build(tools: &Tools, dir: &Path) -> Result<PathBuf> {
    std::fs::create_dir_all(dir).map_err(|error| Failure::os("make", dir.display(), error))?;
    for (name, text) in SOURCES {
        let path = dir.join(name);
        std::fs::write(&path, text).map_err(|error| Failure::os("write", path.display(), error))?;
    }
    // By the names that linkers and loaders look for.
    for name in ["libstandfast.so", concat!("libstandfast.so.", env!("CARGO_PKG_VERSION_MAJOR"))] {
        symlink(&tools.library, dir.join(name))
            .map_err(|error| Failure::os("link", tools.library.display(), error))?;
    }
    // Nothing fused, so that every processor computes the same.
    let options = ["-O2", "-ffp-contract=off"];
    let rpath = format!("-Wl,--disable-new-dtags,-rpath,{}", dir.display());
    let link = ["-o", "heat", "-L.", "-lstandfast", "-lm", rpath.as_str()];
    let words: Vec<&str> = match tools.language {
        Language::C => vec!["-std=c99", "-I.", "heat.c", "standfast_mpi.c"],
        Language::Fortran => {
            compile(dir, &tools.mpicc, &["-O2", "-I.", "-c", "standfast_mpi.c"])?;
            vec!["standfast.f90", "standfast_mpi.f90", "heat.f90", "standfast_mpi.o"]
        }
    };
    let compiler = match tools.language {
        Language::C => &tools.mpicc,
        Language::Fortran => &tools.mpifort,
    };
    compile(dir, compiler, &[&options[..], &words, &link].concat())?;
    Ok(dir.join("heat"))
}

fn compile(dir: &Path, compiler: &str, words: &[impl AsRef<OsStr>]) -> Result<()> {
    let output = Command::new(compiler)
        .args(words)
        .current_dir(dir)
        .output()
        .map_err(|error| Failure::os("start", compiler, error))?;
    if output.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    Err(Failure::new(Kind::Unsupported, format!("{compiler} cannot build the solver: {said}"))
        .advise("'standfast demo --solo' needs no compiler"))
}
