//! The kinds of failure, typed once for every crate, language and command.
//!
//! Data: each crate's error enum has a `kind()`; this table turns the kind into a C return
//! code, a command's exit status and a retry policy. Nothing else in the project decides these.
//!
//! Invariants:
//! - Codes are part of the C ABI and of the documented exit codes: a code, once given, stays.
//! - `0` is success and is never a kind.

use std::fmt;
use std::io;

/// What sort of failure happened, independent of where.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, serde::Serialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum Kind {
    /// Stored bytes do not match their checksum, hash or layout.
    Corrupt,
    /// The object, checkpoint, region or job does not exist.
    Missing,
    /// Somebody else holds it: another process, another call.
    Busy,
    /// A failure that may pass by itself: a time-out, a throttled request.
    Transient,
    /// No space is left, on the device or within a configured bound.
    Full,
    /// The operating system or the service refuses access.
    Denied,
    /// The device or the network failed to read or write.
    Io,
    /// This build, machine or format version cannot do it.
    Unsupported,
    /// The caller's argument, configuration or call order is wrong.
    Invalid,
    /// Standfast's own logic is broken; please report it.
    Bug,
    /// The process or the machine is out of memory, threads or file descriptors.
    Exhausted,
}

/// What to do about a failure before giving up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Retry {
    /// Trying again cannot help.
    Never,
    /// Try again with growing pauses.
    Backoff,
    /// Try again after somebody acted (freed space, ended the other process).
    AfterAction,
}

struct Row {
    kind: Kind,
    name: &'static str,
    code: i32,
    retry: Retry,
}

/// The one table. Exit codes are the C codes negated, from 10 on: below that shells, clap and
/// signals have their own meanings.
const TABLE: [Row; 11] = [
    Row { kind: Kind::Corrupt, name: "corrupt", code: 10, retry: Retry::Never },
    Row { kind: Kind::Missing, name: "missing", code: 11, retry: Retry::Never },
    Row { kind: Kind::Busy, name: "busy", code: 12, retry: Retry::AfterAction },
    Row { kind: Kind::Transient, name: "transient", code: 13, retry: Retry::Backoff },
    Row { kind: Kind::Full, name: "full", code: 14, retry: Retry::AfterAction },
    Row { kind: Kind::Denied, name: "denied", code: 15, retry: Retry::AfterAction },
    Row { kind: Kind::Io, name: "io", code: 16, retry: Retry::Never },
    Row { kind: Kind::Unsupported, name: "unsupported", code: 17, retry: Retry::Never },
    Row { kind: Kind::Invalid, name: "invalid", code: 18, retry: Retry::Never },
    Row { kind: Kind::Bug, name: "bug", code: 19, retry: Retry::Never },
    Row { kind: Kind::Exhausted, name: "exhausted", code: 20, retry: Retry::AfterAction },
];

impl Kind {
    /// Every kind, in the order of their codes.
    pub fn all() -> impl Iterator<Item = Kind> {
        TABLE.iter().map(|row| row.kind)
    }

    fn row(self) -> &'static Row {
        TABLE.iter().find(|row| row.kind == self).expect("every kind has a row")
    }

    /// The word for this kind, as printed and as found in JSON.
    pub fn name(self) -> &'static str {
        self.row().name
    }

    /// The exit status of a command that failed this way.
    pub fn exit_code(self) -> i32 {
        self.row().code
    }

    /// The return value of a C function that failed this way: negative, never 0.
    pub fn c_code(self) -> i32 {
        -self.row().code
    }

    /// Whether and how to try again.
    pub fn retry(self) -> Retry {
        self.row().retry
    }

    /// The kind with this exit code.
    pub fn from_exit_code(code: i32) -> Option<Kind> {
        Kind::all().find(|kind| kind.exit_code() == code)
    }

    /// Whether it proves that stored bytes are damaged or absent. Whoever looks for a checkpoint may
    /// skip that one then; every other failure says nothing of what is stored.
    pub fn is_proof(self) -> bool {
        matches!(self, Kind::Corrupt | Kind::Missing)
    }

    /// The kind of an error of the operating system.
    pub fn of_io(error: &io::Error) -> Kind {
        use io::ErrorKind as E;
        match error.kind() {
            E::NotFound => Kind::Missing,
            E::PermissionDenied | E::ReadOnlyFilesystem => Kind::Denied,
            E::StorageFull | E::QuotaExceeded | E::FileTooLarge => Kind::Full,
            E::OutOfMemory => Kind::Exhausted,
            E::ResourceBusy | E::AlreadyExists | E::ExecutableFileBusy => Kind::Busy,
            E::TimedOut
            | E::Interrupted
            | E::WouldBlock
            | E::ConnectionRefused
            | E::ConnectionReset
            | E::ConnectionAborted
            | E::BrokenPipe
            | E::NotConnected
            | E::HostUnreachable
            | E::NetworkUnreachable
            | E::NetworkDown
            | E::StaleNetworkFileHandle => Kind::Transient,
            E::Unsupported => Kind::Unsupported,
            E::InvalidInput | E::InvalidFilename | E::NotADirectory | E::IsADirectory => {
                Kind::Invalid
            }
            E::UnexpectedEof | E::InvalidData => Kind::Corrupt,
            _ => error.raw_os_error().map_or(Kind::Io, Kind::of_errno),
        }
    }

    /// The kind of a number that the standard library has no word for.
    fn of_errno(errno: i32) -> Kind {
        match errno {
            libc::EMFILE | libc::ENFILE | libc::ENOLCK | libc::ENOBUFS => Kind::Exhausted,
            libc::ELOOP => Kind::Invalid,
            _ => Kind::Io,
        }
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

#[cfg(test)]
mod tests;
