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
    pub(in crate::config) set: fn(&mut T, &str) -> Result<(), String>,
    /// Its value, as text.
    pub show: fn(&T) -> String,
}

impl<T: Default> Key<T> {
    /// Its default, as text.
    pub fn default(&self) -> String {
        (self.show)(&T::default())
    }
}

impl<T> fmt::Debug for Key<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Key").field("name", &self.name).finish_non_exhaustive()
    }
}

/// A row of a table of keys: the name, the field that has its value, the values it takes, its help.
///
/// The field's type reads and shows the value, unless the row has functions for that (`=> read, show`)
/// or a list of words (`of WORDS`).
macro_rules! row {
    ($name:literal in $($at:ident).+, $values:literal, $help:literal) => {
        $crate::config::key::row!($name in $($at).+ => $crate::config::text::parse, $values, $help)
    };
    ($name:literal in $($at:ident).+ of $words:ident, $values:literal, $help:literal) => {
        $crate::config::key::row!(
            $name in $($at).+ => |text| $crate::config::text::find($words, text),
            |value| $crate::config::text::word_of(*value, $words).into(),
            $values, $help
        )
    };
    ($name:literal in $($at:ident).+ => $read:expr, $values:literal, $help:literal) => {
        $crate::config::key::row!($name in $($at).+ => $read, ToString::to_string, $values, $help)
    };
    ($name:literal in $($at:ident).+ => $read:expr, $show:expr, $values:literal, $help:literal) => {
        $crate::config::key::Key {
            name: $name,
            values: $values,
            help: $help,
            set: |all, text| {
                let read: fn(&str) -> Result<_, String> = $read;
                all.$($at).+ = read(text)?;
                Ok(())
            },
            show: |all| {
                let show: fn(&_) -> String = $show;
                show(&all.$($at).+)
            },
        }
    };
}
pub(super) use row;
