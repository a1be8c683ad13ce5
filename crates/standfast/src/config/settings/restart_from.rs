//! Where a program starts: the second half of the setting `restart`.

use std::fmt;
use std::str::FromStr;

use super::{Choice, Restart, TimingSettings};
use crate::config::text::one_of;

/// Where a program starts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[non_exhaustive]
pub enum RestartFrom {
    /// From the newest checkpoint; from the beginning where there is none or the job has finished.
    #[default]
    Auto,
    /// From the beginning. Its own checkpoints count after a failure.
    Never,
    /// From the newest checkpoint, also of a job that has finished or was given something else.
    Force,
    /// From this checkpoint, also of a job that has finished; after a failure from the newest.
    Version(u64),
}

impl FromStr for RestartFrom {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match (text, text.parse()) {
            ("auto", _) => Ok(RestartFrom::Auto),
            ("never", _) => Ok(RestartFrom::Never),
            ("force", _) => Ok(RestartFrom::Force),
            (_, Ok(version)) if version > 0 => Ok(RestartFrom::Version(version)),
            _ => Err(one_of(text, "auto, never, force, or the number of a checkpoint")),
        }
    }
}

impl fmt::Display for RestartFrom {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RestartFrom::Auto => f.write_str("auto"),
            RestartFrom::Never => f.write_str("never"),
            RestartFrom::Force => f.write_str("force"),
            RestartFrom::Version(version) => version.fmt(f),
        }
    }
}

impl TimingSettings {
    /// Reads how a restart loads and where from: `lazy`, `never`, or `lazy, 12`.
    pub(super) fn set_restart(&mut self, text: &str) -> Result<(), String> {
        let (mut load, mut from) = (None, None);
        for part in text.split(',').map(str::trim).filter(|part| *part != "auto") {
            let twice = match (part.parse::<Restart>(), part.parse::<RestartFrom>()) {
                (Ok(word), _) => load.replace(word).is_some(),
                (_, Ok(word)) => from.replace(word).is_some(),
                _ => {
                    let known = "auto, eager, lazy, never, force, or the number of a checkpoint";
                    return Err(one_of(part, known));
                }
            };
            if twice {
                return Err(format!("{text:?} says the same twice"));
            }
        }
        self.restart = load.map_or(Choice::Auto, Choice::Set);
        self.from = from.unwrap_or_default();
        Ok(())
    }

    pub(super) fn show_restart(&self) -> String {
        match (self.restart, self.from) {
            (restart, RestartFrom::Auto) => restart.to_string(),
            (Choice::Auto, from) => from.to_string(),
            (restart, from) => format!("{restart}, {from}"),
        }
    }
}

#[cfg(test)]
mod tests;
