//! Configuration: defaults, then `standfast.toml`, then `STANDFAST_*`, then the program's call.
//!
//! Data: texts from each source -> [`Loaded`]: the effective [`Config`] and where every value
//! came from. Sensible without any file.
//!
//! Invariants:
//! - A name that is no setting is an error wherever it is found: a misspelt setting must not be
//!   silently ignored.

mod keys;
mod settings;
mod size;
mod time;

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};

pub use keys::{
    Capture, Interval, KEYS, Key, Mode, Restart, Ring, RingArithmetic, Strategy, Threshold, Track,
    WhenFull, Write, key,
};
pub use settings::Config;
pub use size::ByteSize;
pub use standfast_capture::Signal;
pub use time::TimeSpan;

use crate::error::{Error, Result};

/// The file that is read when it exists and no other is named.
pub const FILE: &str = "standfast.toml";
/// What the names of environment variables begin with.
pub const PREFIX: &str = "STANDFAST_";
/// Names a configuration file to read instead of `standfast.toml`.
const FILE_VARIABLE: &str = "STANDFAST_CONFIG";
/// Variables that begin with [`PREFIX`] and are no settings: the file to read, where the corpus of
/// real pages lies, what the preload library is told, and what only tests look at.
const NO_SETTINGS: [&str; 4] = ["CONFIG", "CORPUS", "PRELOAD_*", "TEST_*"];

/// Where a value came from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Origin {
    /// Nobody set it.
    Default,
    /// A configuration file.
    File(PathBuf),
    /// An environment variable.
    Environment(String),
    /// The program's call or the command's option.
    Call,
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Origin::Default => f.write_str("default"),
            Origin::File(path) => write!(f, "file {}", path.display()),
            Origin::Environment(name) => write!(f, "environment {name}"),
            Origin::Call => f.write_str("call"),
        }
    }
}

/// The effective configuration and its origins.
#[derive(Clone, Debug)]
pub struct Loaded {
    /// The values.
    pub config: Config,
    origins: BTreeMap<&'static str, Origin>,
}

impl Loaded {
    /// Reads file and environment of this process, then applies the caller's settings.
    pub fn load(overrides: &[(String, String)]) -> Result<Self> {
        let mut loaded = Self { config: Config::default(), origins: BTreeMap::new() };
        let variables: Vec<(String, String)> = std::env::vars_os()
            .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
            .collect();
        let named = variables.iter().find(|(name, _)| name == FILE_VARIABLE);
        match named {
            Some((_, path)) => loaded.read_file(Path::new(path))?,
            None if Path::new(FILE).exists() => loaded.read_file(Path::new(FILE))?,
            None => {}
        }
        loaded.apply_environment(&variables)?;
        for (name, text) in overrides {
            loaded.set(name, text, Origin::Call)?;
        }
        loaded.config.check().map_err(Error::Config)?;
        Ok(loaded)
    }

    /// Where a value came from.
    pub fn origin(&self, name: &str) -> &Origin {
        self.origins.get(name).unwrap_or(&Origin::Default)
    }

    fn set(&mut self, name: &str, text: &str, origin: Origin) -> Result<()> {
        let key =
            key(name).ok_or_else(|| Error::Config(format!("{origin}: {}", keys::unknown(name))))?;
        (key.set)(&mut self.config, text)
            .map_err(|why| Error::Config(format!("{origin}: {name}: {why}")))?;
        self.origins.insert(key.name, origin);
        Ok(())
    }

    fn read_file(&mut self, path: &Path) -> Result<()> {
        let wrong = |why: String| Error::Config(format!("file {}: {why}", path.display()));
        let text = std::fs::read_to_string(path).map_err(|error| wrong(error.to_string()))?;
        self.apply_file(path, &text)
    }

    fn apply_file(&mut self, path: &Path, text: &str) -> Result<()> {
        let wrong = |why: String| Error::Config(format!("file {}: {why}", path.display()));
        let table: toml::Table = text.parse().map_err(|error| wrong(format!("{error}")))?;
        for (name, value) in table {
            let text = match value {
                toml::Value::String(text) => text,
                toml::Value::Integer(number) => number.to_string(),
                _ => return Err(wrong(format!("{name}: its value is neither text nor a number"))),
            };
            self.set(&name, &text, Origin::File(path.into()))?;
        }
        Ok(())
    }

    fn apply_environment(&mut self, variables: &[(String, String)]) -> Result<()> {
        for (variable, text) in variables {
            let Some(name) = variable.strip_prefix(PREFIX) else { continue };
            if is_no_setting(name) {
                continue;
            }
            let origin = Origin::Environment(variable.clone());
            self.set(&name.to_ascii_lowercase(), text, origin)?;
        }
        Ok(())
    }
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
                .ok_or_else(|| Error::Config(format!("call: {option:?} is not name=value")))?;
            Ok((name.trim().to_owned(), value.trim().to_owned()))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn empty() -> Loaded {
        Loaded { config: Config::default(), origins: BTreeMap::new() }
    }

    fn variables(pairs: &[(&str, &str)]) -> Vec<(String, String)> {
        pairs.iter().map(|(name, value)| ((*name).into(), (*value).into())).collect()
    }

    #[test]
    fn later_sources_win_and_origins_are_known() {
        let mut loaded = empty();
        loaded.apply_file(Path::new("x.toml"), "job = \"a\"\npool = \"8MiB\"\nkeep = 3").unwrap();
        loaded.apply_environment(&variables(&[("STANDFAST_JOB", "b"), ("HOME", "/")])).unwrap();
        assert_eq!(loaded.config.job, "b");
        assert_eq!(loaded.config.keep, 3);
        assert_eq!(loaded.origin("job").to_string(), "environment STANDFAST_JOB");
        assert_eq!(loaded.origin("pool").to_string(), "file x.toml");
        assert_eq!(loaded.origin("hash"), &Origin::Default);
    }

    #[test]
    fn misspelt_settings_are_errors_everywhere() {
        let texts = [
            empty().apply_file(Path::new("x.toml"), "codek = \"lz4\"").unwrap_err().to_string(),
            empty()
                .apply_environment(&variables(&[("STANDFAST_CODEK", "lz4")]))
                .unwrap_err()
                .to_string(),
            parse_options("codek").unwrap_err().to_string(),
        ];
        assert!(texts.iter().all(|text| text.contains("codek")), "{texts:?}");
    }

    #[test]
    fn variables_of_other_parts_are_let_alone() {
        let others = [
            ("STANDFAST_CONFIG", "a.toml"),
            ("STANDFAST_CORPUS", "pages"),
            ("STANDFAST_PRELOAD_SIGNAL", "12"),
        ];
        let mut loaded = empty();
        loaded.apply_environment(&variables(&others)).unwrap();
        assert_eq!(loaded.config, Config::default());
        assert!(empty().apply_environment(&variables(&[("STANDFAST_CORPUSES", "x")])).is_err());
    }

    #[test]
    fn bad_values_name_setting_and_source() {
        for (text, name) in [
            ("page = \"5KiB\"", "page"),
            ("codec = \"zip\"", "codec"),
            ("keep = -1", "keep"),
            ("threads = \"many\"", "threads"),
            ("job = \"../x\"", "job"),
            ("hash = [1]", "hash"),
            ("interval = \"sometimes\"", "interval"),
            ("interval = \"0s\"", "interval"),
            ("mtti = \"-4h\"", "mtti"),
            ("signal = \"KILL\"", "signal"),
        ] {
            let error = empty().apply_file(Path::new("x.toml"), text).unwrap_err().to_string();
            assert!(error.contains("x.toml") && error.contains(name), "{error}");
        }
        let mut config = Config::default();
        config.set("block", "6KiB").unwrap();
        assert!(config.check().is_err());
    }

    #[test]
    fn shown_values_can_be_read_again() {
        let config = Config::default();
        for key in KEYS {
            let mut again = config.clone();
            again.set(key.name, &(key.show)(&config)).unwrap();
            assert_eq!(again, config, "{}", key.name);
        }
    }

    #[test]
    fn options_of_a_call_are_split() {
        let options = parse_options("job=heat; store = /a b/c\n keep=2;").unwrap();
        assert_eq!(options, variables(&[("job", "heat"), ("store", "/a b/c"), ("keep", "2")]));
    }
}
