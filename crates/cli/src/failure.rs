//! Failures as the user meets them: what happened, why, and what to do next.
//!
//! Data: errors of the crates -> [`Failure`] -> text (or a JSON line) on stderr and an exit code.
//! The advice is written here and nowhere else: libraries say what and why, the command says
//! what next.

use std::io::{self, Write};
use std::process::ExitCode;

use serde_json::json;
use standfast::Kind;

use crate::escape;
use crate::output::{BAD, FAINT, Output};

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

    /// What sort of failure, if it is one.
    pub(crate) fn kind(&self) -> Option<Kind> {
        match self {
            Failure::Error { kind, .. } => Some(*kind),
            Failure::ReaderGone | Failure::Interrupted => None,
        }
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
            "run 'standfast verify' to see which checkpoints are sound; a restart uses the newest of them"
        }
        Kind::Missing => "'standfast ls' lists what is there; --store and --job say where to look",
        Kind::Busy => "wait until the other process has ended, or end it, and try again",
        Kind::Transient => "try again",
        Kind::Full => "free some space ('standfast prune' removes old checkpoints) and try again",
        Kind::Denied => "check the owner and the permissions of the path, or run as its owner",
        Kind::Io => "look at the system's log (dmesg) for errors of the device, then try again",
        Kind::Unsupported => "use a newer Standfast, or another store or setting",
        Kind::Invalid => "--help shows what is allowed; 'standfast config' shows what is in effect",
        Kind::Bug => "please report it, with the command line and this message",
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

impl From<standfast_store::Error> for Failure {
    fn from(error: standfast_store::Error) -> Self {
        let failure = Failure::new(error.kind(), error.to_string());
        match error {
            standfast_store::Error::Locked { lock: standfast_store::Lock::Writer, .. } => failure
                .advise("a job is running there: try again when it has ended (jobs prune by themselves, see the setting 'keep')"),
            standfast_store::Error::Locked { lock: standfast_store::Lock::Drain, .. } => {
                failure.advise("it drains already; end that drain first if this one should go elsewhere")
            }
            standfast_store::Error::Locked { .. } => {
                failure.advise("a restart, verify or export is reading: try again when it has ended")
            }
            _ => failure,
        }
    }
}

impl From<standfast_restart::Error> for Failure {
    fn from(error: standfast_restart::Error) -> Self {
        let failure = Failure::new(error.kind(), error.to_string());
        match error {
            standfast_restart::Error::NoStore { .. } => failure
                .advise("name the place with --store (or STANDFAST_STORE, or standfast.toml)"),
            standfast_restart::Error::NoCheckpoint { .. } => {
                failure.advise("'standfast ls' lists the checkpoints")
            }
            standfast_restart::Error::NoRegion { .. } => {
                failure.advise("'standfast show VERSION' lists its regions")
            }
            standfast_restart::Error::Object { object, source }
                if object == standfast_format::name::STORE && source.kind() == Kind::Corrupt =>
            {
                failure.advise("without its header a store cannot be read: bring the file 'store' back from a copy")
            }
            _ => failure,
        }
    }
}

impl From<standfast_drain::Error> for Failure {
    fn from(error: standfast_drain::Error) -> Self {
        match error {
            standfast_drain::Error::Read(error) => error.into(),
            error => Failure::new(error.kind(), error.to_string()),
        }
    }
}

impl From<standfast_write::Error> for Failure {
    fn from(error: standfast_write::Error) -> Self {
        Failure::new(error.kind(), error.to_string())
    }
}

impl From<standfast::Error> for Failure {
    fn from(error: standfast::Error) -> Self {
        let failure = Failure::new(error.kind(), error.to_string());
        match error {
            standfast::Error::Config(_) => failure
                .advise("'standfast config --reference' lists the settings and what they may be"),
            _ => failure,
        }
    }
}
