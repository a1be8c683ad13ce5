//! How often a program's `point` takes a checkpoint.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use crate::config::text::time;
use crate::config::time::TimeSpan;

/// How often a program's `point` takes a checkpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Pacing {
    /// Only on request.
    Off,
    /// As costs least by measured checkpoints and the expected time between failures of the whole
    /// job, a day where none is given.
    Auto(Option<TimeSpan>),
    /// After so much time.
    Every(TimeSpan),
}

impl From<Duration> for Pacing {
    fn from(time: Duration) -> Self {
        Pacing::Every(TimeSpan(time))
    }
}

impl FromStr for Pacing {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match (text, text.strip_prefix("auto:")) {
            ("off", _) => Ok(Pacing::Off),
            ("auto", _) => Ok(Pacing::Auto(None)),
            (_, Some(mtti)) => time(mtti.trim()).map(|mtti| Pacing::Auto(Some(mtti))),
            _ => time(text)
                .map(Pacing::Every)
                .map_err(|why| format!("{why}, off, auto, or auto:24h for a failure each day")),
        }
    }
}

impl fmt::Display for Pacing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Pacing::Off => f.write_str("off"),
            Pacing::Auto(None) => f.write_str("auto"),
            Pacing::Auto(Some(mtti)) => write!(f, "auto:{mtti}"),
            Pacing::Every(time) => time.fmt(f),
        }
    }
}
