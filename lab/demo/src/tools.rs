//! What the whole demonstration needs of this machine: an MPI, the C library, an S3 server.
//!
//! Without MPI or library there is only the command's demonstration with one process; without the server a
//! directory is global storage.

use std::path::PathBuf;
use std::process::Command;

use standfast_testkit::S3Server;

use crate::Language;

/// Names of compilers and launcher: as Debian has them beside other MPIs, then as everybody does.
const SUFFIXES: [&str; 2] = [".openmpi", ""];

/// Where the library may be, and where the solver in Rust.
const LIBRARY: &[&str] = &["libstandfast_c.so", "deps/libstandfast_c.so"];
const SOLVER: &[&str] = &["heat_nodes"];

/// What was found.
pub(crate) struct Tools {
    pub(crate) language: Language,
    /// What C is compiled with; in every language the adapter is C.
    pub(crate) mpicc: String,
    pub(crate) mpifort: String,
    pub(crate) mpirun: String,
    /// The launcher's name and version, for people.
    pub(crate) mpi: String,
    /// The command, for agents and for looking into global storage.
    pub(crate) command: PathBuf,
    /// What is beside this program: the shared library for C and Fortran, or the solver in Rust.
    pub(crate) built: PathBuf,
    /// The S3 server's program.
    pub(crate) server: Option<PathBuf>,
}

impl Tools {
    /// Looks for everything; the error says what is missing.
    pub(crate) fn find(language: Language) -> Result<Self, String> {
        let built = match language {
            Language::C | Language::Fortran => LIBRARY,
            Language::Rust => SOLVER,
        };
        let (command, built) = (beside(&["standfast"])?, beside(built)?);
        for suffix in SUFFIXES {
            let tool = |name: &str| format!("{name}{suffix}");
            let Some(mpi) = version(&tool("mpirun")) else { continue };
            let tools = Self {
                language,
                mpicc: tool("mpicc"),
                mpifort: tool("mpifort"),
                mpirun: tool("mpirun"),
                mpi,
                command: command.clone(),
                built: built.clone(),
                server: S3Server::program(),
            };
            let needed = match language {
                Language::C | Language::Rust => vec![&tools.mpicc],
                Language::Fortran => vec![&tools.mpicc, &tools.mpifort],
            };
            let missing = needed.into_iter().find(|tool| says(tool).is_none());
            return missing
                .map_or(Ok(()), |tool| Err(format!("there is no {tool}")))
                .map(|()| tools);
        }
        Err("there is no Open MPI here".into())
    }
}

/// The launcher's name and version, if it is Open MPI's: others take other options.
fn version(mpirun: &str) -> Option<String> {
    let said = says(mpirun)?;
    let first = said.lines().next()?;
    let number = first.strip_prefix("mpirun (Open MPI) ")?;
    Some(format!("Open MPI {number}"))
}

/// What a tool answers when it is asked for its version.
fn says(tool: &str) -> Option<String> {
    let output = Command::new(tool).arg("--version").output().ok()?;
    output.status.success().then(|| String::from_utf8_lossy(&output.stdout).into_owned())
}

/// Something beside this program, as cargo builds both.
pub(crate) fn beside(names: &[&str]) -> Result<PathBuf, String> {
    let command = std::env::current_exe().map_err(|error| error.to_string())?;
    let dir = command.parent().unwrap_or(&command);
    let found = names.iter().find_map(|name| dir.join(name).canonicalize().ok());
    found.ok_or_else(|| format!("there is no {} beside this program", names[0]))
}
