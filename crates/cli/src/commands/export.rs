//! `export`: regions of a checkpoint as raw files, every page verified on the way.
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
//! - Nothing that exists is replaced without `--force`.

use std::fs::{File, Permissions};
use std::os::unix::fs::{FileExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::atomic::AtomicU64;

use serde_json::{Value, json};
use standfast::{Image, Kind, Manifest, human_bytes};
use standfast_reduce::is_zero;
use standfast_restart::{Error, Failed, Rebuild, Sink, read_image};
use tempfile::NamedTempFile;

use crate::args::{ExportArgs, Global};
use crate::bar;
use crate::escape;
use crate::failure::{Failure, Result};
use crate::interrupt;
use crate::output::{GOOD, Output};
use crate::place::{self, OpenJob};

const INDEX: &str = "index.json";

/// Exports a checkpoint, or some regions of it.
pub(crate) fn run(global: &Global, args: &ExportArgs, output: &Output) -> Result<ExitCode> {
    // Files on their way are removed when it is interrupted.
    interrupt::listen();
    let job = place::open(global)?;
    let _lock = job.lock()?;
    let inventory = job.inventory()?;
    let manifest = place::choose(&inventory, Some(args.version))?;
    let images = images(&job, manifest, args)?;
    let several = manifest.ranks > 1;
    let planned: Vec<Planned> =
        images.iter().flat_map(|image| plan(image, args, several)).collect();
    refuse_existing(&planned, args)?;
    std::fs::create_dir_all(&args.to)
        .map_err(|error| Failure::os("make", args.to.display(), error))?;
    let total = planned.iter().map(|file| file.bytes).fold(0, u64::saturating_add);
    let bar = bar::bytes(output, total, "exporting");
    for image in images {
        let files = planned.iter().filter(|file| file.rank == image.rank.0).collect();
        let done = AtomicU64::new(0);
        bar::follow(&bar, &done, || one_rank(&job, image, files, args, &done))?;
    }
    write_index(&job, manifest, &planned, args)?;
    bar.finish_and_clear();
    tell(&planned, total, args, output)?;
    Ok(ExitCode::SUCCESS)
}

/// A region and the file it goes to.
struct Planned {
    rank: u32,
    /// Place of the region in its image.
    number: usize,
    region: String,
    file: String,
    bytes: u64,
    elem: u8,
}

impl Planned {
    fn json(&self) -> Value {
        json!({
            "rank": self.rank, "region": self.region, "file": self.file, "bytes": self.bytes,
            "elem": self.elem,
        })
    }
}

/// The images that have a wanted region.
fn images(job: &OpenJob, manifest: &Manifest, args: &ExportArgs) -> Result<Vec<Image>> {
    let mut images = Vec::new();
    for image in &manifest.images {
        images.push(read_image(&*job.store, manifest, image.rank)?);
    }
    let version = manifest.version;
    for region in &args.region {
        if images.iter().all(|image| image.region(region).is_none()) {
            return Err(Error::NoRegion { version, region: region.clone() }.into());
        }
    }
    Ok(images)
}

fn plan(image: &Image, args: &ExportArgs, several: bool) -> Vec<Planned> {
    let prefix = if several { format!("rank-{:06}.", image.rank.0) } else { String::new() };
    let regions = image.regions.iter().enumerate();
    let wanted =
        regions.filter(|(_, region)| args.region.is_empty() || args.region.contains(&region.name));
    wanted
        .map(|(number, region)| Planned {
            rank: image.rank.0,
            number,
            region: region.name.clone(),
            file: format!("{prefix}{}.raw", escape::file_name(&region.name)),
            bytes: region.bytes,
            elem: region.elem,
        })
        .collect()
}

fn refuse_existing(planned: &[Planned], args: &ExportArgs) -> Result<()> {
    let mut files = planned.iter().map(|file| file.file.as_str()).chain([INDEX]);
    let found = files.find(|file| args.to.join(file).symlink_metadata().is_ok());
    match found {
        Some(file) if !args.force => Err(exists(&args.to.join(file))),
        _ => Ok(()),
    }
}

fn exists(path: &Path) -> Failure {
    Failure::new(Kind::Invalid, format!("{} exists already", path.display()))
        .advise("export to another directory, or replace it with --force")
}

fn one_rank(
    job: &OpenJob,
    image: Image,
    planned: Vec<&Planned>,
    args: &ExportArgs,
    done: &AtomicU64,
) -> Result<()> {
    let rebuild = Rebuild::open(&*job.store, &job.header, image, job.threads())?;
    let mut sink = FileSink { files: Vec::new() };
    sink.files.resize_with(rebuild.image().regions.len(), || None);
    for file in &planned {
        sink.files[file.number] = Some(Part::create(&args.to, file)?);
    }
    let wanted: Vec<bool> = sink.files.iter().map(Option::is_some).collect();
    match rebuild.rebuild(&sink, |region| wanted[region], done) {
        Ok(()) => {}
        Err(Failed::Source(error)) => return Err(error.into()),
        Err(Failed::Sink(failure)) => return Err(failure),
    }
    for part in sink.files.into_iter().flatten() {
        part.publish(args.force)?;
    }
    sync_directory(&args.to)
}

/// A file on its way; dropped, it is removed.
struct Part {
    temporary: NamedTempFile,
    path: PathBuf,
    bytes: u64,
}

impl Part {
    fn create(dir: &Path, planned: &Planned) -> Result<Self> {
        let path = dir.join(&planned.file);
        let temporary = temporary(dir)?;
        temporary
            .as_file()
            .set_len(planned.bytes)
            .map_err(|error| Failure::os("make", path.display(), error))?;
        Ok(Self { temporary, path, bytes: planned.bytes })
    }

    fn publish(self, force: bool) -> Result<()> {
        publish(self.temporary, &self.path, force)
    }
}

fn temporary(dir: &Path) -> Result<NamedTempFile> {
    tempfile::Builder::new()
        .prefix(".export-")
        .suffix(".part")
        .permissions(Permissions::from_mode(0o666))
        .tempfile_in(dir)
        .map_err(|error| Failure::os("make a file in", dir.display(), error))
}

/// Makes a file durable, then gives it its name.
fn publish(temporary: NamedTempFile, path: &Path, force: bool) -> Result<()> {
    let failed = |error| Failure::os("write", path.display(), error);
    temporary.as_file().sync_all().map_err(failed)?;
    let persisted = match force {
        true => temporary.persist(path),
        false => temporary.persist_noclobber(path),
    };
    match persisted {
        Ok(_) => Ok(()),
        Err(error) if error.error.kind() == std::io::ErrorKind::AlreadyExists => Err(exists(path)),
        Err(error) => Err(failed(error.error)),
    }
}

fn sync_directory(dir: &Path) -> Result<()> {
    File::open(dir)
        .and_then(|dir| dir.sync_all())
        .map_err(|error| Failure::os("sync", dir.display(), error))
}

/// Puts pages into files; what stays unwritten is a hole.
struct FileSink {
    files: Vec<Option<Part>>,
}

impl Sink for FileSink {
    type Error = Failure;

    fn pages(&self, region: usize, offset: u64, bytes: &[u8]) -> Result<()> {
        interrupt::check()?;
        let part = self.files[region].as_ref().expect("only wanted regions are rebuilt");
        // The last page is filled up with zeros that the region does not have.
        let inside = usize::try_from(part.bytes.saturating_sub(offset)).unwrap_or(usize::MAX);
        let bytes = &bytes[..bytes.len().min(inside)];
        if is_zero(bytes) {
            return Ok(());
        }
        let written = part.temporary.as_file().write_all_at(bytes, offset);
        written.map_err(|error| Failure::os("write", part.path.display(), error))
    }

    fn zeros(&self, _: usize, _: u64, _: u64) -> Result<()> {
        Ok(())
    }
}

fn write_index(
    job: &OpenJob,
    manifest: &Manifest,
    planned: &[Planned],
    args: &ExportArgs,
) -> Result<()> {
    let files: Vec<Value> = planned.iter().map(Planned::json).collect();
    let index = json!({
        "job": job.name, "version": manifest.version, "taken_ns": manifest.taken_ns,
        "ranks": manifest.ranks, "regions": files,
    });
    let part = temporary(&args.to)?;
    part.as_file()
        .write_all_at(format!("{index:#}\n").as_bytes(), 0)
        .map_err(|error| Failure::os("write", args.to.join(INDEX).display(), error))?;
    publish(part, &args.to.join(INDEX), args.force)?;
    sync_directory(&args.to)
}

fn tell(planned: &[Planned], total: u64, args: &ExportArgs, output: &Output) -> Result<()> {
    for file in planned {
        output.record("file", file.json())?;
        output.line(format_args!(
            "  {}  {}  ({})",
            args.to.join(&file.file).display(),
            human_bytes(file.bytes),
            escape::name(&file.region)
        ))?;
    }
    output.record(
        "exported",
        json!({
            "version": args.version, "to": args.to.to_string_lossy(), "files": planned.len(),
            "bytes": total,
        }),
    )?;
    output.line(format_args!(
        "{}  {} of checkpoint {}, every page verified; {} tells which file is whose",
        output.paint(GOOD, "exported"),
        human_bytes(total),
        args.version,
        args.to.join(INDEX).display()
    ))
}
