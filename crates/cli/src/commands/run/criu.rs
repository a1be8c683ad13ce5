//! Whole processes by CRIU, its images kept by our store.
//!
//! ```text
//! checkpoint: criu dump, the process goes on -> directory -> [`images::store`]
//! restart:    [`images::restore`] -> directory -> criu restore -> a child of this process again
//! ```
//! Invariants:
//! - The directories are temporary and readable by their owner only.
//! - A dump that fails leaves the process running.

use std::fs;
use std::path::Path;
use std::process::{Command, Output as Ran};

use libc::pid_t;
use standfast::config::{Loaded, RestartFrom};
use standfast::{Kind, Version};
use tempfile::TempDir;

use super::plain::command;
use super::{Cause, Way, adopt_orphans, images, mark, told_anew};
use crate::args::RunArgs;
use crate::failure::{Failure, Result};
use crate::output::Output;

/// Among the images: what the standard streams were.
const STREAMS: &str = "standfast-streams";
const LOG: &str = "criu.log";
/// How much of CRIU's log is shown.
const LOG_LINES: usize = 5;

pub(super) struct Criu<'a> {
    args: &'a RunArgs,
    loaded: Loaded,
    output: &'a Output,
}

impl<'a> Criu<'a> {
    /// Finds out first whether CRIU can do it here.
    pub(super) fn new(args: &'a RunArgs, loaded: Loaded, output: &'a Output) -> Result<Self> {
        let checked = Command::new("criu").arg("check").output();
        let checked = checked.map_err(|error| match error.kind() {
            std::io::ErrorKind::NotFound => Failure::new(
                Kind::Unsupported,
                "criu is not installed (no such command in PATH)",
            )
            .advise(
                "install CRIU (Debian: apt install criu), or use --preload, which needs nothing",
            ),
            _ => Failure::os("start", "criu", error),
        })?;
        if checked.status.success() {
            adopt_orphans()?;
            return Ok(Self { args, loaded, output });
        }
        let why = last_words(&checked);
        Err(Failure::new(Kind::Unsupported, format!("criu cannot work here: 'criu check' says {why}"))
            .advise("CRIU needs root (or CAP_CHECKPOINT_RESTORE) and a kernel that it knows; --preload needs neither"))
    }
}

impl Way for Criu<'_> {
    fn start(&mut self, from: RestartFrom) -> Result<(pid_t, Option<Version>)> {
        let dir = scratch()?;
        let mut loaded = self.loaded.clone();
        loaded.config.timing.from = from;
        let version = match images::restore(&loaded, &self.args.command, dir.path())? {
            Ok(version) => version,
            Err(anew) => {
                told_anew(self.output, &anew);
                None
            }
        };
        let Some(version) = version else {
            let what = self.args.command[0].to_string_lossy();
            let child =
                command(self.args).spawn().map_err(|error| Failure::os("start", what, error))?;
            return Ok((child.id() as pid_t, None));
        };
        restore(dir.path()).map(|pid| (pid, Some(version)))
    }

    fn checkpoint(&mut self, pid: pid_t, _: Cause) -> Result<()> {
        let dir = scratch()?;
        note_streams(pid, dir.path())?;
        let (target, place) = (pid.to_string(), path_text(dir.path()));
        let args = ["dump", "--tree", &target, "--images-dir", &place, "--leave-running"];
        succeed(&[&args[..], &COMMON].concat(), dir.path())?;
        // The log differs every time and is of no use later.
        let _ = fs::remove_file(dir.path().join(LOG));
        images::store(&self.loaded, dir.path()).map(|_| ())
    }

    fn ended(&mut self, well: bool) -> Result<()> {
        if well { mark(&self.loaded.config, true) } else { Ok(()) }
    }

    fn is_durable(&mut self) -> bool {
        // A call that has returned has stored it.
        true
    }
}

/// What dumps and restores have in common: a terminal may be there, and a log always is.
const COMMON: [&str; 3] = ["--shell-job", "--log-file", LOG];

fn restore(dir: &Path) -> Result<pid_t> {
    let (place, pidfile) = (path_text(dir), path_text(&dir.join("restored.pid")));
    let streams = inherited(dir);
    let mut args = vec!["restore", "--images-dir", &place, "--pidfile", &pidfile];
    // Detached, and a sibling of CRIU: a child of ours, whose end we can wait for.
    args.extend(["--restore-detached", "--restore-sibling"]);
    args.extend(COMMON);
    for stream in &streams {
        args.extend(["--inherit-fd", stream]);
    }
    succeed(&args, dir)?;
    let text =
        fs::read_to_string(&pidfile).map_err(|error| Failure::os("read", &pidfile, error))?;
    text.trim().parse().map_err(|_| Failure::new(Kind::Io, "criu gives no process number"))
}

/// Remembers what descriptors 0 to 2 are: pipes have to be replaced by those of the next run.
fn note_streams(pid: pid_t, dir: &Path) -> Result<()> {
    let links = (0..3).map(|fd| {
        fs::read_link(format!("/proc/{pid}/fd/{fd}"))
            .map_or_else(|_| String::new(), |link| link.to_string_lossy().into_owned())
    });
    let text = links.collect::<Vec<_>>().join("\n");
    let path = dir.join(STREAMS);
    fs::write(&path, text).map_err(|error| Failure::os("write", path.display(), error))
}

fn inherited(dir: &Path) -> Vec<String> {
    let text = fs::read_to_string(dir.join(STREAMS)).unwrap_or_default();
    let links = text.lines().enumerate();
    links
        .filter(|(_, link)| link.starts_with("pipe:"))
        .map(|(fd, link)| format!("fd[{fd}]:{link}"))
        .collect()
}

fn succeed(args: &[&str], dir: &Path) -> Result<()> {
    let mut command = Command::new("criu");
    let status =
        command.args(args).status().map_err(|error| Failure::os("start", "criu", error))?;
    if status.success() {
        return Ok(());
    }
    let log = fs::read_to_string(dir.join(LOG)).unwrap_or_default();
    let errors: Vec<&str> = log.lines().filter(|line| line.contains("Error")).collect();
    let shown = errors[errors.len().saturating_sub(LOG_LINES)..].join("; ");
    let what = format!("criu {} failed ({status}): {shown}", args[0]);
    Err(Failure::new(Kind::Unsupported, what)
        .advise("its log tells what this process has that CRIU cannot take; --preload may do"))
}

fn last_words(ran: &Ran) -> String {
    let text = String::from_utf8_lossy(&ran.stderr).into_owned();
    let said = text.lines().rfind(|line| !line.trim().is_empty()).map(str::trim);
    said.map_or_else(|| format!("nothing ({})", ran.status), |line| format!("{line:?}"))
}

fn scratch() -> Result<TempDir> {
    let made = tempfile::Builder::new().prefix("standfast-criu-").tempdir();
    made.map_err(|error| Failure::os("make", "a temporary directory", error))
}

fn path_text(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}
