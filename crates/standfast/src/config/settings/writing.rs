//! How memory is captured, who writes it and how it is loaded again.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

use crate::config::text::{Words, find, one_of, word_of};

/// How memory is captured. `auto` is what costs the program least. Where `Cow` cannot be, `Staged` is
/// tried, then `Stop`, and the report says so.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Capture {
    /// The program continues when every page has been examined, and what changed is copied.
    Stop,
    /// The program continues when what changed is copied, where memory has room for that.
    Staged,
    /// The program continues at once; a page it writes to before it was read is copied first. Needs
    /// userfaultfd.
    Cow,
}

/// When a restart gives control back. `auto` is `eager`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Restart {
    /// When everything is in memory.
    Eager,
    /// At once; pages are loaded when they are touched, the rest behind.
    Lazy,
}

/// What GPUs do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum GpuUse {
    /// They hash and compress the pages of their own memory.
    Auto,
    /// They also compress pages of the host and multiply for the ring, where there is one.
    On,
    /// They only hash; the CPU compresses.
    Off,
}

/// Whether one process per node writes for all ranks.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum AgentUse {
    /// Today as `Off`.
    Auto,
    /// It does, where the store is a directory.
    On,
    /// Every rank writes for itself.
    Off,
    /// It does; its socket and log are in this directory.
    In(PathBuf),
}

const CAPTURES: Words<Capture> =
    &[("cow", Capture::Cow), ("staged", Capture::Staged), ("stop", Capture::Stop)];
const RESTARTS: Words<Restart> = &[("eager", Restart::Eager), ("lazy", Restart::Lazy)];
const GPU_USES: Words<GpuUse> = &[("auto", GpuUse::Auto), ("on", GpuUse::On), ("off", GpuUse::Off)];

macro_rules! one_word {
    ($type:ty, $words:ident) => {
        impl FromStr for $type {
            type Err = String;

            fn from_str(text: &str) -> Result<Self, String> {
                find($words, text)
            }
        }

        impl fmt::Display for $type {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(word_of(*self, $words))
            }
        }
    };
}

one_word!(Capture, CAPTURES);
one_word!(Restart, RESTARTS);
one_word!(GpuUse, GPU_USES);

impl FromStr for AgentUse {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "auto" => Ok(AgentUse::Auto),
            "on" => Ok(AgentUse::On),
            "off" => Ok(AgentUse::Off),
            dir if dir.contains('/') => Ok(AgentUse::In(dir.into())),
            _ => Err(one_of(text, "auto, on, off, or a directory (with a /)")),
        }
    }
}

impl fmt::Display for AgentUse {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            AgentUse::Auto => f.write_str("auto"),
            AgentUse::On => f.write_str("on"),
            AgentUse::Off => f.write_str("off"),
            AgentUse::In(dir) => dir.display().fmt(f),
        }
    }
}
