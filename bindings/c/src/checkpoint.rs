//! Taking checkpoints and looking at them.

#![allow(non_camel_case_types)]

use std::ffi::{c_char, c_int};

use standfast::{Job, Kind, Level, Manifest, Progress, Report, Version};

use crate::argument::{self, Buffer, Entries, Entry, Out};
use crate::error::{Failure, Outcome};
use crate::handle::{on_job, sf_job};

/// For `sf_checkpoint`: the version after the largest so far.
pub const SF_NEXT: u64 = 0;

/// How far a checkpoint has come, and so what it survives. Levels are ordered.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum sf_level {
    /// Captured in memory: the program may go on. Survives nothing yet.
    SF_LEVEL_MEMORY = 1,
    /// Durable on the node: survives the death of the program and a reboot.
    SF_LEVEL_LOCAL = 2,
    /// Shards durable on other nodes: survives the loss of nodes.
    SF_LEVEL_RING = 3,
    /// Drained to global storage: survives the loss of the machine.
    SF_LEVEL_GLOBAL = 4,
}

const LEVELS: [(sf_level, Level); 4] = [
    (sf_level::SF_LEVEL_MEMORY, Level::Memory),
    (sf_level::SF_LEVEL_LOCAL, Level::Local),
    (sf_level::SF_LEVEL_RING, Level::Ring),
    (sf_level::SF_LEVEL_GLOBAL, Level::Global),
];

fn level_of(number: c_int) -> Outcome<Level> {
    let found = LEVELS.iter().find(|(c, _)| *c as c_int == number);
    found
        .map(|(_, level)| *level)
        .ok_or_else(|| Failure::invalid(format!("level {number} is no sf_level")))
}

fn number_of(level: Level) -> c_int {
    let found = LEVELS.iter().find(|(_, of)| *of == level);
    found.map(|(c, _)| *c as c_int).expect("every level is in the table")
}

/// What is known of a checkpoint, for `sf_list`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct sf_checkpoint_info {
    /// `sizeof(sf_checkpoint_info)`, set by the program in the first entry of an array.
    pub struct_bytes: usize,
    /// Its version.
    pub version: u64,
    /// Its place in the order of commits: the newest checkpoint has the largest.
    pub sequence: u64,
    /// When it was taken, nanoseconds since 1970-01-01 UTC.
    pub taken_ns: u64,
    /// Bytes of all protected regions.
    pub captured_bytes: u64,
    /// Bytes that this checkpoint added to the store.
    pub stored_bytes: u64,
    /// Pages of all protected regions.
    pub pages: u64,
    /// Pages that were all zero.
    pub zero_pages: u64,
    /// Pages equal to another page that the same rank stores in this checkpoint.
    pub duplicate_pages: u64,
    /// Pages that an earlier checkpoint had stored.
    pub old_pages: u64,
    /// Pages stored by this checkpoint.
    pub new_pages: u64,
    /// How long the program was stopped, in nanoseconds.
    pub blocked_ns: u64,
    /// How long it took until the data were durable, in nanoseconds.
    pub total_ns: u64,
    /// The highest level it has reached: one of `sf_level`.
    pub level: i32,
    /// Ranks of the job.
    pub ranks: u32,
    /// Pages that another rank stores in this checkpoint.
    pub remote_pages: u64,
    /// What the rank that stored most has added to the store, in bytes.
    pub rank_bytes_max: u64,
}

// SAFETY: only integers, all of which fill their places, and the size is the first.
unsafe impl Entry for sf_checkpoint_info {
    const BYTES_MIN: usize = 128;
}

impl sf_checkpoint_info {
    fn of(manifest: &Manifest) -> Self {
        let stats = &manifest.stats;
        Self {
            struct_bytes: size_of::<Self>(),
            version: manifest.version.0,
            sequence: manifest.sequence,
            taken_ns: manifest.taken_ns,
            captured_bytes: stats.captured_bytes,
            stored_bytes: stats.segment_bytes + stats.image_bytes,
            pages: stats.pages,
            zero_pages: stats.zero_pages,
            duplicate_pages: stats.duplicate_pages,
            old_pages: stats.old_pages,
            new_pages: stats.new_pages,
            blocked_ns: stats.blocked_ns,
            total_ns: stats.total_ns,
            level: number_of(manifest.level),
            ranks: manifest.ranks,
            remote_pages: stats.remote_pages,
            rank_bytes_max: stats.rank_bytes_max,
        }
    }
}

/// Takes a checkpoint of all protected regions, as they are at this call. It returns as soon as
/// the program may change them again; writing goes on in the background.
///
/// Waits first until the previous checkpoint is durable. If that one failed, its failure is
/// returned and no checkpoint is taken: calling again takes it.
///
/// @param job         An open job. Where the preload library is, NULL stands for the whole program
///                    (docs/TRANSPARENT.md).
/// @param version     Number of the checkpoint, or `SF_NEXT`. A checkpoint with the same number
///                    is replaced once the new one is durable.
/// @param out_version Where the number goes; may be NULL.
/// @return `SF_OK`: it has reached `SF_LEVEL_MEMORY`. `SF_FULL`, `SF_DENIED` or `SF_IO` if it
///         cannot be written; `SF_INVALID`. After a failure all earlier checkpoints are as they
///         were.
///
/// Thread-safe: checkpoints are taken one after the other. No other thread may write to protected
/// memory until it returns.
///
/// # Safety
/// `out_version` is NULL or writable.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sf_checkpoint(
    job: *mut sf_job,
    version: u64,
    out_version: *mut u64,
) -> c_int {
    on_job("sf_checkpoint", job, |open| {
        // SAFETY: the caller vouches for it.
        let out = unsafe { Out::optional("out_version", out_version) }?;
        let chosen = (version != SF_NEXT).then_some(Version(version));
        let taken = open.job.checkpoint(chosen)?;
        out.put(taken.0);
        Ok(())
    })
}

/// Takes a checkpoint if one is due or asked for. One is due by the setting `interval`: a fixed time,
/// or `auto`, which weighs what checkpoints cost against the expected time between failures.
/// One is asked for when the setting `signal` names a signal and it has come since the last
/// checkpoint, in a job of several ranks to any of them. To be called wherever the state is
/// consistent, such as once per step; cheap when none is wanted.
///
/// @param job         An open job.
/// @param out_version Where the number goes, or 0 if none was wanted; may be NULL.
/// @return As `sf_checkpoint`.
///
/// Thread-safe, as `sf_checkpoint`.
///
/// # Safety
/// `out_version` is NULL or writable.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sf_point(job: *mut sf_job, out_version: *mut u64) -> c_int {
    on_job("sf_point", job, |open| {
        // SAFETY: the caller vouches for it.
        let out = unsafe { Out::optional("out_version", out_version) }?;
        out.put(open.job.point()?.map_or(0, |version| version.0));
        Ok(())
    })
}

/// Asks whether a checkpoint is due by the setting `interval` or asked for by the `signal`, for
/// programs that have something to do before they take one. Each rank answers for itself.
///
/// @param job An open job.
/// @param due Where 1 goes if one is wanted, else 0.
/// @return `SF_OK`; `SF_INVALID`.
///
/// Thread-safe.
///
/// # Safety
/// `due` is NULL or writable.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sf_need_checkpoint(job: *mut sf_job, due: *mut c_int) -> c_int {
    on_job("sf_need_checkpoint", job, |open| {
        // SAFETY: the caller vouches for it.
        let out = unsafe { Out::required("due", due) }?;
        out.put(c_int::from(open.job.need_checkpoint()));
        Ok(())
    })
}

/// Asks how far a checkpoint has come, without waiting.
///
/// @param job     An open job.
/// @param version Number of the checkpoint.
/// @param level   Where the level reached so far goes, one of `sf_level`; may be NULL.
/// @return `SF_OK`; if the checkpoint failed, its failure; `SF_MISSING` if there is no such
///         checkpoint; `SF_INVALID`.
///
/// Thread-safe.
///
/// # Safety
/// `level` is NULL or writable.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sf_poll(job: *mut sf_job, version: u64, level: *mut c_int) -> c_int {
    on_job("sf_poll", job, |open| {
        // SAFETY: the caller vouches for it.
        let out = unsafe { Out::optional("level", level) }?;
        let version = argument::version(version)?;
        match open.job.poll(version)? {
            Progress::Reached(level) | Progress::Done(level) => out.put(number_of(level)),
            Progress::Failed(error) => return Err(error.into()),
        }
        Ok(())
    })
}

/// Waits until a checkpoint has reached a level.
///
/// @param job     An open job, or NULL as for `sf_checkpoint`.
/// @param version Number of the checkpoint.
/// @param level   One of `sf_level`, such as `SF_LEVEL_LOCAL`: durable on this node.
/// @return `SF_OK`; if the checkpoint failed, its failure; `SF_UNSUPPORTED` if the job's
///         configuration does not bring checkpoints to that level; `SF_MISSING` if there is no
///         such checkpoint; `SF_INVALID`.
///
/// Thread-safe.
#[must_use]
#[unsafe(no_mangle)]
pub extern "C" fn sf_wait(job: *mut sf_job, version: u64, level: c_int) -> c_int {
    on_job("sf_wait", job, |open| {
        let version = argument::version(version)?;
        Ok(open.job.wait(version, level_of(level)?)?)
    })
}

/// Lists the checkpoints that can be restarted from, newest first. Waits for the one under way.
///
/// @param job      An open job.
/// @param buf      Where the list goes; may be NULL if `capacity` is 0. `buf[0].struct_bytes` is
///                 `sizeof buf[0]`.
/// @param capacity For how many checkpoints `buf` has room. If there are more, the newest are
///                 listed.
/// @param count    Where the number of all checkpoints goes; may be larger than `capacity`.
/// @return `SF_OK`, or `SF_INVALID`.
///
/// Thread-safe.
///
/// # Safety
/// `buf` is NULL or has room for `capacity`; `count` is NULL or writable.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sf_list(
    job: *mut sf_job,
    buf: *mut sf_checkpoint_info,
    capacity: usize,
    count: *mut usize,
) -> c_int {
    on_job("sf_list", job, |open| {
        // SAFETY: the caller vouches for both.
        let (buffer, out) =
            unsafe { (Entries::new("buf", buf, capacity)?, Out::required("count", count)?) };
        let list = open.job.list();
        buffer.fill(list.iter().map(sf_checkpoint_info::of));
        out.put(list.len());
        Ok(())
    })
}

/// The closing block of a checkpoint as text: what was captured, dropped, compressed and stored,
/// how long the program was stopped, and what the checkpoint survives. Waits for the checkpoint
/// under way.
///
/// @param job      An open job.
/// @param version  Number of the checkpoint.
/// @param buf      Where the text goes, cut if need be and always ended with 0; may be NULL if
///                 `capacity` is 0.
/// @param capacity Room in `buf`, in bytes.
/// @param needed   Receives the required size, including the final 0; may be NULL.
/// @return `SF_OK`, also if the text was cut; `SF_MISSING` if there is no such checkpoint;
///         `SF_CORRUPT` if it cannot be read; `SF_INVALID`.
///
/// Thread-safe.
///
/// # Safety
/// `buf` is NULL or has room for `capacity`; `needed` is NULL or writable.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sf_report(
    job: *mut sf_job,
    version: u64,
    buf: *mut c_char,
    capacity: usize,
    needed: *mut usize,
) -> c_int {
    on_job("sf_report", job, |open| {
        // SAFETY: the caller vouches for both.
        let (buffer, out) =
            unsafe { (Buffer::new("buf", buf, capacity)?, Out::optional("needed", needed)?) };
        let report = report(&open.job, argument::version(version)?)?;
        out.put(buffer.fill_text(&report.to_string()));
        Ok(())
    })
}

/// The report of a checkpoint of this process, or what the store still knows of an older one.
fn report(job: &Job, version: Version) -> Outcome<Report> {
    match job.report(version) {
        Err(error) if error.kind() == Kind::Missing => {}
        known => return Ok(known?),
    }
    let image = job.image(version)?;
    let list = job.list();
    let manifest = list.iter().find(|manifest| manifest.version == version);
    let manifest = manifest.ok_or_else(|| {
        Failure::new(Kind::Missing, format!("checkpoint {version} was replaced or pruned"))
    })?;
    Ok(Report::of(manifest, image.page_bytes))
}

#[cfg(test)]
mod tests;
