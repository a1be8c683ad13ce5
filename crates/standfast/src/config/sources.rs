//! Where settings come from: a file, the environment, the program's call.

use std::fmt;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use super::{Loaded, lab};
use crate::error::{Error, Result};

/// The file that is read when it exists and no other is named.
pub const FILE: &str = "standfast.toml";
/// What the names of environment variables begin with.
pub const PREFIX: &str = "STANDFAST_";
/// Names a configuration file to read instead of `standfast.toml`.
const FILE_VARIABLE: &str = "STANDFAST_CONFIG";
/// What the variables of lab settings begin with, after [`PREFIX`].
const LAB: &str = "LAB_";
/// Variables that begin with [`PREFIX`] and are no settings: the file to read, where the corpus of
/// real pages lies, what the preload library is told, and what only tests look at.
const NO_SETTINGS: [&str; 4] = ["CONFIG", "CORPUS", "PRELOAD_*", "TEST_*"];

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
        match std::env::var_os(FILE_VARIABLE) {
            Some(path) => self.read_file(Path::new(&path))?,
            None if Path::new(FILE).exists() => self.read_file(Path::new(FILE))?,
            None => {}
        }
        self.apply_environment(&environment()?)?;
        overrides.iter().try_for_each(|(name, text)| self.set(name, text, Origin::Call))
    }

    fn read_file(&mut self, path: &Path) -> Result<()> {
        let text = std::fs::read_to_string(path)
            .map_err(|error| Error::Config(format!("{}: {error}", path.display())))?;
        self.apply_file(path, &text)
    }

    pub(super) fn apply_file(&mut self, path: &Path, text: &str) -> Result<()> {
        let at = |span: Option<std::ops::Range<usize>>| {
            let before = span.and_then(|span| text.get(..span.start)).unwrap_or_default();
            Origin::File { path: path.into(), line: 1 + before.matches('\n').count() }
        };
        let wrong = |origin: &Origin, why: &str| Error::Config(format!("{origin}: {why}"));
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
        let wrong = || Error::Config(format!("environment {shown}: its value is not UTF-8"));
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
                .ok_or_else(|| Error::Config(format!("call: {option:?} is not name=value")))?;
            Ok((name.trim().to_owned(), value.trim().to_owned()))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn variables(pairs: &[(&str, &str)]) -> Vec<(String, String)> {
        pairs.iter().map(|(name, value)| ((*name).into(), (*value).into())).collect()
    }

    fn in_file(text: &str) -> Result<Loaded> {
        let mut loaded = Loaded::empty();
        loaded.apply_file(Path::new("x.toml"), text).map(|()| loaded)
    }

    fn refused(text: &str) -> String {
        in_file(text).unwrap_err().to_string()
    }

    #[test]
    fn later_sources_win_and_origins_are_known() {
        let mut loaded = in_file("job = \"a\"\n\nmemory = \"8MiB\"\nkeep = 3").unwrap();
        let given =
            variables(&[("STANDFAST_JOB", "b"), ("HOME", "/"), ("STANDFAST_LAB_IO", "direct")]);
        loaded.apply_environment(&given).unwrap();
        assert_eq!(loaded.settings.place.job, "b");
        assert_eq!(loaded.settings.place.keep.newest, Some(3));
        assert_eq!(loaded.lab.iter().collect::<Vec<_>>(), [("io", "direct")]);
        assert_eq!(loaded.origin("job").to_string(), "environment STANDFAST_JOB");
        assert_eq!(loaded.origin("memory").to_string(), "x.toml:3");
        assert_eq!(loaded.origin("codec"), &Origin::Default);
    }

    #[test]
    fn misspelt_settings_are_errors_everywhere() {
        let told = "no setting \"codek\"; did you mean \"codec\"?";
        assert!(refused("\n\n\ncodek = \"lz4\"").ends_with(&format!("x.toml:4: {told}")));
        let environment = variables(&[("STANDFAST_CODEK", "lz4")]);
        let error = Loaded::empty().apply_environment(&environment).unwrap_err().to_string();
        assert!(error.ends_with(&format!("environment STANDFAST_CODEK: {told}")), "{error}");
        assert!(parse_options("codek").unwrap_err().to_string().contains("codek"));
        assert!(
            refused("pool = 5")
                .ends_with("x.toml:1: \"pool\" is now \"memory\", for the whole node")
        );
    }

    #[test]
    fn a_source_says_everything_once() {
        assert!(refused("job = \"a\"\njob = \"b\"").contains("x.toml:2: "));
        let mut loaded = Loaded::empty();
        loaded.set("keep", "3", Origin::Call).unwrap();
        let error = loaded.set("keep", "4", Origin::Call).unwrap_err().to_string();
        assert!(error.ends_with("call: \"keep\" is set twice"), "{error}");
    }

    #[test]
    fn experiments_set_nothing_in_files() {
        let told = "lab settings come from the call or STANDFAST_LAB_NAME";
        assert!(refused("job = \"a\"\nlab.page = \"4KiB\"").ends_with(told));
        assert!(refused("[lab]\npage = \"4KiB\"").ends_with(told));
    }

    #[test]
    fn variables_of_other_parts_are_let_alone() {
        assert!(
            ["CONFIG", "CORPUS", "PRELOAD_SIGNAL", "TEST_SEED"].iter().all(|it| is_no_setting(it))
        );
        assert!(!is_no_setting("CORPUSES") && !is_no_setting("STORE"));
    }

    #[test]
    fn bad_values_name_setting_and_source() {
        for (text, name) in [
            ("codec = \"zip\"", "codec"),
            ("keep = -1", "keep"),
            ("memory = \"many\"", "memory"),
            ("job = \"../x\"", "job"),
            ("capture = [1]", "capture"),
            ("interval = \"sometimes\"", "interval"),
            ("interval = \"0s\"", "interval"),
            ("interval = \"auto:-4h\"", "interval"),
            ("signal = \"KILL\"", "signal"),
            ("agent = \"onn\"", "agent"),
        ] {
            let error = refused(text);
            assert!(error.contains("x.toml:1: ") && error.contains(name), "{error}");
        }
        for (name, text) in [("lab.page", "5KiB"), ("lab.threads", "many")] {
            let error = Loaded::empty().set(name, text, Origin::Call).unwrap_err().to_string();
            assert!(error.contains(name), "{error}");
        }
        let load = |text: &str| Loaded::load(&[("lab.block".into(), text.into())]);
        assert!(load("6KiB").is_err() && load("64KiB").is_ok());
    }

    #[test]
    fn options_of_a_call_are_split() {
        let options = parse_options("job=heat; store = /a b/c\n keep=2;").unwrap();
        assert_eq!(options, variables(&[("job", "heat"), ("store", "/a b/c"), ("keep", "2")]));
    }
}
