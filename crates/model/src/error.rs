//! The one error of this crate: which field is wrong, what it must be, what it was.
//!
//! Data: validators and parsers -> [`ModelError`] -> the caller's message or exit code.
//!
//! Why the value is carried: a planner is fed from flags, logs and measurements; the user
//! must see which of them produced the nonsense.

use standfast_format::Kind;
use thiserror::Error;

/// Shorthand for results of this crate.
pub type Result<T> = std::result::Result<T, ModelError>;

/// What was wrong with an input.
#[derive(Debug, Clone, PartialEq, Error)]
pub enum ModelError {
    /// A number is outside its range.
    #[error("{field} must be {rule}, but is {value}")]
    Field {
        /// Name of the field as the user writes it.
        field: String,
        /// The accepted range, in words.
        rule: &'static str,
        /// The value that was given.
        value: f64,
    },
    /// Two numbers do not fit together.
    #[error("{field} is {value}, but {other} is {limit}: {rule}")]
    Pair {
        /// Name of the offending field.
        field: &'static str,
        /// Its value.
        value: f64,
        /// Name of the field it contradicts.
        other: &'static str,
        /// The other field's value.
        limit: f64,
        /// The relation that must hold.
        rule: &'static str,
    },
    /// A line of a text input cannot be read.
    #[error("{input} line {line}: {reason}: {text:?}")]
    Line {
        /// Which input: failure log, bench output, environment.
        input: &'static str,
        /// Line number, from 1.
        line: usize,
        /// What was expected.
        reason: String,
        /// The offending text, cut to a readable length.
        text: String,
    },
    /// An input lacks what is needed from it.
    #[error("{input}: {reason}")]
    Incomplete {
        /// Which input.
        input: &'static str,
        /// What is missing.
        reason: String,
    },
    /// A name is not one of the known ones.
    #[error("unknown {what} {name:?}; known: {known}")]
    Unknown {
        /// The kind of name.
        what: &'static str,
        /// The name that was given.
        name: String,
        /// All accepted names, separated by commas.
        known: String,
    },
    /// No setting satisfies the wishes.
    #[error("no plan: {0}")]
    Infeasible(String),
    /// A plot could not be rasterised.
    #[error("plot {name}: {reason}")]
    Plot {
        /// Title of the plot.
        name: String,
        /// What the renderer said.
        reason: String,
    },
}

impl ModelError {
    /// The kind of this failure: bad input, but for a plot that our own renderer refuses.
    pub fn kind(&self) -> Kind {
        match self {
            Self::Plot { .. } => Kind::Bug,
            _ => Kind::Invalid,
        }
    }

    /// An error about one line of a text input; long lines are cut.
    #[cfg(feature = "planner")]
    pub(crate) fn line(input: &'static str, line: usize, reason: &str, text: &str) -> Self {
        Self::Line { input, line, reason: reason.to_owned(), text: text.chars().take(80).collect() }
    }
}
