//! This program's own ranks under MPI.
//!
//! ```text
//! mpicc       the adapter and what starts MPI -> a library
//! mpirun      starts this program again, as many times as there are ranks: `mpi-rank`
//! mpi-rank    opens the library, starts MPI, and does its part on the communicator
//! ```
//! So one binary, linked with no MPI, runs on whichever is installed.

pub(crate) mod bars;
pub(crate) mod heard;
pub(crate) mod life;
pub(crate) mod rank;

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, bail};

/// The slowest rank's times, as the ranks print them.
#[derive(serde::Deserialize)]
pub(crate) struct Pace {
    /// Deciding who stores what.
    pub(crate) collective_s: f64,
    /// Hashing as many pages.
    pub(crate) hashing_s: f64,
}

/// Compiler and launcher of each MPI, as Debian names them, then as everybody does.
const KINDS: [(&str, &str); 2] = [("mpicc.openmpi", "mpirun.openmpi"), ("mpicc", "mpirun")];

/// An MPI that is installed, with the library made for it.
pub(crate) struct Launcher {
    run: &'static str,
    library: PathBuf,
    /// Holds the library.
    _dir: tempfile::TempDir,
}

impl Launcher {
    /// Compiles the library for the first MPI that is found; `None` if there is none.
    pub(crate) fn find() -> anyhow::Result<Option<Self>> {
        let works = |compiler: &str| {
            let asked = Command::new(compiler)
                .arg("--version")
                .stdout(Stdio::null())
                .stderr(Stdio::null())
                .status();
            asked.is_ok_and(|status| status.success())
        };
        let Some((compiler, run)) = KINDS.into_iter().find(|(compiler, _)| works(compiler)) else {
            return Ok(None);
        };
        let dir = tempfile::tempdir()?;
        let library = dir.path().join("adapter.so");
        compile(compiler, &library)?;
        Ok(Some(Self { run, library, _dir: dir }))
    }

    /// The command that runs `mpi-rank` with these arguments on so many ranks.
    pub(crate) fn command(&self, ranks: usize, args: &[String]) -> anyhow::Result<Command> {
        self.command_by(Command::new(self.run), ranks, args)
    }

    /// The launcher's name.
    pub(crate) fn name(&self) -> &'static str {
        self.run
    }

    /// The same with options of the launcher: `command` runs it, and has them.
    pub(crate) fn command_by(
        &self,
        mut command: Command,
        ranks: usize,
        args: &[String],
    ) -> anyhow::Result<Command> {
        command
            .args(["--allow-run-as-root", "--oversubscribe", "--bind-to", "none"])
            .args(["--mca", "mpi_yield_when_idle", "1"])
            .args(["-n", &ranks.to_string()])
            .arg(std::env::current_exe()?)
            .arg("mpi-rank")
            .arg("--library")
            .arg(&self.library)
            .args(args)
            .stdin(Stdio::null());
        Ok(command)
    }

    /// The collective phase beside hashing on so many ranks, each with so many pages.
    pub(crate) fn pace(
        &self,
        ranks: usize,
        pages: usize,
        rounds: usize,
        threshold: Option<u32>,
    ) -> anyhow::Result<Pace> {
        let mut args =
            vec!["pace".into(), format!("--pages={pages}"), format!("--rounds={rounds}")];
        args.extend(threshold.map(|pages| format!("--threshold={pages}")));
        let told = self.output(ranks, &args)?;
        serde_json::from_str(told.trim()).with_context(|| format!("the ranks said {told:?}"))
    }

    /// Runs it to its end; its ranks write down what they find.
    pub(crate) fn run(&self, ranks: usize, args: &[String]) -> anyhow::Result<()> {
        self.output(ranks, args).map(drop)
    }

    /// Runs it to its end and returns what was printed.
    fn output(&self, ranks: usize, args: &[String]) -> anyhow::Result<String> {
        let output = self.command(ranks, args)?.stderr(Stdio::inherit()).output()?;
        if !output.status.success() {
            bail!("{} ended with {}", self.run, output.status);
        }
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    }
}

fn compile(compiler: &str, library: &Path) -> anyhow::Result<()> {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let bindings = here.join("../../bindings");
    let status = Command::new(compiler)
        .args(["-O2", "-shared", "-fPIC"])
        .arg("-I")
        .arg(bindings.join("c/include"))
        .arg("-I")
        .arg(bindings.join("mpi"))
        .arg("-o")
        .arg(library)
        .arg(bindings.join("mpi/standfast_mpi.c"))
        .arg(bindings.join("mpi/standfast_start.c"))
        .status()
        .with_context(|| format!("running {compiler}"))?;
    if !status.success() {
        bail!("{compiler} cannot compile the adapter");
    }
    Ok(())
}
