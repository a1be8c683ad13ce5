//! What a job's calls can fail with: [`Error`] for programs, [`Cause`] inside.
//!
//! Why two: what can go wrong inside grows with every version; what a program can do about it is a
//! short list ([`Kind`]).

mod convert;

use std::{error, fmt};

use standfast_format::{Kind, Rank, Version, human_bytes};

/// Result of a job's call, or of what a rank does by itself.
pub type Result<T> = std::result::Result<T, Error>;
/// Outcome of what all ranks do together: a rank's own failure is none before the others know it.
pub(crate) type Phase<T> = standfast_comm::Phase<T, Error>;
/// Why a phase ended.
pub(crate) type Stop = standfast_comm::Stop<Error>;

/// Why a call failed. The text says what, why and what to do next; [`Error::kind`] says what sort.
///
/// ```
/// use standfast::{Job, Kind};
///
/// let error = Job::builder().set("codek", "fast").open().unwrap_err();
/// assert_eq!(error.kind(), Kind::Invalid);
/// assert!(error.to_string().ends_with(r#"no setting "codek"; did you mean "codec"?"#));
/// ```
#[derive(Clone)]
pub struct Error {
    cause: Box<Cause>,
}

impl Error {
    /// The kind of this failure.
    pub fn kind(&self) -> Kind {
        self.cause.kind()
    }

    /// The rank that failed, where it was another one.
    pub fn rank(&self) -> Option<Rank> {
        match *self.cause {
            Cause::OtherRank { rank, .. } => Some(rank),
            _ => None,
        }
    }

    /// Whether the job begins from its beginning: it has no checkpoint, or begins anew.
    pub(crate) fn is_fresh(&self) -> bool {
        self.is_anew() || matches!(*self.cause, Cause::NoCheckpoint { .. })
    }

    pub(crate) fn no_checkpoint(job: String) -> Self {
        Cause::NoCheckpoint { job }.into()
    }

    /// Whether the job begins anew, although there are checkpoints.
    #[doc(hidden)]
    pub fn is_anew(&self) -> bool {
        matches!(*self.cause, Cause::Anew { .. })
    }

    /// Whether the job was begun with other values than the program declares.
    #[doc(hidden)]
    pub fn is_of_another_input(&self) -> bool {
        matches!(*self.cause, Cause::Differs { .. })
    }

    /// Whether a setting is wrong, in a file, the environment or the call.
    pub fn is_of_settings(&self) -> bool {
        matches!(*self.cause, Cause::Config(_))
    }

    /// Whether other ranks could not be reached. Then nothing can be agreed any more: whoever finds
    /// that out goes, so that those who wait for it find it out, too.
    pub fn is_out_of_reach(&self) -> bool {
        use standfast_comm::Error as Comm;
        matches!(&*self.cause, Cause::Comm(why) if !matches!(why, Comm::NoRank { .. }))
    }

    /// Where no checkpoint could be restored: each of them with the reason, newest first.
    pub fn skipped(&self) -> &[(String, String)] {
        match &*self.cause {
            Cause::NoneRestorable { reasons, .. } => reasons,
            _ => &[],
        }
    }

    /// For whoever restarts programs in another way.
    #[doc(hidden)]
    pub fn none_restorable(job: String, reasons: Vec<(String, String)>) -> Self {
        Cause::NoneRestorable { job, reasons }.into()
    }

    pub(crate) fn cause(&self) -> &Cause {
        &self.cause
    }

    pub(crate) fn config(why: String) -> Self {
        Cause::Config(why).into()
    }

    pub(crate) fn disagree(how: String) -> Self {
        Cause::Disagree(how).into()
    }

    pub(crate) fn borrowed(region: &str) -> Self {
        Cause::Borrowed { region: region.into() }.into()
    }

    pub(crate) fn broken(what: &'static str) -> Self {
        Cause::Broken { what }.into()
    }

    pub(crate) fn earlier(version: Version, error: &Error) -> Self {
        Cause::Earlier { version, source: error.cause.clone() }.into()
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.cause.fmt(f)
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.cause, f)
    }
}

impl error::Error for Error {
    fn source(&self) -> Option<&(dyn error::Error + 'static)> {
        self.cause.source()
    }
}

/// What has happened, for the crate's own use.
#[derive(Debug, Clone, thiserror::Error)]
pub(crate) enum Cause {
    /// A setting is wrong.
    #[error("configuration: {0}")]
    Config(String),
    /// The store failed.
    #[error("{0}")]
    Store(#[source] std::sync::Arc<standfast_store::Error>),
    /// A region cannot be protected or is not.
    #[error(transparent)]
    Region(#[from] standfast_capture::Error),
    /// The memory of a device cannot be used.
    #[error(transparent)]
    Device(#[from] standfast_capture::DeviceError),
    /// Writing a checkpoint failed.
    #[error(transparent)]
    Pack(#[from] standfast_write::Error),
    /// The node agent failed, or is gone.
    #[error(transparent)]
    Agent(#[from] standfast_agent::Error),
    /// An image refers to slots that a segment cannot have.
    #[error("an image refers to slots that segment {segment} cannot have; please report it")]
    Beyond { segment: standfast_format::SegmentId },
    /// Reading a checkpoint failed.
    #[error(transparent)]
    Restart(standfast_restart::Error),
    /// Shards could not be made or used.
    #[error("the ring: {0}")]
    Ring(std::sync::Arc<standfast_ring::Error>),
    /// Nobody knows what global storage has.
    #[error(
        "global storage {place} cannot list the checkpoints of this job: {why}; try again when it answers"
    )]
    Global { place: String, kind: Kind, why: String },
    /// Global storage holds another job of that name.
    #[error(
        "{place} holds another job of the same name: set global to another place, or give the job another name"
    )]
    OtherJob { place: String },
    /// The local store may not take what a checkpoint may need, and nothing in it can go.
    #[error(
        "local store full (limit {}): {} of it cannot be freed now, and a checkpoint may need {}; raise the size in keep", human_bytes(*.bound), human_bytes(*.used), human_bytes(*.need)
    )]
    NoRoom { bound: u64, used: u64, need: u64 },
    /// There is nothing to restart from.
    #[error("job {job:?} has no checkpoint yet")]
    NoCheckpoint { job: String },
    /// The job begins from its beginning, although there are checkpoints.
    #[error("job {job:?} begins anew{}", .last.map_or(": restart = never".into(), |last| format!(": it has finished; its checkpoints stay, and restart = {last} goes on from the last one")))]
    Anew { job: String, last: Option<Version> },
    /// The job was begun with other values than the program declares.
    #[error(
        "checkpoint {version} is of another input: {what}; begin anew with restart = never, go on regardless with restart = force, or give the job another name"
    )]
    Differs { version: Version, what: String },
    /// A version is that of a checkpoint of a finished job, which is not replaced.
    #[error(
        "checkpoint {version} is of an earlier start of this job, which has finished: give another version, or none, or remove it with 'standfast prune'"
    )]
    Finished { version: Version },
    /// A value cannot be declared.
    #[error("cannot declare {name:?}: {why}")]
    Declare { name: String, why: String },
    /// Checkpoints exist, but none of them is whole.
    #[error("none of the {} checkpoints of job {job:?} can be restored; 'standfast verify' tells why; the newest: {}", .reasons.len(), .reasons.first().map_or("none", |(_, reason)| reason.as_str()))]
    NoneRestorable { job: String, reasons: Vec<(String, String)> },
    /// A protected region is not in the checkpoint, or has another size there.
    #[error("checkpoint {version} does not fit the program: {why}")]
    Unfit { version: Version, why: String },
    /// A value cannot be written.
    #[error("state {region:?} cannot be saved: {why}")]
    State { region: String, why: String },
    /// Safe Rust code holds a guard of this region's memory.
    #[error("region {region:?} is borrowed: drop its guards before checkpoint or restart")]
    Borrowed { region: String },
    /// The checkpoint is not one that this job made or found.
    #[error("checkpoint {version} is not known to this job; 'standfast ls' lists those there are")]
    UnknownVersion { version: Version },
    /// The level is not reached by this job's configuration.
    #[error(
        "checkpoint {version} ends at level {reached}: level {wanted} is not configured; set ring or global"
    )]
    Unreachable {
        version: Version,
        reached: standfast_format::Level,
        wanted: standfast_format::Level,
    },
    /// An earlier checkpoint failed after its call had returned, and no call has told it yet.
    #[error("checkpoint {version} failed: {source}")]
    Earlier { version: Version, source: Box<Cause> },
    /// Another rank failed, and so the job as a whole.
    #[error("rank {rank} failed: {why}")]
    OtherRank { rank: Rank, kind: Kind, why: String },
    /// A rank refers to a page that no rank has stored.
    #[error("no rank has sealed segment {segment}, which this one refers to; please report it")]
    Unsealed { segment: standfast_format::SegmentId },
    /// Memory went before its state was taken in.
    #[error("{0}; call unprotect before memory is given back, unmapped or moved")]
    Lost(#[from] standfast_capture::Lost),
    /// The ranks called with different arguments or have different settings.
    #[error("the ranks of the job do not agree: {0}")]
    Disagree(String),
    /// The ranks could not talk to each other.
    #[error(transparent)]
    Comm(#[from] standfast_comm::Error),
    /// Version 0 is kept for "choose one for me".
    #[error("checkpoint versions start at 1")]
    VersionZero,
    /// A check of Standfast's own logic failed; stderr has the place.
    #[error("Standfast is broken: {what} the checkpoint panicked; please report it")]
    Broken { what: &'static str },
    /// The system gives no random numbers.
    #[error("the operating system gives no random numbers: {0}")]
    Random(String),
}

impl Cause {
    /// Whether a segment, not only metadata, could not be read.
    pub(crate) fn is_of_segment(&self) -> bool {
        matches!(self, Cause::Restart(source) if source.is_of_segment())
    }

    /// The kind of this failure.
    pub(crate) fn kind(&self) -> Kind {
        match self {
            Cause::Store(source) => source.kind(),
            Cause::Region(source) => source.kind(),
            Cause::Device(source) => source.kind,
            Cause::Pack(source) => source.kind(),
            Cause::Agent(source) => source.kind(),
            Cause::Earlier { source, .. } => source.kind(),
            Cause::Restart(source) => source.kind(),
            Cause::Ring(source) => source.kind(),
            Cause::OtherRank { kind, .. } | Cause::Global { kind, .. } => *kind,
            Cause::Comm(source) => source.kind(),
            Cause::NoCheckpoint { .. } | Cause::Anew { .. } | Cause::UnknownVersion { .. } => {
                Kind::Missing
            }
            Cause::NoneRestorable { .. } => Kind::Corrupt,
            Cause::Config(_)
            | Cause::Unfit { .. }
            | Cause::Differs { .. }
            | Cause::Finished { .. }
            | Cause::Declare { .. }
            | Cause::Borrowed { .. }
            | Cause::State { .. }
            | Cause::OtherJob { .. }
            | Cause::Lost(_)
            | Cause::Disagree(_)
            | Cause::VersionZero => Kind::Invalid,
            Cause::Unreachable { .. } => Kind::Unsupported,
            Cause::NoRoom { .. } => Kind::Full,
            Cause::Random(_) => Kind::Io,
            Cause::Broken { .. } | Cause::Unsealed { .. } | Cause::Beyond { .. } => Kind::Bug,
        }
    }
}
