//! A directory of CRIU's images as a checkpoint, and back.
//!
//! Data: files -> regions `criu/NAME` of a job: deduplicated against earlier dumps, compressed,
//! verified when they are read -> files.
//!
//! Invariants:
//! - Names are plain: what is read back is written into the given directory and nowhere else.

use std::ffi::OsString;
use std::fs;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use standfast::config::{Capture, Choice, Loaded, Track};
use standfast::{Job, Kind, Level, Version};

use crate::failure::{Failure, Result};

/// What regions' names begin with.
const PREFIX: &str = "criu/";

/// Opens the job for a checkpoint or a restart: its memory is that of files, and nobody writes to it.
fn open(loaded: &Loaded) -> Result<Job> {
    let mut loaded = loaded.clone();
    loaded.config.pages.track = Track::Hash;
    loaded.config.pages.capture = Choice::Set(Capture::Stop);
    loaded.config.timing.signal = None;
    Ok(Job::open_loaded(loaded)?)
}

/// Stores every file of a directory as one checkpoint, durable when this returns.
pub(super) fn store(loaded: &Loaded, dir: &Path) -> Result<Version> {
    let mut files = Vec::new();
    for entry in fs::read_dir(dir).map_err(|error| Failure::os("read", dir.display(), error))? {
        let path = entry.map_err(|error| Failure::os("read", dir.display(), error))?.path();
        let Some(name) = path.file_name().and_then(|name| name.to_str()) else { continue };
        let contents =
            fs::read(&path).map_err(|error| Failure::os("read", path.display(), error))?;
        files.push((format!("{PREFIX}{name}"), contents));
    }
    // A stable order makes equal dumps equal checkpoints.
    files.sort();
    let job = open(loaded)?;
    for (name, contents) in &mut files {
        // SAFETY: the contents stay where they are until the job is closed, below.
        unsafe { job.protect(name, contents.as_mut_ptr(), contents.len(), 0) }?;
    }
    let version = job.checkpoint(None)?;
    job.wait(version, Level::Local)?;
    job.close()?;
    Ok(version)
}

/// Writes the files of a checkpoint into a directory: the one that `loaded` asks for, or the newest
/// that is whole. `None` if there is none at all; the error inside if the program begins anew.
pub(super) fn restore(
    loaded: &Loaded,
    command: &[OsString],
    dir: &Path,
) -> Result<std::result::Result<Option<Version>, standfast::Error>> {
    let job = open(loaded)?;
    job.declare_program(command)?;
    let checkpoints = match job.restartable() {
        Err(anew) if anew.is_anew() => return Ok(Err(anew)),
        checkpoints => checkpoints?,
    };
    let mut last = None;
    for manifest in checkpoints {
        match write(&job, manifest.version, dir) {
            Ok(()) => {
                job.goes_on_from(manifest.version)?;
                return Ok(Ok(Some(manifest.version)));
            }
            // Only damage that is proven makes a start go back.
            Err(failure @ Failure::Error { kind: Kind::Corrupt, .. }) => {
                last = Some(failure);
            }
            Err(failure) => return Err(failure),
        }
    }
    last.map_or(Ok(Ok(None)), Err)
}

fn write(job: &Job, version: Version, dir: &Path) -> Result<()> {
    let image = job.image(version)?;
    let names = image.regions.iter().map(|region| (region.name.as_str(), region.bytes));
    let mut files = 0;
    for (region, bytes) in names {
        let Some(name) = region.strip_prefix(PREFIX).filter(|name| is_plain(name)) else {
            continue;
        };
        let mut contents = vec![0; usize::try_from(bytes).expect("it was in memory once")];
        job.read_region(version, region, &mut contents)?;
        let path = dir.join(name);
        let failed = |error| Failure::os("write", path.display(), error);
        let mut options = fs::OpenOptions::new();
        // Memory of a process: nobody else's business.
        let options = options.write(true).create(true).truncate(true).mode(0o600);
        let mut file = options.open(&path).map_err(failed)?;
        std::io::Write::write_all(&mut file, &contents).map_err(failed)?;
        files += 1;
    }
    if files > 0 {
        return Ok(());
    }
    let what = format!("checkpoint {version} holds no process: it was not taken by 'run --criu'");
    Err(Failure::new(Kind::Invalid, what).advise("choose another --job for this program"))
}

fn is_plain(name: &str) -> bool {
    !name.is_empty() && !name.contains('/') && name != "." && name != ".."
}

#[cfg(test)]
mod tests;
