//! Questions to an agent that need no session: is it there, what does it do, end, finish.

use std::fs::File;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use rustix::fs::FlockOperation;
use rustix::io::Errno;

use super::{Connected, SILENCE_MAX, ask, call, connect, greet, next};
use crate::error::{Error, Result};
use crate::message::{Reply, Request};
use crate::place::Place;
use crate::status::Status;
use crate::wire;

/// How long a started agent may take until it answers.
const START_MAX: Duration = Duration::from_secs(5);
/// How long an agent that has agreed to end may take.
const STOP_MAX: Duration = Duration::from_secs(30);
/// How often it is looked whether it has ended.
const TICK: Duration = Duration::from_millis(5);

/// What the agent of a directory does.
pub fn status(place: &Place) -> Result<Status> {
    match request(place, &Request::Status, SILENCE_MAX)? {
        Reply::Status(status) => Ok(*status),
        _ => Err(Error::Protocol("it does not tell its status")),
    }
}

/// Tells the agent to end when no commit runs; `now`: also if ranks use it, and one that has not ended in
/// time, or does not answer, is killed. Returns when it has ended.
pub fn stop(place: &Place, now: bool) -> Result<()> {
    // Free when it has ended, and not before.
    let lock = place.open_lock()?;
    let (stream, process) = call(place, SILENCE_MAX)?;
    let asked = greet(&stream).and_then(|mut inbox| {
        wire::send(&stream, &Request::Stop { now }, None)?;
        ask(&mut inbox)
    });
    let most = match asked {
        Ok(Reply::Stopping) => STOP_MAX,
        Ok(_) if !now => return Err(Error::Protocol("it does not stop")),
        Err(error) if !now => return Err(error),
        _ => Duration::ZERO,
    };
    match (is_free_within(&lock, most)?, now) {
        (true, _) => return Ok(()),
        (false, true) => process.end()?,
        (false, false) => return Err(Error::Working),
    }
    match is_free_within(&lock, SILENCE_MAX)? {
        true => Ok(()),
        false => Err(Error::Silent),
    }
}

/// Whether nobody holds the agent's lock, now or soon.
fn is_free_within(lock: &File, most: Duration) -> Result<bool> {
    let began = Instant::now();
    loop {
        match rustix::fs::flock(lock, FlockOperation::NonBlockingLockShared) {
            Ok(()) => return Ok(true),
            Err(Errno::WOULDBLOCK) if began.elapsed() < most => std::thread::sleep(TICK),
            Err(Errno::WOULDBLOCK) => return Ok(false),
            Err(errno) => return Err(Error::os("wait for the agent's end")(errno)),
        }
    }
}

/// Waits until an agent that runs has finished what dead ranks have left it for this store, or so
/// long; one that says nothing is not waited for. Where none runs there is nothing to wait for.
pub fn flush(place: &Place, store: &str, most: Duration) -> Result<()> {
    match request(place, &Request::Flush { store: store.into() }, most) {
        Ok(Reply::Flushed) => Ok(()),
        Ok(_) => Err(Error::Protocol("it does not flush")),
        // None runs, or it has just ended and with it all it had to do.
        Err(Error::None { .. } | Error::Lost(_)) => Ok(()),
        Err(error) => Err(error),
    }
}

/// The answer to a request. Beats show that the agent lives, and are waited for in turn, so long in all.
fn request(place: &Place, request: &Request, most: Duration) -> Result<Reply> {
    let Connected { stream, mut inbox, .. } = connect(place)?;
    wire::send(&stream, request, None)?;
    let began = Instant::now();
    loop {
        match next(&mut inbox)? {
            Reply::Beat if began.elapsed() < most => {}
            Reply::Beat => return Err(Error::Silent),
            reply => return Ok(reply),
        }
    }
}

/// Makes sure that an agent runs; `command agent start` is run if none does, and returns when one
/// answers.
pub fn start(place: &Place, command: &str, idle: Duration) -> Result<()> {
    match connect(place) {
        Ok(_) => return Ok(()),
        Err(Error::None { .. } | Error::Lost(_)) => {}
        // There is one, and says why it serves nobody, or nothing: another would find its lock held.
        Err(error) => return Err(error),
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
