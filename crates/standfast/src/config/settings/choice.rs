//! A value, or `auto`.

use std::fmt;
use std::str::FromStr;

use crate::config::size::ByteSize;

/// A value that the user has set, or what Standfast chooses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Choice<T> {
    /// Standfast chooses.
    #[default]
    Auto,
    /// The user has chosen.
    Set(T),
}

impl<T> Choice<T> {
    /// The value, or what `auto` stands for.
    pub fn unwrap_or(self, auto: T) -> T {
        match self {
            Choice::Auto => auto,
            Choice::Set(value) => value,
        }
    }
}

impl<T> From<T> for Choice<T> {
    fn from(value: T) -> Self {
        Choice::Set(value)
    }
}

impl From<u64> for Choice<ByteSize> {
    fn from(bytes: u64) -> Self {
        Choice::Set(ByteSize(bytes))
    }
}

impl<T: FromStr<Err = String>> FromStr for Choice<T> {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "auto" => Ok(Choice::Auto),
            _ => text.parse().map(Choice::Set).map_err(|why| format!("{why}, or auto")),
        }
    }
}

impl<T: fmt::Display> fmt::Display for Choice<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Choice::Auto => f.write_str("auto"),
            Choice::Set(value) => value.fmt(f),
        }
    }
}
