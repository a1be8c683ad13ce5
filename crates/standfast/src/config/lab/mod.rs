//! Settings that only experiments and tests need: `lab.page`, `lab.hash`, ...
//!
//! They come from the program's call or from `STANDFAST_LAB_NAME`, never from a file, and are
//! applied to the [`Config`] that the public settings give. Their defaults are what the machine or a
//! public setting chooses, so nobody needs them to get a job right.

mod keys;
mod words;

pub use keys::LAB_KEYS;
pub(in crate::config) use words::IOS;
pub use words::{Mode, RingArithmetic, Strategy, Track, WhenFull, Write};

use super::key::Key;
use super::resolved::Config;

/// What the names of lab settings begin with.
pub(in crate::config) const PREFIX: &str = "lab.";

/// A setting for experiments and tests; its name is without the prefix `lab.`.
pub type LabKey = Key<Config>;

/// The values that experiments and tests have set, over what is chosen otherwise.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Lab(Vec<(&'static str, String)>);

impl Lab {
    /// Sets a value; the name is without the prefix `lab.`.
    pub(in crate::config) fn set(
        &mut self,
        key: &'static LabKey,
        text: &str,
    ) -> Result<(), String> {
        (key.set)(&mut Config::default(), text)?;
        self.0.retain(|(name, _)| *name != key.name);
        self.0.push((key.name, text.into()));
        Ok(())
    }

    /// What is set.
    pub fn iter(&self) -> impl Iterator<Item = (&'static str, &str)> {
        self.0.iter().map(|(name, text)| (*name, text.as_str()))
    }

    pub(in crate::config) fn apply(&self, config: &mut Config) -> Result<(), String> {
        let set = |(name, text): (&str, &str)| match lab_key(name) {
            Some(key) => (key.set)(config, text),
            None => Ok(()),
        };
        self.iter().try_for_each(set)
    }

    pub(in crate::config) fn has(&self, name: &str) -> bool {
        self.iter().any(|(set, _)| set == name)
    }
}

/// The lab setting of this name, which is without the prefix.
pub fn lab_key(name: &str) -> Option<&'static LabKey> {
    LAB_KEYS.iter().find(|key| key.name == name)
}
