//! Any binary can be the agent: `X agent start` and `X agent run`.
//!
//! ```text
//! rank --runs--> X agent start --spawns, in a session of its own--> X agent run
//!                      |  waits until it answers, and ends
//! ```
//! Why two steps: the agent is nobody's child then. It leaves no zombie in the program, and what
//! ends the program's process group does not end the agent.

use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

use crate::client;
use crate::daemon::{Daemon, limits};
use crate::error::{Error, Result};
use crate::place::Place;

/// How long an agent waits without work before it ends, where nobody says.
const IDLE: Duration = Duration::from_secs(60);
/// How long to wait for a started agent to answer.
const ANSWER_MAX: Duration = Duration::from_secs(15);
/// After so long without an answer another one is started: the first may have met one that ended.
const RETRY: Duration = Duration::from_millis(300);

/// Does what stands behind the word `agent` on a command line: `start` or `run`, each with `--dir
/// DIR` and `--idle TIMEms`. Errors go to stderr.
pub fn command(words: &[String]) -> ExitCode {
    let done = parse(words).and_then(|(verb, place, idle)| match verb {
        Verb::Start => {
            let command = std::env::current_exe().map_err(Error::os("find this program"))?;
            start_beside(&place, &command, idle)
        }
        Verb::Run => run(&place, idle),
    });
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("agent: {error}");
            ExitCode::from(error.kind().exit_code() as u8)
        }
    }
}

enum Verb {
    Start,
    Run,
}

fn parse(words: &[String]) -> Result<(Verb, Place, Duration)> {
    let usage = Error::Protocol("usage: agent start|run [--dir DIR] [--idle MILLISECONDSms]");
    let (verb, mut rest) = match words {
        [verb, rest @ ..] if verb == "start" => (Verb::Start, rest),
        [verb, rest @ ..] if verb == "run" => (Verb::Run, rest),
        _ => return Err(usage),
    };
    let (mut dir, mut idle) = (None, IDLE);
    while let [option, value, after @ ..] = rest {
        match option.as_str() {
            "--dir" => dir = Some(PathBuf::from(value)),
            "--idle" => {
                let number = value.strip_suffix("ms").and_then(|number| number.parse().ok());
                idle = Duration::from_millis(number.ok_or_else(|| usage.clone())?);
            }
            _ => return Err(usage),
        }
        rest = after;
    }
    match rest {
        [] => Ok((verb, Place::open(dir.as_deref())?, idle)),
        _ => Err(usage),
    }
}

/// Starts `command agent run` detached from this process, and returns when it answers.
pub fn start_beside(place: &Place, command: &std::path::Path, idle: Duration) -> Result<()> {
    let (began, mut tried) = (Instant::now(), None::<Instant>);
    loop {
        match client::status(place) {
            Ok(_) => return Ok(()),
            Err(error) if began.elapsed() > ANSWER_MAX => return Err(error),
            Err(_) if tried.is_none_or(|tried| tried.elapsed() > RETRY) => {
                spawn(place, command, idle)?;
                tried = Some(Instant::now());
            }
            Err(_) => std::thread::sleep(Duration::from_millis(2)),
        }
    }
}

fn spawn(place: &Place, command: &std::path::Path, idle: Duration) -> Result<()> {
    let failed = |error: std::io::Error| Error::Start {
        command: command.display().to_string(),
        why: error.to_string(),
    };
    let log = place.open_log()?;
    let mut child = Command::new(command);
    child
        .args(["agent", "run", "--dir"])
        .arg(place.dir())
        .args(["--idle", &format!("{}ms", idle.as_millis())])
        .current_dir("/")
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(log);
    // SAFETY: both calls are system calls that a forked child may make; nothing is allocated.
    unsafe {
        child.pre_exec(|| {
            // What the program has open must not stay open because the agent lives.
            libc::syscall(libc::SYS_close_range, 3u32, u32::MAX, libc::CLOSE_RANGE_CLOEXEC);
            rustix::process::setsid().map(drop).map_err(Into::into)
        });
    }
    child.spawn().map(drop).map_err(failed)
}

/// Is the agent until it is idle or told to stop.
fn run(place: &Place, idle: Duration) -> Result<()> {
    // Before any thread: all of them leave the signals to the one that waits for them.
    let signals = block_signals();
    limits::raise();
    let Some(daemon) = Daemon::bind(place, idle)? else { return Ok(()) };
    let stop = daemon.stopper();
    let wait = move || {
        let mut signal = 0;
        // SAFETY: both point to live values; the set was filled in.
        while unsafe { libc::sigwait(&raw const signals, &raw mut signal) } == 0 {
            stop();
        }
    };
    std::thread::Builder::new()
        .name("sf-agent-sig".into())
        .spawn(wait)
        .map_err(Error::os("start a thread"))?;
    daemon.run();
    Ok(())
}

fn block_signals() -> libc::sigset_t {
    // SAFETY: the set is plain data that `sigemptyset` fills in before anything reads it, and the
    // other calls get pointers to it alone.
    unsafe {
        let mut set = std::mem::zeroed();
        libc::sigemptyset(&raw mut set);
        for signal in [libc::SIGTERM, libc::SIGINT, libc::SIGHUP] {
            libc::sigaddset(&raw mut set, signal);
        }
        libc::pthread_sigmask(libc::SIG_BLOCK, &raw const set, std::ptr::null_mut());
        set
    }
}
