//! What directories hold.

use std::path::{Path, PathBuf};

use anyhow::Context;

/// What a directory holds, in the order of names.
pub(crate) fn entries(dir: &Path) -> anyhow::Result<Vec<PathBuf>> {
    let what = || format!("reading {}", dir.display());
    let all = std::fs::read_dir(dir).with_context(what)?;
    let mut paths: Vec<PathBuf> =
        all.map(|entry| Ok(entry?.path())).collect::<std::io::Result<_>>().with_context(what)?;
    paths.sort();
    Ok(paths)
}
