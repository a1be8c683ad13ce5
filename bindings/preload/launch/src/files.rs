//! Whether a file is still the one that a program had mapped.

use std::ffi::OsStr;
use std::fs::File;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use crate::error::{Error, Result};
use crate::plan::{FILE, Plan};

/// Digest of a file's contents.
pub fn digest(path: &Path) -> std::io::Result<[u8; 32]> {
    let mut hasher = blake3::Hasher::new();
    hasher.update_reader(File::open(path)?)?;
    Ok(hasher.finalize().into())
}

/// Compares every mapped file with what it was.
pub(crate) fn compare(plan: &Plan<'_>) -> Result<()> {
    let mut seen: Vec<&[u8]> = Vec::new();
    for mapping in plan.mappings.iter().filter(|mapping| mapping.kind == FILE) {
        let bytes = plan.text(mapping.path);
        if seen.contains(&bytes) {
            continue;
        }
        seen.push(bytes);
        let path = Path::new(OsStr::from_bytes(bytes));
        let changed = |what: String| Error::Changed { path: path.display().to_string(), what };
        let now = digest(path).map_err(|error| changed(format!("cannot be read: {error}")))?;
        if now != mapping.digest {
            return Err(changed("has other contents than when the checkpoint was taken".into()));
        }
    }
    Ok(())
}
