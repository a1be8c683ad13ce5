//! The MPIs of this machine, called by their full names: which one `mpicc` means does not matter.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::installed::{build, package, prefix, run};
use standfast_testkit::must::leave_out;

/// An MPI.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mpi {
    Open,
    Mpich,
}

impl Mpi {
    /// Those that are installed. Without any there is nothing to test.
    pub(crate) fn all() -> Vec<Self> {
        let all = [Self::Open, Self::Mpich].into_iter();
        let (found, missing): (Vec<_>, Vec<_>) = all.partition(|mpi| mpi.is_there());
        for mpi in missing {
            let tool = mpi.tool("mpicc");
            leave_out("mpi", format!("there is no {tool}; scripts/deps.sh test installs it"));
        }
        found
    }

    fn is_there(self) -> bool {
        Command::new(self.tool("mpicc")).arg("--version").output().is_ok()
    }

    /// The full name of a tool of this MPI.
    pub(crate) fn tool(self, tool: &str) -> String {
        match self {
            Self::Open => format!("{tool}.openmpi"),
            Self::Mpich => format!("{tool}.mpich"),
        }
    }

    /// The most ranks that can be tested: MPICH's waits are hard on a small machine.
    pub(crate) fn ranks_max(self) -> usize {
        match self {
            Self::Open => 7,
            Self::Mpich => 4,
        }
    }

    /// Runs a program on so many ranks of this machine; more than it has processors, if need be.
    pub(crate) fn launch(self, ranks: usize, program: &Path) -> Command {
        // A launcher that hangs is ended, and says so by its status.
        let mut command = Command::new("timeout");
        command.args(["--kill-after=10", "150"]).arg(self.tool("mpirun"));
        match self {
            Self::Open => {
                command.args(["--allow-run-as-root", "--oversubscribe", "--bind-to", "none"]);
                command.args(["--mca", "mpi_yield_when_idle", "1"]);
            }
            // Over TCP it hangs in MPI_Finalize now and then, even without having sent anything.
            Self::Mpich => {
                command.args(["-genv", "UCX_TLS", "self,sysv,posix"]);
            }
        }
        command.arg("-n").arg(ranks.to_string()).arg(program);
        command.env("RUST_BACKTRACE", "0");
        command
    }
}

/// One launch at a time: ranks that wait are busy, and would slow each other down.
pub(crate) fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

fn is_fortran(source: &Path) -> bool {
    source.extension().is_some_and(|extension| extension == "f90")
}

/// Compiles and links sources in C and Fortran as users do, with the compilers of an MPI.
pub(crate) fn compile(mpi: Mpi, sources: &[PathBuf], options: &[&str], into: &Path) -> PathBuf {
    let program = into.join("program");
    let mut objects = Vec::new();
    for (at, source) in sources.iter().enumerate() {
        let object = into.join(format!("{at}.o"));
        let compiler = if is_fortran(source) { "mpifort" } else { "mpicc" };
        let mut command = Command::new(mpi.tool(compiler));
        command.current_dir(into).args(["-c", "-O1", "-Wall", "-Wextra", "-Werror"]).args(options);
        if !is_fortran(source) {
            command.args(["-std=c99", "-Wpedantic", "-I"]).arg(prefix().join("include"));
            command.arg("-I").arg(package().join("c"));
            command.arg("-I").arg(package().join("../../bindings/c/tests/c"));
        }
        run(command.arg(source).arg("-o").arg(&object));
        objects.push(object);
    }
    let linker = if sources.iter().any(|source| is_fortran(source)) { "mpifort" } else { "mpicc" };
    let mut link = Command::new(mpi.tool(linker));
    // Cargo's LD_LIBRARY_PATH may have an older copy of the library: this path comes before it.
    link.args(objects).arg("-Wl,--disable-new-dtags").arg("-o").arg(&program);
    for directory in [prefix().join("lib"), build()] {
        link.arg("-L").arg(&directory).arg(format!("-Wl,-rpath,{}", directory.display()));
    }
    run(link.args(["-lstandfast", "-lmpi_programs"]));
    program
}

/// A source that `install.sh` has put there for programs to compile.
pub(crate) fn installed_source(name: &str) -> PathBuf {
    prefix().join("share/standfast").join(name)
}

/// A source of these tests.
pub(crate) fn source(name: &str) -> PathBuf {
    package().join(name)
}
