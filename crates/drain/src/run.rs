//! Draining until nothing is due, or for as long as a job lives.
//!
//! Data: [`Policy`] over both inventories -> the next checkpoint -> [`Drain::carry`], again and again.
//! What fails is told, and tried again with growing pauses where that can help.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use standfast_format::{AttemptId, Kind, Manifest, Version};

use crate::carry::{Carried, Drain, lack};
use crate::error::{Error, Result};
use crate::flow::Flow;
use crate::policy::{self, Policy};

/// How often a drain that follows a job looks for new checkpoints.
const POLL: Duration = Duration::from_millis(250);
/// How often it looks whether other nodes have brought their part.
const LOOK_AGAIN: Duration = Duration::from_secs(2);
const PAUSE_MIN: Duration = Duration::from_millis(500);
const PAUSE_MAX: Duration = Duration::from_secs(30);

/// How long to go on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Until {
    /// Which checkpoints.
    pub policy: Policy,
    /// Wait for new checkpoints, and try again for ever, instead of ending when nothing is due.
    pub follow: bool,
    /// How often to try again, if not for ever, what may work next time.
    pub tries: u32,
}

impl Until {
    /// Tries something until it works. What fails and may pass is told and waited for, as long as
    /// this allows.
    pub fn persist<T>(
        &self,
        flow: &Flow<'_>,
        tell: &mut dyn FnMut(Event<'_>),
        mut attempt: impl FnMut() -> Result<T>,
    ) -> Result<T> {
        let mut failed = 0;
        loop {
            match attempt() {
                Ok(value) => return Ok(value),
                Err(error) => self.wait_after(error, &mut failed, flow, tell)?,
            }
        }
    }

    /// Waits after so many failures in a row, or gives the error back.
    fn wait_after(
        &self,
        error: Error,
        failed: &mut u32,
        flow: &Flow<'_>,
        tell: &mut dyn FnMut(Event<'_>),
    ) -> Result<()> {
        let is_last = !self.follow && *failed >= self.tries;
        let is_end = matches!(error, Error::Deadline | Error::Stopped);
        if is_end || is_last || !error.may_pass() {
            return Err(error);
        }
        let pause = PAUSE_MIN.saturating_mul(1 << (*failed).min(10)).min(PAUSE_MAX);
        tell(Event::Waits(&error, pause));
        flow.wait_until(Instant::now() + pause)?;
        *failed += 1;
        Ok(())
    }
}

/// What a drain tells while it runs.
#[derive(Debug)]
pub enum Event<'a> {
    /// A checkpoint is on its way, with so many bytes that the target lacks.
    Begins(&'a Manifest, u64),
    /// A checkpoint has arrived, after that time.
    Arrived(Carried, Duration),
    /// A checkpoint cannot be carried; another one is taken.
    PassedOver(Version, &'a Error),
    /// Nothing goes at present; it is tried again after that time.
    Waits(&'a Error, Duration),
}

/// What a run remembers of checkpoints that it does not take for now.
#[derive(Default)]
struct Aside {
    /// They cannot be carried at all.
    passed: BTreeSet<AttemptId>,
    /// This node's part is there, and those of others are not: by sequence, and when to look again.
    parted: BTreeMap<AttemptId, (u64, Instant)>,
    /// Revision of the history that the target has.
    history: u64,
}

impl Aside {
    /// Whether a checkpoint may be taken now.
    fn allows(&self, policy: Policy, manifest: &Manifest) -> bool {
        let now = Instant::now();
        if self.passed.contains(&manifest.attempt) {
            return false;
        }
        if let Some((_, again)) = self.parted.get(&manifest.attempt) {
            return now >= *again;
        }
        // An older one is stale as soon as the others have brought their part.
        let newest = self.parted.values().map(|(sequence, _)| *sequence).max();
        policy != Policy::Newest || newest.is_none_or(|newest| manifest.sequence > newest)
    }
}

impl Drain<'_> {
    /// Carries what is due. Ends with `Ok` when nothing is, unless it follows.
    pub fn run(
        &self,
        until: &Until,
        flow: &Flow<'_>,
        tell: &mut dyn FnMut(Event<'_>),
    ) -> Result<()> {
        let mut aside = Aside::default();
        let mut failed = 0;
        loop {
            let error = match self.next(until, flow, &mut aside, tell) {
                Ok(true) => {
                    failed = 0;
                    continue;
                }
                Ok(false) if until.follow => {
                    flow.wait_until(Instant::now() + POLL)?;
                    continue;
                }
                Ok(false) => return Ok(()),
                Err(error) => error,
            };
            until.wait_after(error, &mut failed, flow, tell)?;
        }
    }

    /// Carries one checkpoint; false if none is due.
    fn next(
        &self,
        until: &Until,
        flow: &Flow<'_>,
        aside: &mut Aside,
        tell: &mut dyn FnMut(Event<'_>),
    ) -> Result<bool> {
        aside.history = self.carry_history(aside.history)?;
        let (offered, arrived) = (self.offered()?, self.arrived()?);
        let mut due = policy::due(until.policy, &offered, &arrived);
        if let every @ 1.. = self.retention().every {
            let forever = policy::due(Policy::Every(every), &offered, &arrived);
            let more =
                |manifest: &&Manifest| !due.iter().any(|own| own.attempt == manifest.attempt);
            due.extend(forever.into_iter().filter(more).collect::<Vec<_>>());
        }
        due.retain(|manifest| aside.allows(until.policy, manifest));
        due.retain(|manifest| self.retention().keeps(manifest, &arrived));
        if due.len() > 1 {
            let begun = self.begun_by_others(&offered)?;
            due.sort_by_key(|manifest| !begun.contains(&manifest.version));
        }
        let lacking: Vec<u64> = due.iter().map(|manifest| lack(manifest, &arrived)).collect();
        let left = || flow.left().unwrap_or(Duration::MAX);
        let Some(at) = policy::in_time(&lacking, flow.pace(), left()) else { return Ok(false) };
        let known = aside.parted.contains_key(&due[at].attempt);
        if !known {
            tell(Event::Begins(due[at], lacking[at]));
        }
        let began = Instant::now();
        let others = due.len() > 1;
        let go_on =
            |rest: u64| !others || policy::in_time(&[rest, 0], flow.pace(), left()) == Some(0);
        match self.carry_while(due[at], flow, &go_on) {
            Ok(carried) => {
                let elapsed = began.elapsed();
                self.note(&carried, elapsed);
                tell(Event::Arrived(carried, elapsed));
                self.retain()?;
            }
            Err(error @ Error::Others { .. }) => {
                let again = if until.follow { Instant::now() + LOOK_AGAIN } else { far_away() };
                aside.parted.insert(due[at].attempt, (due[at].sequence, again));
                if !known {
                    tell(Event::PassedOver(due[at].version, &error));
                }
            }
            Err(error) if is_of_this_one(&error) => {
                aside.passed.insert(due[at].attempt);
                tell(Event::PassedOver(due[at].version, &error));
            }
            Err(error) => return Err(error),
        }
        Ok(true)
    }
}

/// Longer than any drain runs.
fn far_away() -> Instant {
    Instant::now() + Duration::from_secs(1 << 30)
}

/// Whether another checkpoint may fare better.
fn is_of_this_one(error: &Error) -> bool {
    matches!(error, Error::Gone(_) | Error::TooSlow(_)) || error.kind() == Kind::Corrupt
}
