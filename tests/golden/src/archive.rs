//! A family of stores as one file: tar, compressed with zstd, so that anybody can look into it.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

/// Slow and small: it is made once and committed.
const LEVEL: i32 = 19;

/// Packs all files below a directory but locks, which hold nothing but the name of the machine.
pub fn pack(dir: &Path) -> Result<Vec<u8>> {
    let mut encoder = zstd::Encoder::new(Vec::new(), LEVEL)?;
    // Cases have much in common, which lies farther apart than the usual window.
    encoder.window_log(24)?;
    encoder.long_distance_matching(true)?;
    let mut archive = tar::Builder::new(encoder);
    for file in files(dir)?.iter().filter(|file| !is_lock(file)) {
        let bytes = std::fs::read(file)?;
        archive.append_data(&mut header(bytes.len()), file.strip_prefix(dir)?, &bytes[..])?;
    }
    Ok(archive.into_inner()?.finish()?)
}

/// Unpacks into a directory, which is made.
pub fn unpack(archive: &[u8], dir: &Path) -> Result<()> {
    let mut archive = tar::Archive::new(zstd::Decoder::new(archive)?);
    archive.unpack(dir).with_context(|| format!("unpacking into {}", dir.display()))
}

/// Unpacks one case into a directory, which must be there.
pub fn unpack_case(archive: &[u8], case: &str, dir: &Path) -> Result<()> {
    let mut archive = tar::Archive::new(zstd::Decoder::new(archive)?);
    for entry in archive.entries()? {
        let mut entry = entry?;
        if entry.path()?.starts_with(case) {
            entry.unpack_in(dir)?;
        }
    }
    Ok(())
}

/// All files below a directory, in the order of their names.
pub fn files(dir: &Path) -> Result<Vec<PathBuf>> {
    let mut all = Vec::new();
    for entry in std::fs::read_dir(dir).with_context(|| dir.display().to_string())? {
        let entry = entry?;
        match entry.file_type()?.is_dir() {
            true => all.extend(files(&entry.path())?),
            false => all.push(entry.path()),
        }
    }
    all.sort();
    Ok(all)
}

fn is_lock(file: &Path) -> bool {
    file.file_name().is_some_and(|name| name.as_encoded_bytes().starts_with(b"lock."))
}

/// Nobody's file, of no time.
fn header(bytes: usize) -> tar::Header {
    let mut header = tar::Header::new_gnu();
    header.set_size(bytes as u64);
    header.set_mode(0o644);
    header.set_mtime(0);
    header
}
