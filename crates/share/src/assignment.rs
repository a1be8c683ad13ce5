//! What a collective step decides, and what it reports of itself.

use std::time::{Duration, Instant};

use standfast_format::SegmentId;

use super::tally::Tally;

/// Stands among the owners for a page that an earlier checkpoint has stored.
const OLD: u32 = u32::MAX;

/// What happens to a candidate page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// This rank stores it.
    Mine,
    /// Another rank stores it.
    Theirs {
        /// That rank.
        owner: u32,
    },
    /// An earlier checkpoint has stored it.
    Old {
        /// The segment.
        segment: SegmentId,
        /// The place in it.
        slot: u32,
    },
}

/// Where a rank has put a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Location {
    /// Number of the segment, into a list that comes with the place.
    pub segment: u32,
    /// The place in it.
    pub slot: u32,
}

/// A candidate that an earlier checkpoint has stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct OldPage {
    pub(super) candidate: u32,
    pub(super) place: Location,
}

/// How the work came out for this rank.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Shares {
    /// Pages this rank came with.
    pub candidates: u64,
    /// Pages it stores.
    pub stored: u64,
    /// Pages it stores although another rank could have, too.
    pub chosen: u64,
    /// Pages that others store for it.
    pub referred: u64,
    /// Pages that earlier checkpoints have stored.
    pub old: u64,
    /// Rounds of messages it took part in.
    pub rounds: u64,
    /// Bytes it sent to other ranks.
    pub sent_bytes: u64,
    /// Time of each phase, waiting for others included.
    pub phases: Vec<(&'static str, Duration)>,
}

impl Shares {
    /// Time of all phases.
    pub fn time(&self) -> Duration {
        self.phases.iter().map(|(_, time)| *time).sum()
    }
}

/// Takes the time of one phase after the other.
pub(super) struct StopWatch {
    since: Instant,
    phases: Vec<(&'static str, Duration)>,
}

impl StopWatch {
    pub(super) fn start() -> Self {
        Self { since: Instant::now(), phases: Vec::new() }
    }

    /// Ends a phase, and tells its time; the next begins.
    pub(super) fn lap(&mut self, phase: &'static str) -> Duration {
        let now = Instant::now();
        let time = now - self.since;
        self.phases.push((phase, time));
        self.since = now;
        time
    }
}

/// The fate of every candidate of a rank.
#[derive(Clone, Debug)]
pub struct Assignment {
    rank: u32,
    owners: Vec<u32>,
    /// In order of candidates.
    old: Vec<OldPage>,
    old_segments: Vec<SegmentId>,
    /// What `locate` will talk about; nothing where no page is shared and nobody has an index.
    pub(super) pairs: Option<Pairs>,
    /// How the work came out.
    pub shares: Shares,
}

/// Candidates that two ranks talk about, by the other rank. Both see them in the same order.
#[derive(Clone, Debug)]
pub(super) struct Pairs {
    /// Candidates of this rank whose places another rank wants.
    pub(super) wanted: Vec<Vec<u32>>,
    /// Candidates of this rank whose places another rank will tell.
    pub(super) expected: Vec<Vec<u32>>,
    /// Candidates that this rank stores, by their home; empty without an index.
    pub(super) reported: Vec<Vec<u32>>,
}

impl Pairs {
    /// Nothing between any two ranks.
    pub(super) fn new(ranks: usize) -> Self {
        let none = vec![Vec::new(); ranks];
        Self { wanted: none.clone(), expected: none, reported: Vec::new() }
    }

    /// Has the places told to the homes, of those candidates that are `stored`.
    pub(super) fn report(&mut self, mut by_home: Vec<Vec<u32>>, stored: impl Fn(u32) -> bool) {
        by_home.iter_mut().for_each(|part| part.retain(|candidate| stored(*candidate)));
        self.reported = by_home;
    }
}

impl Assignment {
    /// Every candidate is the rank's own, until something else is said of it.
    pub(super) fn all_mine(rank: u32, candidates: usize) -> Self {
        Self {
            rank,
            owners: vec![rank; candidates],
            old: Vec::new(),
            old_segments: Vec::new(),
            pairs: None,
            shares: Shares { candidates: candidates as u64, ..Shares::default() },
        }
    }

    /// How many candidates there are.
    pub fn len(&self) -> usize {
        self.owners.len()
    }

    /// There is none.
    pub fn is_empty(&self) -> bool {
        self.owners.is_empty()
    }

    /// The fate of a candidate.
    ///
    /// # Panics
    /// If there is no such candidate.
    pub fn fate(&self, candidate: u32) -> Fate {
        match self.owners[candidate as usize] {
            OLD => self.old_fate(candidate),
            owner if owner == self.rank => Fate::Mine,
            owner => Fate::Theirs { owner },
        }
    }

    /// Whether this rank stores a candidate.
    pub fn is_mine(&self, candidate: u32) -> bool {
        self.owners[candidate as usize] == self.rank
    }

    /// The candidates that this rank stores.
    pub fn mine(&self) -> impl Iterator<Item = u32> {
        let owners = self.owners.iter().enumerate();
        owners.filter(|(_, owner)| **owner == self.rank).map(|(candidate, _)| candidate as u32)
    }

    /// The rank whose assignment this is.
    pub(super) fn rank(&self) -> u32 {
        self.rank
    }

    pub(super) fn give_to(&mut self, candidate: u32, owner: u32) {
        self.owners[candidate as usize] = owner;
    }

    pub(super) fn mark_old(&mut self, page: OldPage) {
        self.owners[page.candidate as usize] = OLD;
        self.old.push(page);
    }

    /// Adds segments for old pages; returns the number of the first.
    pub(super) fn add_old_segments(&mut self, ids: &[SegmentId]) -> u32 {
        let first = self.old_segments.len() as u32;
        self.old_segments.extend_from_slice(ids);
        first
    }

    /// Counts, when everything has been said.
    pub(super) fn finish(&mut self, watch: StopWatch, tally: &Tally<'_>) {
        self.old.sort_unstable_by_key(|page| page.candidate);
        let stored = self.mine().count() as u64;
        let old = self.old.len() as u64;
        self.shares.stored = stored;
        self.shares.old = old;
        self.shares.referred = self.len() as u64 - stored - old;
        self.shares.rounds = tally.rounds();
        self.shares.sent_bytes = tally.bytes();
        self.shares.phases = watch.phases;
    }

    fn old_fate(&self, candidate: u32) -> Fate {
        let at = self.old.binary_search_by_key(&candidate, |page| page.candidate);
        let place = self.old[at.expect("every old page has a place")].place;
        Fate::Old { segment: self.old_segments[place.segment as usize], slot: place.slot }
    }
}

/// Where the pages lie that other ranks store for this one.
#[derive(Clone, Debug)]
pub struct Places {
    segments: Vec<SegmentId>,
    /// By candidate; those that nobody else stores have [`NOWHERE`].
    places: Vec<Location>,
}

const NOWHERE: Location = Location { segment: u32::MAX, slot: u32::MAX };

impl Places {
    pub(super) fn new(candidates: usize) -> Self {
        Self { segments: Vec::new(), places: vec![NOWHERE; candidates] }
    }

    /// Segments of other ranks; a [`Location`] names one by its number here.
    pub fn segments(&self) -> &[SegmentId] {
        &self.segments
    }

    /// Where a candidate lies that another rank stores; `None` for all others.
    ///
    /// # Panics
    /// If there is no such candidate.
    pub fn get(&self, candidate: u32) -> Option<Location> {
        Some(self.places[candidate as usize]).filter(|place| *place != NOWHERE)
    }

    /// As [`get`](Self::get), with the segment's id.
    pub fn page(&self, candidate: u32) -> Option<(SegmentId, u32)> {
        self.get(candidate).map(|place| (self.segments[place.segment as usize], place.slot))
    }

    pub(super) fn set(&mut self, candidate: u32, place: Location) {
        self.places[candidate as usize] = place;
    }

    /// Adds segments of another rank; returns the number of the first.
    pub(super) fn add_segments(&mut self, ids: &[SegmentId]) -> u32 {
        let first = self.segments.len() as u32;
        self.segments.extend_from_slice(ids);
        first
    }
}
