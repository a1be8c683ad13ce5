//! Starting a program under the library.
//!
//! Invariants:
//! - Addresses are not randomised: a checkpoint only fits the same layout.
//! - What the library is told travels in three variables, which it removes before `main`.

use std::ffi::OsString;
use std::os::fd::{AsRawFd, RawFd};
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, Command};

use standfast::config::{KEYS, Loaded, Signal};

use crate::error::{Error, Result};
use crate::resume::Prepared;

/// Variable with the job's settings, `name=value` lines.
pub const SETTINGS: &str = "STANDFAST_PRELOAD_SETTINGS";
/// Variable with the number of the signal that asks for a checkpoint.
pub const SIGNAL: &str = "STANDFAST_PRELOAD_SIGNAL";
/// Variable with the descriptor of the file to resume from, a colon, and the length of the
/// description at its beginning.
pub const RESUME: &str = "STANDFAST_PRELOAD_RESUME";

/// How a program is started.
pub struct Launch {
    /// The preload library.
    pub library: PathBuf,
    /// The job's settings.
    pub loaded: Loaded,
    /// The signal that asks for a checkpoint.
    pub signal: Signal,
}

impl Launch {
    /// Starts a program, from its beginning or from a checkpoint.
    pub fn spawn(&self, mut command: Command, resume: Option<&Prepared>) -> Result<Child> {
        command.env("LD_PRELOAD", self.preload());
        command
            .env(SETTINGS, settings(&self.loaded)?)
            .env(SIGNAL, self.signal.number().to_string());
        let file = resume.map(|prepared| prepared.file.as_raw_fd());
        match resume {
            Some(Prepared { file, described_bytes, .. }) => {
                command.env(RESUME, format!("{}:{described_bytes}", file.as_raw_fd()))
            }
            None => command.env_remove(RESUME),
        };
        // SAFETY: only two system calls are made between fork and exec.
        unsafe { command.pre_exec(move || prepare_exec(file)) };
        let what = format!("start {}", command.get_program().to_string_lossy());
        command.spawn().map_err(Error::os(what))
    }

    /// Our library first: its malloc must be the one that is found.
    fn preload(&self) -> OsString {
        let mut all = self.library.clone().into_os_string();
        if let Some(others) = std::env::var_os("LD_PRELOAD").filter(|others| !others.is_empty()) {
            all.push(":");
            all.push(others);
        }
        all
    }
}

fn prepare_exec(file: Option<RawFd>) -> std::io::Result<()> {
    let fail = |result: i32| match result {
        -1 => Err(std::io::Error::last_os_error()),
        _ => Ok(()),
    };
    // SAFETY: plain system calls on this process.
    fail(unsafe { libc::personality(libc::ADDR_NO_RANDOMIZE as libc::c_ulong) })?;
    match file {
        // SAFETY: as above; the descriptor is open, for its owner outlives the start.
        Some(fd) => fail(unsafe { libc::fcntl(fd, libc::F_SETFD, 0) }),
        None => Ok(()),
    }
}

/// Every setting as text, with places that do not depend on the working directory. The library
/// captures by itself, and is told when by a signal of its own.
fn settings(loaded: &Loaded) -> Result<String> {
    let mut text = String::new();
    let own = ["capture", "interval", "signal"];
    for key in KEYS.iter().filter(|key| !own.contains(&key.name)) {
        let mut value = (key.show)(&loaded.settings);
        let is_place = ["store", "global"].contains(&key.name) && value != "off";
        if is_place && !value.contains("://") {
            let path = std::path::absolute(&value).map_err(Error::os("find the store"))?;
            value = path.to_string_lossy().into_owned();
        }
        text.push_str(&format!("{}={value}\n", key.name));
    }
    for (name, value) in loaded.lab.iter().filter(|(name, _)| *name != "track") {
        text.push_str(&format!("lab.{name}={value}\n"));
    }
    Ok(text)
}
