//! The twin: a forked copy of the program that writes the checkpoint and exits.
//!
//! ```text
//! fork -> what the twin is going to change is copied first ([`volatile`])
//!      -> description and pieces ([`describe`], [`pages`]) -> engine -> exit code
//! ```
//! Invariants:
//! - Until the copies are made nothing is allocated and no library is called.
//! - The twin shares files with the program: it moves no position and writes nothing but its
//!   complaint.

mod describe;
mod pages;
mod volatile;

use std::panic::{AssertUnwindSafe, catch_unwind};

use standfast::{Job, Kind, Level, Retry};
use standfast_launch::{TWIN, plan, resume};

use crate::allocator;
use crate::control::Control;
use crate::system::{self, sys};
use describe::Described;
use volatile::Copies;

/// How long starting a thread may take, in seconds: a thread of the program may have been stopped
/// inside of the C library, with a lock that this needs.
const START_S: usize = 20;
/// The program's own work comes first.
const NICENESS: usize = 5;

/// Writes the checkpoint and ends the process.
pub(crate) fn run(control: &Control) -> ! {
    // SAFETY: the name, by which the launcher knows it, ends with 0.
    unsafe { sys!(libc::SYS_prctl, libc::PR_SET_NAME, TWIN.as_ptr()) };
    let stack = control.slots[0].thread.context as usize;
    let Some(copies) = Copies::take(control, stack) else {
        system::say(&[b"standfast: no checkpoint: no memory for the twin\n"]);
        system::exit(Kind::Full.exit_code());
    };
    allocator::enter_engine();
    let written = catch_unwind(AssertUnwindSafe(|| write(control, &copies)));
    match written {
        Ok(Ok(())) => system::exit(0),
        Ok(Err(failure)) => failure.end(),
        Err(_) => Failure::new(Kind::Bug, "Standfast is broken; please report it").end(),
    }
}

/// Why there is no checkpoint.
struct Failure {
    kind: Kind,
    why: String,
}

impl Failure {
    fn new(kind: Kind, why: impl Into<String>) -> Self {
        Self { kind, why: why.into() }
    }

    /// Says so and ends the twin; who waits for it learns the kind.
    fn end(self) -> ! {
        let next = match self.kind.retry() {
            Retry::AfterAction => "; put that right, and the next checkpoint is taken as usual",
            _ => "; the program goes on without it",
        };
        let parts = [b"standfast: no checkpoint: ", self.why.as_bytes(), next.as_bytes(), b"\n"];
        // In one piece: the program may be writing as well.
        system::say(&[&parts.concat()]);
        system::exit(self.kind.exit_code());
    }
}

impl From<standfast::Error> for Failure {
    fn from(error: standfast::Error) -> Self {
        Self::new(error.kind(), error.to_string())
    }
}

fn write(control: &Control, copies: &Copies) -> Result<(), Failure> {
    let described = describe::describe(control, copies);
    let described = described.map_err(|why| Failure::new(Kind::Unsupported, why))?;
    part_from_the_program();
    prove_that_threads_start().map_err(|why| Failure::new(Kind::Transient, why))?;
    Ok(store(control, &described)?)
}

/// Lets go of what the program would miss: its process group, its descriptors, its signals.
fn part_from_the_program() {
    // SAFETY: plain calls on this process; nothing of the twin uses those descriptors.
    unsafe {
        let all = u64::MAX;
        sys!(libc::SYS_rt_sigprocmask, libc::SIG_SETMASK, &raw const all, 0, 8);
        sys!(libc::SYS_setpgid, 0, 0);
        sys!(libc::SYS_setpriority, libc::PRIO_PROCESS, 0, NICENESS);
        sys!(libc::SYS_close_range, 3, u32::MAX, 0);
    }
    if let Some(null) = system::open(c"/dev/null", libc::O_RDWR) {
        for fd in [0, 1] {
            // SAFETY: as above.
            unsafe { sys!(libc::SYS_dup2, null, fd) };
        }
        system::close(null);
    }
}

fn prove_that_threads_start() -> Result<(), String> {
    // SAFETY: the handler ends the twin; only this signal is let through.
    unsafe {
        let alarm = 1u64 << (libc::SIGALRM - 1);
        libc::signal(libc::SIGALRM, give_up as *const () as libc::sighandler_t);
        sys!(libc::SYS_rt_sigprocmask, libc::SIG_UNBLOCK, &raw const alarm, 0, 8);
        sys!(libc::SYS_alarm, START_S);
    }
    let started = std::thread::Builder::new().spawn(|| ());
    let ended = started.map_err(|error| format!("no thread can be started: {error}"))?.join();
    // SAFETY: takes the alarm back.
    unsafe { sys!(libc::SYS_alarm, 0) };
    ended.map_err(|_| "a thread that does nothing failed".to_owned())
}

/// The handler of the alarm.
extern "C" fn give_up(_: i32) {
    let why = b"standfast: no checkpoint: a thread of the program was stopped inside of the C library; the next one is taken as usual\n";
    system::say(&[why]);
    system::exit(Kind::Transient.exit_code());
}

fn store(control: &Control, described: &Described) -> standfast::Result<()> {
    let text = String::from_utf8_lossy(control.settings()).into_owned();
    let mut settings: Vec<(&str, &str)> =
        text.lines().filter_map(|line| line.split_once('=')).collect();
    // The twin stands still by nature, and lives for one checkpoint: nothing to track.
    settings.push(("lab.track", "hash"));
    let job = Job::open(&settings)?;
    let mut description = described.draft.encode();
    // SAFETY: all of it is mapped and left alone until the process ends.
    unsafe {
        job.protect(plan::REGION, description.as_mut_ptr(), description.len(), 0)?;
        for (piece, source) in described.draft.pieces.iter().zip(&described.sources) {
            job.protect(&resume::region(piece.start), *source, piece.bytes as usize, 0)?;
        }
    }
    let version = job.checkpoint(None)?;
    job.wait(version, Level::Local)?;
    job.close()
}
