//! Jobs and their checkpoints, from the manifests alone. What is damaged is not hidden.

use standfast::config::{Loaded, Origin};
use standfast::{Level, Manifest, mark, ring};
use standfast_format::{History, name};
use standfast_restart::Damaged;

use crate::error::{Error, Result};
use crate::place::{self, OpenJob, Place};

/// A job that is there, readable or not.
#[derive(Debug)]
pub struct Listed {
    /// Its name.
    pub job: String,
    /// What it has, or why nobody can tell.
    pub listing: Result<Listing>,
}

/// A job's checkpoints.
#[derive(Debug)]
pub struct Listing {
    /// Where its store lies.
    pub place: String,
    /// Its last start has come to its end.
    pub is_finished: bool,
    /// Newest first.
    pub checkpoints: Vec<Checkpoint>,
    /// Manifests that cannot be read.
    pub damaged: Vec<Damaged>,
}

/// One checkpoint.
#[derive(Debug)]
pub struct Checkpoint {
    /// What was committed.
    pub manifest: Manifest,
    /// How far it has come.
    pub level: Level,
    /// A lazy restart found it damaged.
    pub is_marked: bool,
    /// The start that it belongs to has finished.
    pub is_finished: bool,
    /// A run went back to an older one and goes on from there.
    pub is_abandoned: bool,
}

impl Checkpoint {
    /// What it added to the store.
    pub fn stored_bytes(&self) -> u64 {
        self.manifest.stats.segment_bytes.saturating_add(self.manifest.stats.image_bytes)
    }

    /// Captured by stored bytes.
    pub fn ratio(&self) -> f64 {
        let (captured, stored) = (self.manifest.stats.captured_bytes, self.stored_bytes());
        if stored == 0 { 1.0 } else { captured as f64 / stored as f64 }
    }
}

impl Listing {
    /// What all checkpoints added to the store.
    pub fn stored_bytes(&self) -> u64 {
        self.checkpoints.iter().map(Checkpoint::stored_bytes).fold(0, u64::saturating_add)
    }
}

/// Lists the job that is named, or all of the place.
pub fn list(place: &Place) -> Result<Vec<Listed>> {
    let loaded = place::load(place)?;
    if !place.stores.is_empty() {
        let job = place::open(place)?;
        return Ok(vec![Listed { listing: Ok(of_job(&job)?), job: job.name }]);
    }
    if *loaded.origin("job") != Origin::Default {
        let job = place::open_job(loaded.config)?;
        return Ok(vec![Listed { listing: Ok(of_job(&job)?), job: job.name }]);
    }
    all(&loaded)
}

fn all(loaded: &Loaded) -> Result<Vec<Listed>> {
    let jobs = place::jobs(&loaded.config)?;
    if jobs.is_empty() {
        return Err(place::no_jobs(&loaded.config));
    }
    let one = |job: String| {
        let config = loaded.config.of_job(&job);
        Listed { listing: place::open_job(config).and_then(|job| of_job(&job)), job }
    };
    Ok(jobs.into_iter().map(one).collect())
}

/// Lists one job.
pub fn of_job(job: &OpenJob) -> Result<Listing> {
    let inventory = job.inventory()?;
    let marked = mark::attempts(&job.store.list(name::MARKS).map_err(Error::from)?);
    let history = history(job);
    let checkpoint = |manifest: &Manifest| Checkpoint {
        is_finished: history.start_of(manifest.sequence).is_some_and(|start| start.finished_ns > 0),
        level: ring::level(&*job.store, manifest),
        is_marked: marked.contains(&manifest.attempt),
        is_abandoned: inventory.is_abandoned(manifest),
        manifest: manifest.clone(),
    };
    Ok(Listing {
        place: job.place.clone(),
        is_finished: history.is_finished(),
        checkpoints: inventory.checkpoints.iter().map(checkpoint).collect(),
        damaged: inventory.damaged,
    })
}

/// What the store says of the job's starts; as if there were none where it cannot be read.
pub(crate) fn history(job: &OpenJob) -> History {
    let read = standfast_restart::history::read(&*job.store, &job.header);
    read.ok().flatten().unwrap_or_else(|| History::new(job.header.id))
}
