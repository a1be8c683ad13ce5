//! Failures as the user meets them: what happened, why, and what to do next.
//!
//! Data: errors of the crates -> [`Failure`] -> text (or a JSON line) on stderr and an exit code.
//! The advice is written here and nowhere else: libraries say what and why, the command says
//! what next.

use std::io::{self, Write};
use std::process::ExitCode;

use serde_json::json;
use standfast::Kind;
use standfast_admin::drain::DrainError;
use standfast_admin::{Lock, ReadError, StoreError, Unreadable, name};

use crate::escape;
use crate::output::{BAD, FAINT, Output};

/// What next where a place has no store.
const NAME_THE_PLACE: &str = "name the place with --store (or STANDFAST_STORE, or standfast.toml)";

/// Result of a command's work.
pub(crate) type Result<T> = std::result::Result<T, Failure>;

/// Why a command ends early.
#[derive(Debug)]
pub(crate) enum Failure {
    /// Something went wrong.
    Error {
        /// What sort of failure.
        kind: Kind,
        /// What and why.
        message: String,
        /// What next, where this situation has its own advice.
        advice: Option<String>,
    },
    /// Whoever read the output has gone: nothing to say.
    ReaderGone,
    /// The user pressed Ctrl-C.
    Interrupted,
}

impl Failure {
    /// A failure without advice of its own.
    pub(crate) fn new(kind: Kind, message: impl Into<String>) -> Self {
        Failure::Error { kind, message: message.into(), advice: None }
    }

    /// Adds what to do next.
    pub(crate) fn advise(self, next: impl Into<String>) -> Self {
        match self {
            Failure::Error { kind, message, .. } => {
                Failure::Error { kind, message, advice: Some(next.into()) }
            }
            other => other,
        }
    }

    /// A failure of the operating system.
    pub(crate) fn os(verb: &str, what: impl std::fmt::Display, error: io::Error) -> Self {
        Failure::new(Kind::of_io(&error), format!("cannot {verb} {what}: {error}"))
    }

    /// Word for the kind, and the message.
    pub(crate) fn summary(&self) -> (&'static str, String) {
        match self {
            Failure::Error { kind, message, .. } => (kind.name(), message.clone()),
            Failure::ReaderGone | Failure::Interrupted => {
                ("io", "the command was cut short".into())
            }
        }
    }

    /// Tells the user and gives the exit code.
    pub(crate) fn report(&self, output: &Output) -> ExitCode {
        let Failure::Error { kind, message, advice } = self else {
            return match self {
                Failure::Interrupted => ExitCode::from(130),
                _ => ExitCode::SUCCESS,
            };
        };
        let advice = advice.as_deref().unwrap_or_else(|| general_advice(*kind));
        let text = if output.json {
            json!({
                "type": "error", "kind": kind.name(), "message": message, "advice": advice,
            })
            .to_string()
        } else {
            format!(
                "{} {}\n{} {}",
                output.paint_err(BAD, "error:"),
                escape::message(message),
                output.paint_err(FAINT, " next:"),
                escape::message(advice)
            )
        };
        // Nobody can be told that telling failed.
        let _ = writeln!(io::stderr(), "{text}");
        exit_code(*kind)
    }
}

/// The exit code of a kind.
pub(crate) fn exit_code(kind: Kind) -> ExitCode {
    ExitCode::from(u8::try_from(kind.exit_code()).expect("exit codes are below 64"))
}

/// What to do next where the situation says no more than the kind.
fn general_advice(kind: Kind) -> &'static str {
    match kind {
        Kind::Corrupt => {
            "run 'standfast verify' to see which checkpoints are intact; a restart uses the newest of them"
        }
        Kind::Missing => "'standfast ls' lists what is there; --store and --job say where to look",
        Kind::Busy => "wait until the other process has ended, or end it, and try again",
        Kind::Transient => "try again",
        Kind::Full => "free some space ('standfast prune' removes old checkpoints) and try again",
        Kind::Denied => "check the owner and the permissions of the path, or run as its owner",
        Kind::Io => "look at the system's log (dmesg) for errors of the device, then try again",
        Kind::Unsupported => "use a newer Standfast, or another store or setting",
        Kind::Invalid => "--help shows what is allowed; 'standfast config' shows what is in effect",
        Kind::Exhausted => {
            "raise the limit ('ulimit -a' shows limits of memory, processes and open files), or end other programs, and try again"
        }
        // A bug, and whatever a later version knows.
        _ => "please report it, with the command line and this message",
    }
}

impl From<standfast_agent::Error> for Failure {
    fn from(error: standfast_agent::Error) -> Self {
        let failure = Failure::new(error.kind(), error.to_string());
        match error {
            standfast_agent::Error::None { .. } => failure.advise(
                "start one with `standfast agent start`, or let the first rank do it: agent = on",
            ),
            standfast_agent::Error::Refused { kind: Kind::Busy, .. } => failure
                .advise("let the job end first, or use --now: its ranks go on without the agent"),
            _ => failure,
        }
    }
}

impl From<standfast_admin::Error> for Failure {
    fn from(error: standfast_admin::Error) -> Self {
        use standfast_admin::Error as E;
        let failure = Failure::new(error.kind(), error.to_string());
        let next = match error {
            E::Stopped => return Failure::Interrupted,
            E::Job(error) => return error.into(),
            E::Store(error) => of_store(&error).map(str::to_owned),
            E::Read(error) | E::Drain(DrainError::Read(error)) => {
                of_read(&error).map(str::to_owned)
            }
            other => of_task(other),
        };
        match next {
            Some(next) => failure.advise(next),
            None => failure,
        }
    }
}

/// What next where a store is in use.
fn of_store(error: &StoreError) -> Option<&'static str> {
    match error {
        StoreError::Locked { lock: Lock::Writer, .. } => Some(
            "a job is running there: try again when it has ended (jobs prune by themselves, see the setting 'keep')",
        ),
        StoreError::Locked { lock: Lock::Drain, .. } => {
            Some("it drains already; end that drain first if this one should go elsewhere")
        }
        StoreError::OtherKey { .. } => Some("set global_key to the key with that fingerprint"),
        StoreError::NotEncrypted { .. } => {
            Some("if it was never encrypted, remove global_key; if it was, restore it from a copy")
        }
        StoreError::Key { .. } => Some("mend what global_key names, or set it to off"),
        StoreError::Locked { .. } => {
            Some("a restart, verify or export is reading: try again when it has ended")
        }
        _ => None,
    }
}

/// What next where something cannot be read.
fn of_read(error: &ReadError) -> Option<&'static str> {
    match error {
        ReadError::Metadata(Unreadable::NoStore(_)) => Some(NAME_THE_PLACE),
        ReadError::Store(error) | ReadError::Metadata(Unreadable::Store(error)) => of_store(error),
        ReadError::Metadata(Unreadable::Encrypted { .. }) => {
            Some("give the key with --global-key, or set global_key")
        }
        ReadError::Metadata(Unreadable::NoCheckpoint(_)) => {
            Some("'standfast ls' lists the checkpoints")
        }
        ReadError::Metadata(Unreadable::NoHeader(_) | Unreadable::NoManifests(_)) => {
            Some("nothing was changed: whoever removed it may have a copy")
        }
        ReadError::NoRegion { .. } => Some("'standfast show VERSION' lists its regions"),
        ReadError::Metadata(Unreadable::Object { object, source })
            if object == name::STORE && source.kind() == Kind::Corrupt =>
        {
            Some(
                "without its header a store cannot be read: bring the file 'store' back from a copy",
            )
        }
        _ => None,
    }
}

/// What next where a task cannot be done.
fn of_task(error: standfast_admin::Error) -> Option<String> {
    use standfast_admin::Error as E;
    let next = match error {
        E::Unreadable { .. } => NAME_THE_PLACE,
        E::NoJobs { is_job: Some((parent, job)), .. } => {
            let parent = parent.display();
            return Some(format!("this is the store of one job: use --store {parent} --job {job}"));
        }
        E::NoJobs { .. } => {
            "name the place with --store (or STANDFAST_STORE, or standfast.toml); jobs appear there with their first checkpoint"
        }
        E::NoSuchJob { others, .. } if !others.is_empty() => {
            return Some(format!("the jobs there: {}", others.join(", ")));
        }
        E::NoSuchJob { .. } => NAME_THE_PLACE,
        E::SeveralJobs { .. } => "name one with --job (or STANDFAST_JOB, or standfast.toml)",
        E::NoStores(_) => "name the places with --stores, the job with --job",
        E::CapturedDifferently(_) => "export it from both checkpoints and compare the files (cmp)",
        E::Exists(_) => "export to another directory, or replace it with --force",
        E::Changed => "nothing was removed: run prune again",
        E::NoRing(_) => {
            "a job with a store for each node and ring = \"auto\" brings its checkpoints there"
        }
        E::NoGlobal("drain to") => "give --to, or set global",
        E::NoGlobal(_) => "give --from, or set global",
        _ => return None,
    };
    Some(next.to_owned())
}

impl From<standfast::Error> for Failure {
    fn from(error: standfast::Error) -> Self {
        let failure = Failure::new(error.kind(), error.to_string());
        if error.is_of_another_input() {
            return failure.advise(
                "give the program what it was given then, or say --restart never or --restart force",
            );
        }
        if !error.is_of_settings() {
            return failure;
        }
        failure.advise("'standfast config --reference' lists the settings and what they may be")
    }
}
