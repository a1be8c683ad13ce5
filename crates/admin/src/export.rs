//! Regions of a checkpoint as raw files, every page verified on the way.
//!
//! ```text
//! DIR/temperature.raw          one file per region; zero pages are holes
//! DIR/rank-000003.grid.raw     with the rank, where the job has several
//! DIR/index.json               region -> file, bytes, size of an element
//! ```
//! Region names are arbitrary text, so files have encoded names and the index tells which is
//! whose.
//!
//! Invariants:
//! - A file under its final name is whole, verified and durable; the index comes last.
//! - Nothing that exists is replaced unless that is wanted.

use std::fs::{DirBuilder, File};
use std::os::unix::fs::{DirBuilderExt, FileExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use serde::Serialize;
use serde_json::json;
use standfast::{Image, Manifest};
use standfast_format::Digest;
use standfast_reduce::is_zero;
use standfast_restart::{Error as ReadError, Failed, Rebuild, Sink, read_image};
use standfast_sys::trust::Trust;
use tempfile::NamedTempFile;

use crate::error::{Error, Result};
use crate::place::OpenJob;

/// The file that tells which file is whose.
pub const INDEX: &str = "index.json";
/// Longest file name made from a region's name, before its suffix.
const FILE_NAME_BYTES_MAX: usize = 200;

/// What goes where.
#[derive(Clone, Debug)]
pub struct Wanted<'a> {
    /// Directory for the files; made if need be.
    pub to: &'a Path,
    /// Only these regions; all if empty.
    pub regions: &'a [String],
    /// Replace files that exist.
    pub force: bool,
}

/// A region and the file it goes to.
#[derive(Debug, Serialize)]
pub struct Exported {
    /// Whose.
    pub rank: u32,
    /// Place of the region in its image.
    #[serde(skip)]
    number: usize,
    /// Its name; any text.
    pub region: String,
    /// The file, within the directory.
    pub file: String,
    /// Its size.
    pub bytes: u64,
    /// Size of an element; 0 where nobody said.
    pub elem: u8,
}

/// An export that has been planned.
pub struct Export<'a> {
    job: &'a OpenJob,
    manifest: &'a Manifest,
    wanted: Wanted<'a>,
    images: Vec<Image>,
    /// The files, in the order of ranks.
    pub files: Vec<Exported>,
}

impl<'a> Export<'a> {
    /// Reads the images and refuses what cannot be.
    pub fn plan(job: &'a OpenJob, manifest: &'a Manifest, wanted: Wanted<'a>) -> Result<Self> {
        let read =
            |image: &standfast_format::ImageRef| read_image(&*job.store, manifest, image.rank);
        let images: Vec<Image> = manifest
            .images
            .iter()
            .map(read)
            .collect::<std::result::Result<_, standfast_restart::Unreadable>>()?;
        for region in wanted.regions {
            if images.iter().all(|image| image.region(region).is_none()) {
                let version = manifest.version;
                return Err(ReadError::NoRegion { version, region: region.clone() }.into());
            }
        }
        let several = manifest.ranks > 1;
        let files = images.iter().flat_map(|image| planned(image, &wanted, several)).collect();
        let export = Self { job, manifest, wanted, images, files };
        export.refuse_existing()?;
        Ok(export)
    }

    /// Bytes of all files.
    pub fn bytes(&self) -> u64 {
        self.files.iter().map(|file| file.bytes).fold(0, u64::saturating_add)
    }

    /// Writes the files; `done` counts bytes, `stop` ends it early.
    pub fn run(self, done: &AtomicU64, stop: &AtomicBool) -> Result<Vec<Exported>> {
        let Self { job, manifest, wanted, images, files } = self;
        make_directory(wanted.to, &job.config.trust)?;
        for image in images {
            let own = files.iter().filter(|file| file.rank == image.rank.0).collect();
            one_rank(job, image, own, &wanted, (done, stop))?;
        }
        let index = json!({
            "job": job.name, "version": manifest.version, "taken_ns": manifest.taken_ns,
            "ranks": manifest.ranks, "regions": files,
        });
        write_index(&format!("{index:#}\n"), &wanted, &job.config.trust)?;
        Ok(files)
    }

    fn refuse_existing(&self) -> Result<()> {
        let mut files = self.files.iter().map(|file| file.file.as_str()).chain([INDEX]);
        match files.find(|file| self.wanted.to.join(file).symlink_metadata().is_ok()) {
            Some(file) if !self.wanted.force => Err(Error::Exists(self.wanted.to.join(file))),
            _ => Ok(()),
        }
    }
}

fn planned(image: &Image, wanted: &Wanted<'_>, several: bool) -> Vec<Exported> {
    let prefix = if several { format!("rank-{:06}.", image.rank.0) } else { String::new() };
    let regions = image.regions.iter().enumerate();
    let regions = regions
        .filter(|(_, region)| wanted.regions.is_empty() || wanted.regions.contains(&region.name));
    regions
        .map(|(number, region)| Exported {
            rank: image.rank.0,
            number,
            region: region.name.clone(),
            file: format!("{prefix}{}.raw", file_name(&region.name)),
            bytes: region.bytes,
            elem: region.elem,
        })
        .collect()
}

fn one_rank(
    job: &OpenJob,
    image: Image,
    files: Vec<&Exported>,
    wanted: &Wanted<'_>,
    (done, stop): (&AtomicU64, &AtomicBool),
) -> Result<()> {
    let rebuild = Rebuild::open(&*job.store, &job.header, image, job.threads())?;
    let mut sink = FileSink { files: Vec::new(), stop };
    sink.files.resize_with(rebuild.image().regions.len(), || None);
    for file in &files {
        sink.files[file.number] = Some(Part::create(wanted.to, file)?);
    }
    let is_wanted: Vec<bool> = sink.files.iter().map(Option::is_some).collect();
    match rebuild.rebuild(&sink, |region| is_wanted[region], done) {
        Ok(()) => {}
        Err(Failed::Source(error)) => return Err(error.into()),
        Err(Failed::Sink(error)) => return Err(error),
    }
    for part in sink.files.into_iter().flatten() {
        publish(part.temporary, &part.path, wanted.force, &job.config.trust)?;
    }
    sync_directory(wanted.to)
}

/// A file on its way; dropped, it is removed.
struct Part {
    temporary: NamedTempFile,
    path: PathBuf,
    bytes: u64,
}

impl Part {
    fn create(dir: &Path, planned: &Exported) -> Result<Self> {
        let path = dir.join(&planned.file);
        let temporary = temporary(dir)?;
        temporary
            .as_file()
            .set_len(planned.bytes)
            .map_err(|error| Error::os("make", path.display(), error))?;
        Ok(Self { temporary, path, bytes: planned.bytes })
    }
}

/// Makes the directory, for those who may read the store.
fn make_directory(dir: &Path, trust: &Trust) -> Result<()> {
    if dir.is_dir() {
        return Ok(());
    }
    let made = DirBuilder::new().recursive(true).mode(0o700).create(dir);
    let given = made.and_then(|()| trust.give(File::open(dir)?, trust.directory_mode()));
    given.map_err(|error| Error::os("make", dir.display(), error))
}

fn temporary(dir: &Path) -> Result<NamedTempFile> {
    tempfile::Builder::new()
        .prefix(".export-")
        .suffix(".part")
        .tempfile_in(dir)
        .map_err(|error| Error::os("make a file in", dir.display(), error))
}

/// Makes a file durable, then gives it its name. Who may read the store may read it.
fn publish(temporary: NamedTempFile, path: &Path, force: bool, trust: &Trust) -> Result<()> {
    let failed = |error| Error::os("write", path.display(), error);
    trust.give(temporary.as_file(), trust.file_mode()).map_err(failed)?;
    temporary.as_file().sync_all().map_err(failed)?;
    let persisted = match force {
        true => temporary.persist(path),
        false => temporary.persist_noclobber(path),
    };
    match persisted {
        Ok(_) => Ok(()),
        Err(error) if error.error.kind() == std::io::ErrorKind::AlreadyExists => {
            Err(Error::Exists(path.to_owned()))
        }
        Err(error) => Err(failed(error.error)),
    }
}

fn sync_directory(dir: &Path) -> Result<()> {
    File::open(dir)
        .and_then(|dir| dir.sync_all())
        .map_err(|error| Error::os("sync", dir.display(), error))
}

fn write_index(text: &str, wanted: &Wanted<'_>, trust: &Trust) -> Result<()> {
    let path = wanted.to.join(INDEX);
    let part = temporary(wanted.to)?;
    part.as_file()
        .write_all_at(text.as_bytes(), 0)
        .map_err(|error| Error::os("write", path.display(), error))?;
    publish(part, &path, wanted.force, trust)?;
    sync_directory(wanted.to)
}

/// Puts pages into files; what stays unwritten is a hole.
struct FileSink<'a> {
    files: Vec<Option<Part>>,
    stop: &'a AtomicBool,
}

impl Sink for FileSink<'_> {
    type Error = Error;

    fn pages(&self, region: usize, offset: u64, bytes: &[u8]) -> Result<()> {
        if self.stop.load(Ordering::Relaxed) {
            return Err(Error::Stopped);
        }
        let Some(part) = &self.files[region] else { return Ok(()) };
        // The last page is filled up with zeros that the region does not have.
        let inside = usize::try_from(part.bytes.saturating_sub(offset)).unwrap_or(usize::MAX);
        let bytes = &bytes[..bytes.len().min(inside)];
        if is_zero(bytes) {
            return Ok(());
        }
        let written = part.temporary.as_file().write_all_at(bytes, offset);
        written.map_err(|error| Error::os("write", part.path.display(), error))
    }

    fn zeros(&self, _: usize, _: u64, _: u64) -> Result<()> {
        Ok(())
    }
}

/// A file name that is safe everywhere and different for different regions: letters, digits,
/// `.`, `_` and `-` stay, everything else is percent-encoded; long names end in a digest.
fn file_name(region: &str) -> String {
    let mut encoded = String::new();
    for (at, byte) in region.bytes().enumerate() {
        let first_is_special = at == 0 && matches!(byte, b'.' | b'-');
        if (byte.is_ascii_alphanumeric() || b"._-".contains(&byte)) && !first_is_special {
            encoded.push(byte as char);
        } else {
            encoded.push_str(&format!("%{byte:02X}"));
        }
    }
    if encoded.len() > FILE_NAME_BYTES_MAX {
        // '~' is in no encoded name, so a shortened one meets no other.
        let digest = Digest::of(region.as_bytes()).to_string();
        encoded.truncate(FILE_NAME_BYTES_MAX - 33);
        encoded = format!("{encoded}~{}", &digest[..32]);
    }
    encoded
}

#[cfg(test)]
mod tests;
