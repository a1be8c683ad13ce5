//! A directory of CRIU's images as a checkpoint, and back.
//!
//! Data: files -> regions `criu/NAME` of a job: deduplicated against earlier dumps, compressed,
//! verified when they are read -> files.
//!
//! Invariants:
//! - Names are plain: what is read back is written into the given directory and nowhere else.

use std::fs;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use standfast::config::{Capture, Loaded, Track};
use standfast::{Job, Kind, Level, Version};

use crate::failure::{Failure, Result};

/// What regions' names begin with.
const PREFIX: &str = "criu/";

/// Opens the job for a checkpoint or a restart: its memory is that of files, and nobody writes to it.
fn open(loaded: &Loaded) -> Result<Job> {
    let mut loaded = loaded.clone();
    (loaded.config.track, loaded.config.capture) = (Track::Hash, Capture::Stop);
    loaded.config.signal = None;
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

/// Writes the files of a checkpoint into a directory: the given one, or the newest that is whole.
/// `None` if there is none at all.
pub(super) fn restore(
    loaded: &Loaded,
    version: Option<Version>,
    dir: &Path,
) -> Result<Option<Version>> {
    let job = open(loaded)?;
    if let Some(version) = version {
        return write(&job, version, dir).map(|()| Some(version));
    }
    let checkpoints = job.list();
    let mut last = None;
    for manifest in checkpoints {
        match write(&job, manifest.version, dir) {
            Ok(()) => return Ok(Some(manifest.version)),
            Err(failure @ Failure::Error { kind: Kind::Corrupt | Kind::Io, .. }) => {
                last = Some(failure);
            }
            Err(failure) => return Err(failure),
        }
    }
    last.map_or(Ok(None), Err)
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
        job.recover(version, region, &mut contents)?;
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
mod tests {
    use super::*;

    fn loaded(dir: &Path) -> Loaded {
        let store = dir.join("store").to_string_lossy().into_owned();
        Loaded::load(&[("store".into(), store), ("job".into(), "criu".into())]).unwrap()
    }

    fn fill(dir: &Path, pages: &[u8]) {
        fs::create_dir_all(dir).unwrap();
        fs::write(dir.join("pages-1.img"), pages).unwrap();
        fs::write(dir.join("core-17.img"), b"registers").unwrap();
        fs::write(dir.join("empty.img"), b"").unwrap();
    }

    #[test]
    fn directories_come_back_and_equal_pages_are_stored_once() {
        let place = tempfile::tempdir().unwrap();
        let loaded = loaded(place.path());
        let (one, two) = (place.path().join("one"), place.path().join("two"));
        let mut pages: Vec<u8> =
            (0..400_000u32).flat_map(|i| i.wrapping_mul(0x9e37).to_le_bytes()).collect();
        fill(&one, &pages);
        let first = store(&loaded, &one).unwrap();
        pages[123_456] ^= 1;
        fill(&one, &pages);
        let second = store(&loaded, &one).unwrap();
        assert_eq!((first, second), (Version(1), Version(2)));

        fs::create_dir(&two).unwrap();
        assert_eq!(restore(&loaded, None, &two).unwrap(), Some(second));
        assert!(fs::read(two.join("pages-1.img")).unwrap() == pages);
        assert_eq!(fs::read(two.join("core-17.img")).unwrap(), b"registers");
        assert_eq!(fs::read(two.join("empty.img")).unwrap(), b"");
        let job = open(&loaded).unwrap();
        let stats = &job.list()[0].stats;
        assert_eq!(stats.new_pages, 1, "one page has changed: {stats:?}");
    }

    #[test]
    fn a_store_without_processes_is_told_apart() {
        let place = tempfile::tempdir().unwrap();
        let loaded = loaded(place.path());
        assert!(restore(&loaded, None, place.path()).unwrap().is_none());
        let job = Job::open_loaded(loaded.clone()).unwrap();
        let _field = job.alloc::<f64>("field", 10).unwrap();
        job.checkpoint(None).unwrap();
        job.close().unwrap();
        let failure = restore(&loaded, None, place.path()).unwrap_err();
        assert!(failure.summary().1.contains("not taken by"), "{failure:?}");
    }

    #[test]
    fn names_that_lead_elsewhere_are_not_written() {
        for bad in ["", ".", "..", "a/b", "../x"] {
            assert!(!is_plain(bad), "{bad}");
        }
        assert!(is_plain("core-1.img"));
    }
}
