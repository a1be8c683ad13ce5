//! From a checkpoint to a file that a starting program takes its memory from.
//!
//! Data: store -> region `process`, checked against the files of today -> every piece of memory,
//! verified page by page -> an anonymous file: the description first, then the pieces.
//!
//! Invariants:
//! - The job is closed again before the program starts: it takes its own checkpoints.

use std::ffi::{OsString, c_void};
use std::os::fd::{AsFd, OwnedFd};
use std::ptr::NonNull;

use rustix::fs::{MemfdFlags, ftruncate, memfd_create};
use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};
use standfast::config::{Capture, Choice, Loaded, Restart, RestartFrom, Track};
use standfast::{Job, Version};

use crate::error::{Error, Result};
use crate::files;
use crate::plan::{Draft, MEMORY, Plan, REGION};

/// Pieces begin at multiples of this.
const ALIGN: u64 = 4096;

/// A program's memory, ready to be taken over.
pub struct Prepared {
    pub(crate) file: OwnedFd,
    /// Length of the description, with which the file begins.
    pub(crate) described_bytes: usize,
    /// The checkpoint it comes from.
    pub version: Version,
    /// Newer checkpoints that could not be used, with the reason.
    pub passed_over: Vec<(Version, String)>,
}

/// Reads a checkpoint: the one that `loaded` asks for, or the newest that is whole. `None` if there is
/// none; a failure where the program begins anew, or was another one then.
pub fn prepare(loaded: &Loaded, command: &[OsString]) -> Result<Option<Prepared>> {
    let mut loaded = loaded.clone();
    // All of it is needed at once, and nothing is watched.
    loaded.config.timing.restart = Choice::Set(Restart::Eager);
    loaded.config.pages.track = Track::Hash;
    loaded.config.pages.capture = Choice::Set(Capture::Stop);
    loaded.config.timing.signal = None;
    let (name, from) = (loaded.config.place.job.clone(), loaded.config.timing.from);
    let job = Job::open_loaded(loaded)?;
    job.declare_program(command)?;
    let checkpoints = job.restartable()?;
    if let RestartFrom::Version(version) = from {
        return read(&job, Version(version)).map(Some);
    }
    let mut passed_over = Vec::new();
    for manifest in checkpoints {
        let version = manifest.version;
        match read(&job, version) {
            Ok(prepared) => return Ok(Some(Prepared { passed_over, ..prepared })),
            // Only damage or loss that is proven makes a start go back.
            Err(error) if error.kind().is_proof() => {
                passed_over.push((version, error.to_string()));
            }
            Err(error) => return Err(error),
        }
    }
    match passed_over.first() {
        None => Ok(None),
        Some(_) => {
            let reasons = passed_over.into_iter().map(|(version, why)| (version.to_string(), why));
            Err(standfast::Error::none_restorable(name, reasons.collect()).into())
        }
    }
}

fn read(job: &Job, version: Version) -> Result<Prepared> {
    let image = job.image(version)?;
    let described = image.region(REGION).ok_or(Error::NotAProgram { version })?;
    // In words: the description must be aligned to be read.
    let bytes =
        usize::try_from(described.bytes).map_err(|_| Error::Description("it is too long"))?;
    let mut words = vec![0u64; bytes.div_ceil(8)];
    let buffer = &mut zerocopy::IntoBytes::as_mut_bytes(&mut words[..])[..bytes];
    job.read_region(version, REGION, buffer)?;
    let plan = Plan::parse(buffer)?;
    files::compare(&plan)?;
    let (draft, total) = placed(&plan);
    let file = memfd_create("standfast-resume", MemfdFlags::CLOEXEC).map_err(os("make a file"))?;
    ftruncate(&file, total).map_err(os("make room for the program's memory"))?;
    fill(job, version, &draft, &file, total)?;
    let described_bytes = draft.encode().len();
    Ok(Prepared { file, described_bytes, version, passed_over: Vec::new() })
}

/// Gives every piece its place in the file.
fn placed(plan: &Plan<'_>) -> (Draft, u64) {
    let mut draft = Draft::of(plan);
    let mut at = (draft.encode().len() as u64).next_multiple_of(ALIGN);
    for piece in &mut draft.pieces {
        piece.from = at;
        at += piece.bytes.next_multiple_of(ALIGN);
    }
    (draft, at)
}

fn fill(job: &Job, version: Version, draft: &Draft, file: &OwnedFd, total: u64) -> Result<()> {
    let window = Window::new(file, total as usize)?;
    let description = draft.encode();
    // SAFETY: the window is as long as the file, which begins with the description.
    unsafe { window.at(0).copy_from_nonoverlapping(description.as_ptr(), description.len()) };
    for piece in &draft.pieces {
        let (start, bytes) = (window.at(piece.from as usize), piece.bytes as usize);
        // SAFETY: the piece lies within the window, which stays until all are unprotected.
        unsafe { job.protect(&region(piece.start), start, bytes, 0) }?;
    }
    let restarted = job.restart_from(version);
    for piece in &draft.pieces {
        job.unprotect(&region(piece.start))?;
    }
    restarted?;
    Ok(())
}

/// Name of the region that begins at an address.
pub fn region(start: u64) -> String {
    format!("{MEMORY}{start:012x}")
}

/// The file, in this process's memory.
struct Window {
    start: NonNull<c_void>,
    bytes: usize,
}

impl Window {
    fn new(file: &OwnedFd, bytes: usize) -> Result<Self> {
        let prot = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: a new mapping, placed by the kernel.
        let start =
            unsafe { mmap(std::ptr::null_mut(), bytes, prot, MapFlags::SHARED, file.as_fd(), 0) };
        let start = start.map_err(os("map the program's memory"))?;
        Ok(Self { start: NonNull::new(start).expect("the kernel maps nothing at 0"), bytes })
    }

    fn at(&self, offset: usize) -> *mut u8 {
        assert!(offset < self.bytes, "pieces lie within the file");
        self.start.as_ptr().cast::<u8>().wrapping_add(offset)
    }
}

impl Drop for Window {
    fn drop(&mut self) {
        // SAFETY: nobody holds a pointer into it any more.
        let _ = unsafe { munmap(self.start.as_ptr(), self.bytes) };
    }
}

fn os(what: &'static str) -> impl FnOnce(rustix::io::Errno) -> Error {
    move |error| Error::os(what)(error.into())
}
