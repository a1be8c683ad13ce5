//! What is measured and how it is told.

use std::path::PathBuf;
use std::time::{Duration, Instant};

/// Result of measuring.
pub type Result<T> = std::result::Result<T, Error>;

/// Why something could not be measured.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The job failed.
    #[error(transparent)]
    Job(#[from] standfast::Error),
    /// The store failed.
    #[error(transparent)]
    Store(#[from] standfast_store::Error),
    /// The operating system failed.
    #[error("{what}: {source}")]
    Io {
        /// What was tried.
        what: String,
        /// What the system said.
        source: std::io::Error,
    },
    /// The GPU failed.
    #[error(transparent)]
    Gpu(#[from] standfast_gpu::Error),
    /// A checkpoint did not come back as it was.
    #[error("the restored memory is not what was checkpointed")]
    Wrong,
}

impl Error {
    /// The kind of this failure.
    pub fn kind(&self) -> standfast::Kind {
        match self {
            Error::Job(source) => source.kind(),
            Error::Store(source) => source.kind(),
            Error::Gpu(source) => source.kind(),
            Error::Io { source, .. } => standfast::Kind::of_io(source),
            Error::Wrong => standfast::Kind::Bug,
        }
    }
}

/// How much to measure, where and how often.
#[derive(Clone, Debug)]
pub struct Setting {
    /// Bytes of memory to protect and to write.
    pub bytes: usize,
    /// Where to write: the file system to be measured.
    pub dir: PathBuf,
    /// Repetitions; the best counts.
    pub rounds: usize,
}

/// One measured figure.
#[derive(Clone, Debug, serde::Serialize)]
pub struct Figure {
    /// Always `bench`.
    #[serde(rename = "type")]
    pub kind: &'static str,
    /// What was measured.
    pub name: String,
    /// The value.
    pub value: f64,
    /// Its unit.
    pub unit: &'static str,
    /// The name of the ceiling that was measured in the same run.
    pub ceiling_name: Option<&'static str>,
    /// The ceiling's value, in the same unit.
    pub ceiling: Option<f64>,
    /// Further remarks: a compression factor, a variant.
    pub note: Option<String>,
}

impl Figure {
    /// A rate in GB/s (10^9 bytes).
    pub fn rate(name: impl Into<String>, bytes_per_s: f64) -> Self {
        Self {
            kind: "bench",
            name: name.into(),
            value: bytes_per_s / 1e9,
            unit: "GB/s",
            ceiling_name: None,
            ceiling: None,
            note: None,
        }
    }

    /// A time in this unit.
    pub fn time(name: impl Into<String>, value: f64, unit: &'static str) -> Self {
        Self { value, unit, ..Self::rate(name, 0.0) }
    }

    /// Beside its ceiling.
    pub fn of(mut self, name: &'static str, bytes_per_s: f64) -> Self {
        self.ceiling_name = Some(name);
        self.ceiling = Some(bytes_per_s / 1e9);
        self
    }

    /// With a remark.
    pub fn note(mut self, note: impl Into<String>) -> Self {
        self.note = Some(note.into());
        self
    }

    /// What it reaches of its ceiling, as a share.
    pub fn share(&self) -> Option<f64> {
        self.ceiling.map(|ceiling| self.value / ceiling)
    }
}

/// Which direction is better.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Better {
    /// The value must be at least the goal.
    Higher,
    /// The value must be at most the goal.
    Lower,
}

/// A bar: a measured value against its goal.
#[derive(Clone, Debug, serde::Serialize)]
pub struct Bar {
    /// Always `bar`.
    #[serde(rename = "type")]
    pub kind: &'static str,
    /// Letter of the capability.
    pub issue: &'static str,
    /// What was measured.
    pub name: String,
    /// The value.
    pub value: f64,
    /// What it must reach.
    pub goal: f64,
    /// In which direction.
    pub better: Better,
    /// The machine's own ceiling from the same run, where there is one, in `ceiling_unit`.
    pub ceiling: Option<f64>,
    /// Unit of the ceiling.
    pub ceiling_unit: &'static str,
    /// Whether the goal is reached.
    pub met: bool,
}

impl Bar {
    /// A value that must be at least, or at most, the goal.
    pub fn new(
        issue: &'static str,
        name: impl Into<String>,
        value: f64,
        better: Better,
        goal: f64,
    ) -> Self {
        let met = match better {
            Better::Higher => value >= goal,
            Better::Lower => value <= goal,
        };
        Self {
            kind: "bar",
            issue,
            name: name.into(),
            value,
            goal,
            better,
            ceiling: None,
            ceiling_unit: "",
            met,
        }
    }

    /// With the ceiling of the same run.
    pub fn ceiling(mut self, value: f64, unit: &'static str) -> Self {
        self.ceiling = Some(value);
        self.ceiling_unit = unit;
        self
    }
}

/// The shortest time that something took.
pub(crate) fn best(rounds: usize, mut each: impl FnMut()) -> Duration {
    (0..rounds.max(1)).map(|_| timed(&mut each).1).min().expect("at least one round")
}

/// Runs something and tells how long it took.
pub(crate) fn timed<T>(run: impl FnOnce() -> T) -> (T, Duration) {
    let started = Instant::now();
    let outcome = run();
    (outcome, started.elapsed())
}

/// Bytes per second.
pub(crate) fn rate(bytes: usize, time: Duration) -> f64 {
    bytes as f64 / time.as_secs_f64()
}
