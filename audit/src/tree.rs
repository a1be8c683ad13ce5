//! The tree of dependencies, as far as the rules look at it.

use anyhow::Context;
use serde_json::Value;

/// Everything that is built, and everything that is locked.
#[derive(Debug, Default)]
pub(crate) struct Tree {
    /// Packages of this platform, the workspace's own included.
    pub(crate) packages: Vec<Package>,
    /// Packages of all platforms, from the lock file.
    pub(crate) locked: Vec<Locked>,
}

/// A package that takes part in the build.
#[derive(Clone, Debug, Default)]
pub(crate) struct Package {
    pub(crate) name: String,
    pub(crate) version: String,
    pub(crate) licence: String,
    /// Where it comes from; `None`: from this repository.
    pub(crate) source: Option<String>,
    /// Its dependencies, if it is one of ours.
    pub(crate) wants: Vec<Want>,
}

/// What one of our packages asks for.
#[derive(Clone, Debug)]
pub(crate) struct Want {
    pub(crate) name: String,
    pub(crate) requirement: String,
    pub(crate) is_registry: bool,
}

/// An entry of the lock file.
#[derive(Clone, Debug, Default)]
pub(crate) struct Locked {
    pub(crate) name: String,
    pub(crate) version: String,
    pub(crate) source: Option<String>,
    pub(crate) checksum: Option<String>,
}

impl Package {
    /// Whether it is part of this repository.
    pub(crate) fn is_ours(&self) -> bool {
        self.source.is_none()
    }

    /// What must be equal for two versions to be the same to a compiler: `1` of 1.2.3, `0.4` of
    /// 0.4.1.
    pub(crate) fn compatible(&self) -> String {
        let mut numbers = self.version.split('.');
        match (numbers.next(), numbers.next()) {
            (Some("0"), Some(minor)) => format!("0.{minor}"),
            (Some(major), _) => major.to_owned(),
            (None, _) => String::new(),
        }
    }
}

impl Tree {
    /// Reads cargo's metadata and the lock file.
    pub(crate) fn parse(metadata: &str, lock: &str) -> anyhow::Result<Self> {
        let metadata: Value = serde_json::from_str(metadata).context("cargo metadata")?;
        let packages = metadata["packages"].as_array().context("no packages in the metadata")?;
        let lock: toml::Table = lock.parse().context("Cargo.lock")?;
        let locked = lock.get("package").and_then(toml::Value::as_array);
        let locked = locked.context("no packages in Cargo.lock")?;
        Ok(Self {
            packages: packages.iter().map(read_package).collect::<anyhow::Result<_>>()?,
            locked: locked.iter().map(read_locked).collect::<anyhow::Result<_>>()?,
        })
    }
}

fn read_package(value: &Value) -> anyhow::Result<Package> {
    let text = |key: &str| value[key].as_str().map(str::to_owned);
    let source = text("source");
    let wants = value["dependencies"].as_array().filter(|_| source.is_none());
    let want = |value: &Value| Want {
        name: value["name"].as_str().unwrap_or_default().to_owned(),
        requirement: value["req"].as_str().unwrap_or_default().to_owned(),
        is_registry: value["path"].is_null(),
    };
    Ok(Package {
        name: text("name").context("a package without a name")?,
        version: text("version").context("a package without a version")?,
        licence: text("license").unwrap_or_default(),
        wants: wants.into_iter().flatten().map(want).collect(),
        source,
    })
}

fn read_locked(value: &toml::Value) -> anyhow::Result<Locked> {
    let text = |key: &str| value.get(key).and_then(toml::Value::as_str).map(str::to_owned);
    Ok(Locked {
        name: text("name").context("a locked package without a name")?,
        version: text("version").context("a locked package without a version")?,
        source: text("source"),
        checksum: text("checksum"),
    })
}
