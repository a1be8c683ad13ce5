//! One setting, defined once: its name, what it means, how to read it and how to show it.
//!
//! File, environment, API, `standfast config` and the reference in the docs go through tables of
//! these, so a setting cannot exist in one of them and not in another.

use std::fmt;

/// One setting of a `T`.
pub struct Key<T> {
    /// Its name in file, environment (`STANDFAST_` and capitals) and API.
    pub name: &'static str,
    /// The values it takes, in short.
    pub values: &'static str,
    /// What it means, in a sentence.
    pub help: &'static str,
    /// Its default, as text.
    pub default: &'static str,
    pub(in crate::config) set: fn(&mut T, &str) -> Result<(), String>,
    /// Its value, as text.
    pub show: fn(&T) -> String,
}

impl<T> fmt::Debug for Key<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Key").field("name", &self.name).finish_non_exhaustive()
    }
}
