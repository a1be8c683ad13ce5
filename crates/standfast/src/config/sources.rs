//! Where settings come from: a file, the environment, the program's call.

use std::fmt;
use std::fs::File;
use std::io::{self, Read};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use rustix::fs::OFlags;
use standfast_sys::trust::Trust;

use super::settings::Share;
use super::{Loaded, lab};
use crate::error::{Error, Result};

/// The file that is read when it exists and no other is named.
pub const FILE: &str = "standfast.toml";
/// Largest file of settings.
const FILE_BYTES_MAX: u64 = 1 << 20;
/// What the names of environment variables begin with.
pub const PREFIX: &str = "STANDFAST_";
/// Names a configuration file to read instead of `standfast.toml`.
const FILE_VARIABLE: &str = "STANDFAST_CONFIG";
/// What the variables of lab settings begin with, after [`PREFIX`].
const LAB: &str = "LAB_";
/// Variables that begin with [`PREFIX`] and are no settings: the file to read, where the corpus of
/// real pages lies, what the preload library is told, and what only tests look at.
const NO_SETTINGS: [&str; 5] = ["CONFIG", "CORPUS", "MUST", "PRELOAD_*", "TEST_*"];

/// Where a value came from.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Origin {
    /// Nobody set it.
    Default,
    /// A configuration file.
    File {
        /// Which one.
        path: PathBuf,
        /// Where in it, from 1 on.
        line: usize,
    },
    /// An environment variable.
    Environment(String),
    /// The program's call or the command's option.
    Call,
}

impl Origin {
    pub(super) fn is_same_source(&self, other: &Self) -> bool {
        std::mem::discriminant(self) == std::mem::discriminant(other)
    }
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Origin::Default => f.write_str("default"),
            Origin::File { path, line } => write!(f, "{}:{line}", path.display()),
            Origin::Environment(name) => write!(f, "environment {name}"),
            Origin::Call => f.write_str("call"),
        }
    }
}

impl Loaded {
    pub(super) fn read_sources(&mut self, overrides: &[(String, String)]) -> Result<()> {
        let environment = environment()?;
        let trust = trust_of(overrides, &environment);
        match std::env::var_os(FILE_VARIABLE) {
            Some(path) => self.read_file(Path::new(&path), &trust)?,
            None if Path::new(FILE).symlink_metadata().is_ok() => {
                self.read_file(Path::new(FILE), &trust)?;
            }
            None => {}
        }
        self.apply_environment(&environment)?;
        overrides.iter().try_for_each(|(name, text)| self.set(name, text, Origin::Call))
    }

    /// What the file says decides where checkpoints are read from: it is trusted as they are.
    pub(super) fn read_file(&mut self, path: &Path, trust: &Trust) -> Result<()> {
        let read = || {
            let file = File::from(trust.open(path, OFlags::RDONLY)?);
            let meta = file.metadata()?;
            if !meta.is_file() || meta.len() > FILE_BYTES_MAX {
                return Err(io::Error::other("it is no plain file of at most 1 MiB"));
            }
            io::read_to_string(file.take(FILE_BYTES_MAX))
        };
        let text = read().map_err(|error| Error::config(format!("{}: {error}", path.display())))?;
        self.apply_file(path, &text)
    }

    pub(super) fn apply_file(&mut self, path: &Path, text: &str) -> Result<()> {
        let at = |span: Option<std::ops::Range<usize>>| {
            let before = span.and_then(|span| text.get(..span.start)).unwrap_or_default();
            Origin::File { path: path.into(), line: 1 + before.matches('\n').count() }
        };
        let wrong = |origin: &Origin, why: &str| Error::config(format!("{origin}: {why}"));
        let unreadable = |error: toml::de::Error| wrong(&at(error.span()), error.message());
        let values: toml::Table = text.parse().map_err(unreadable)?;
        let names = toml::de::DeTable::parse(text).map_err(unreadable)?.into_inner();
        for (name, _) in names {
            let (origin, name) = (at(Some(name.span())), name.into_inner());
            if name == lab::PREFIX.trim_end_matches('.') {
                return Err(wrong(
                    &origin,
                    "lab settings come from the call or STANDFAST_LAB_NAME",
                ));
            }
            let text = match values.get(&*name) {
                Some(toml::Value::String(text)) => text.clone(),
                Some(toml::Value::Integer(number)) => number.to_string(),
                _ => {
                    let why = format!("{name}: its value is neither text nor a number");
                    return Err(wrong(&origin, &why));
                }
            };
            self.set(&name, &text, origin)?;
        }
        Ok(())
    }

    pub(super) fn apply_environment(&mut self, variables: &[(String, String)]) -> Result<()> {
        for (variable, text) in variables {
            let Some(name) = variable.strip_prefix(PREFIX) else { continue };
            let name = match name.strip_prefix(LAB) {
                Some(bare) => format!("{}{}", lab::PREFIX, bare.to_ascii_lowercase()),
                None => name.to_ascii_lowercase(),
            };
            self.set(&name, text, Origin::Environment(variable.clone()))?;
        }
        Ok(())
    }
}

/// Whose file of settings is read: the file itself cannot say it. What makes no sense is told when it is
/// set.
fn trust_of(overrides: &[(String, String)], environment: &[(String, String)]) -> Trust {
    let variable = format!("{PREFIX}SHARE");
    let of_call = overrides.iter().find(|(name, _)| name == "share");
    let said = of_call.or_else(|| environment.iter().find(|(name, _)| *name == variable));
    let share = said.and_then(|(_, text)| text.parse::<Share>().ok());
    share.and_then(|share| share.trust().ok()).unwrap_or_default()
}

/// The variables of this process that are settings.
fn environment() -> Result<Vec<(String, String)>> {
    let mut variables = Vec::new();
    for (name, value) in std::env::vars_os() {
        if !name.as_bytes().starts_with(PREFIX.as_bytes()) {
            continue;
        }
        let shown = name.to_string_lossy().into_owned();
        if is_no_setting(&shown[PREFIX.len()..]) {
            continue;
        }
        let wrong = || Error::config(format!("environment {shown}: its value is not UTF-8"));
        variables.push((shown.clone(), value.into_string().map_err(|_| wrong())?));
    }
    Ok(variables)
}

fn is_no_setting(name: &str) -> bool {
    NO_SETTINGS.iter().any(|pattern| match pattern.strip_suffix('*') {
        Some(start) => name.starts_with(start),
        None => name == *pattern,
    })
}

/// Splits `name=value; name=value` (or one per line) as `sf_init` takes it.
pub fn parse_options(text: &str) -> Result<Vec<(String, String)>> {
    text.split([';', '\n'])
        .map(str::trim)
        .filter(|option| !option.is_empty())
        .map(|option| {
            let (name, value) = option
                .split_once('=')
                .ok_or_else(|| Error::config(format!("call: {option:?} is not name=value")))?;
            Ok((name.trim().to_owned(), value.trim().to_owned()))
        })
        .collect()
}

#[cfg(test)]
mod tests;
