//! Questions to an agent that need no session: is it there, what does it do, end, finish.

use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use super::{ask, connect, wait_at_most};
use crate::error::{Error, Result};
use crate::message::{Reply, Request};
use crate::place::Place;
use crate::status::Status;
use crate::wire;

/// How long a started agent may take until it answers.
const START_MAX: Duration = Duration::from_secs(20);

/// What the agent of a directory does.
pub fn status(place: &Place) -> Result<Status> {
    match request(place, &Request::Status)? {
        Reply::Status(status) => Ok(*status),
        _ => Err(Error::Protocol { why: "it does not tell its status" }),
    }
}

/// Tells the agent to end when no commit runs; `now`: also if ranks use it. Returns when it has
/// ended.
pub fn stop(place: &Place, now: bool) -> Result<()> {
    match request(place, &Request::Stop { now })? {
        Reply::Stopping => {}
        _ => return Err(Error::Protocol { why: "it does not stop" }),
    }
    // The lock is free when it has ended, and not before.
    let lock = place.open_lock()?;
    rustix::fs::flock(&lock, rustix::fs::FlockOperation::LockShared)
        .map_err(Error::os("wait for the agent's end"))
}

/// Waits until an agent that runs has finished what dead ranks have left it for this store, or so
/// long. Where none runs there is nothing to wait for.
pub fn flush(place: &Place, store: &str, most: Option<Duration>) -> Result<()> {
    match request_within(place, &Request::Flush { store: store.into() }, most) {
        Ok(Reply::Flushed) => Ok(()),
        Ok(_) => Err(Error::Protocol { why: "it does not flush" }),
        // None runs, or it has just ended and with it all it had to do.
        Err(Error::None { .. } | Error::Lost { .. }) => Ok(()),
        Err(error) => Err(error),
    }
}

fn request(place: &Place, request: &Request) -> Result<Reply> {
    request_within(place, request, None)
}

fn request_within(place: &Place, request: &Request, most: Option<Duration>) -> Result<Reply> {
    let (stream, mut inbox) = connect(place)?;
    wait_at_most(&stream, most)?;
    wire::send(&stream, request, None)?;
    ask(&mut inbox)
}

/// Makes sure that an agent runs; `command agent start` is run if none does, and returns when one
/// answers.
pub fn start(place: &Place, command: &str, idle: Duration) -> Result<()> {
    if connect(place).is_ok() {
        return Ok(());
    }
    let failed = |why: String| Error::Start { command: command.into(), why };
    let mut child = Command::new(command)
        .args(["agent", "start", "--dir"])
        .arg(place.dir())
        .args(["--idle", &format!("{}ms", idle.as_millis())])
        // What is loaded into the program has no business in the agent.
        .env_remove("LD_PRELOAD")
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .map_err(|error| failed(format!("{error} (setting agent_command)")))?;
    let began = Instant::now();
    loop {
        match child.try_wait() {
            Ok(Some(status)) if status.success() => break,
            Ok(Some(status)) => return Err(failed(format!("it ended with {status}"))),
            // Somebody else has taken the child's end (a program that reaps all its children).
            Err(_) => break,
            Ok(None) if began.elapsed() > START_MAX => {
                let _ = child.kill();
                let _ = child.wait();
                return Err(failed("it does not come to an end".into()));
            }
            Ok(None) => std::thread::sleep(Duration::from_millis(2)),
        }
    }
    connect(place).map(drop)
}
