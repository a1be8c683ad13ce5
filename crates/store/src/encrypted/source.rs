//! Where a key comes from: a file that only its owner can read, or a command that prints it.

use std::fmt;
use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::str::FromStr;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use standfast_format::Kind;

use super::key::Key;
use crate::error::{Error, Result};

/// What commands begin with.
const COMMAND: char = '!';
/// How long a command may take.
const COMMAND_TIME: Duration = Duration::from_secs(60);
/// What a key must look like.
const WANTED: &str = "a key is 64 hexadecimal digits, such as 'openssl rand -hex 32' prints";

/// `FILE` or `!COMMAND`, and the key once it was read. Clones share it.
#[derive(Clone, Debug)]
pub struct KeySource {
    text: String,
    loaded: Arc<OnceLock<Key>>,
}

impl PartialEq for KeySource {
    fn eq(&self, other: &Self) -> bool {
        self.text == other.text
    }
}

impl Eq for KeySource {}

impl FromStr for KeySource {
    type Err = String;

    fn from_str(text: &str) -> std::result::Result<Self, String> {
        match text.trim_start_matches(COMMAND).trim().is_empty() {
            true => Err(format!("{text:?} is no file and no command (!COMMAND)")),
            false => Ok(Self { text: text.into(), loaded: Arc::default() }),
        }
    }
}

impl fmt::Display for KeySource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl KeySource {
    /// Whether a command prints the key.
    pub fn is_command(&self) -> bool {
        self.text.starts_with(COMMAND)
    }

    /// The same for another process: a file by its whole path.
    #[doc(hidden)]
    pub fn absolute(&self) -> String {
        let path = std::path::absolute(&self.text).ok().filter(|_| !self.is_command());
        path.and_then(|path| path.to_str().map(str::to_owned)).unwrap_or_else(|| self.text.clone())
    }

    /// Reads the key, the first time.
    #[doc(hidden)]
    pub fn key(&self) -> Result<&Key> {
        if let Some(key) = self.loaded.get() {
            return Ok(key);
        }
        let key = match self.text.strip_prefix(COMMAND) {
            Some(command) => run(command)?,
            None => self.read_file()?,
        };
        Ok(self.loaded.get_or_init(|| key))
    }

    fn read_file(&self) -> Result<Key> {
        let path = &self.text;
        let unreadable =
            |error: io::Error| refused(Kind::of_io(&error), format!("cannot read {path}: {error}"));
        // Without waiting for whoever writes to a pipe.
        let mut options = File::options();
        let file = options.read(true).custom_flags(libc::O_NONBLOCK).open(path);
        let file = file.map_err(unreadable)?;
        let meta = file.metadata().map_err(unreadable)?;
        if !meta.is_file() {
            return Err(refused(Kind::Invalid, format!("{path} is not a file")));
        }
        if meta.mode() & 0o077 != 0 {
            return Err(refused(Kind::Denied, format!("others can read {path}; chmod 600 it")));
        }
        if ![0, rustix::process::geteuid().as_raw()].contains(&meta.uid()) {
            return Err(refused(Kind::Denied, format!("{path} belongs to another user")));
        }
        let key = Key::read(file).map_err(unreadable)?;
        key.ok_or_else(|| refused(Kind::Invalid, format!("{path} holds no key: {WANTED}")))
    }
}

/// Lets a shell run a command and reads what it prints. The command's text is in no message: it may
/// be a secret, too.
fn run(command: &str) -> Result<Key> {
    let cannot = |error: io::Error| {
        refused(Kind::of_io(&error), format!("the command cannot be run: {error}"))
    };
    let end = Instant::now() + COMMAND_TIME;
    let mut shell = Command::new("/bin/sh");
    shell.arg("-c").arg(command).stdin(Stdio::null()).stdout(Stdio::piped());
    let mut child = shell.spawn().map_err(cannot)?;
    let pipe = child.stdout.take().expect("asked for");
    let key = Key::read(Printed { pipe, end });
    let ended = wait(&mut child, end);
    if key.is_err() || !matches!(ended, Ok(Some(true))) {
        let _ = child.kill();
        let _ = child.wait();
    }
    let key = key.map_err(cannot)?;
    match ended.map_err(cannot)? {
        Some(true) => key
            .ok_or_else(|| refused(Kind::Invalid, format!("the command prints no key: {WANTED}"))),
        Some(false) => Err(refused(Kind::Invalid, "the command failed".into())),
        None => Err(refused(Kind::Transient, "the command does not end".into())),
    }
}

/// Whether a command succeeded; `None` if it still runs at that time.
fn wait(child: &mut Child, end: Instant) -> io::Result<Option<bool>> {
    loop {
        match child.try_wait()? {
            Some(status) => return Ok(Some(status.success())),
            None if Instant::now() >= end => return Ok(None),
            None => std::thread::sleep(Duration::from_millis(2)),
        }
    }
}

/// What a command prints, until its time is over.
struct Printed {
    pipe: ChildStdout,
    end: Instant,
}

impl Read for Printed {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        let left = self.end.saturating_duration_since(Instant::now());
        let left = Timespec::try_from(left).map_err(io::Error::other)?;
        let mut ready = [PollFd::new(&self.pipe, PollFlags::IN)];
        match poll(&mut ready, Some(&left))? {
            0 => Err(io::ErrorKind::TimedOut.into()),
            _ => self.pipe.read(buf),
        }
    }
}

fn refused(kind: Kind, why: String) -> Error {
    Error::Key { kind, why }
}
