//! Draining until nothing is due, or for as long as a job lives.
//!
//! Data: [`Policy`] over both inventories -> the next checkpoint -> [`Drain::carry`], again and again.
//! What fails is told, and tried again with growing pauses where that can help.

use std::collections::HashSet;
use std::time::{Duration, Instant};

use standfast_format::{AttemptId, Kind, Manifest, Retry, Version};

use crate::carry::{Carried, Drain, lack};
use crate::error::{Error, Result};
use crate::flow::Flow;
use crate::policy::{self, Policy};

/// How often a drain that follows a job looks for new checkpoints.
const POLL: Duration = Duration::from_millis(250);
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

impl Drain<'_> {
    /// Carries what is due. Ends with `Ok` when nothing is, unless it follows.
    pub fn run(
        &self,
        until: &Until,
        flow: &Flow<'_>,
        tell: &mut dyn FnMut(Event<'_>),
    ) -> Result<()> {
        let mut passed = HashSet::new();
        let mut failed = 0;
        loop {
            let error = match self.next(until.policy, flow, &mut passed, tell) {
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
            let is_last = !until.follow && failed >= until.tries;
            if matches!(error, Error::Deadline | Error::Stopped)
                || error.kind().retry() == Retry::Never
                || is_last
            {
                return Err(error);
            }
            let pause = PAUSE_MIN.saturating_mul(1 << failed.min(10)).min(PAUSE_MAX);
            tell(Event::Waits(&error, pause));
            flow.wait_until(Instant::now() + pause)?;
            failed += 1;
        }
    }

    /// Carries one checkpoint; false if none is due.
    fn next(
        &self,
        policy: Policy,
        flow: &Flow<'_>,
        passed: &mut HashSet<AttemptId>,
        tell: &mut dyn FnMut(Event<'_>),
    ) -> Result<bool> {
        let (offered, arrived) = (self.offered()?, self.arrived()?);
        let mut due = policy::due(policy, &offered, &arrived);
        due.retain(|manifest| !passed.contains(&manifest.attempt));
        let lacking: Vec<u64> = due.iter().map(|manifest| lack(manifest, &arrived)).collect();
        let left = || flow.left().unwrap_or(Duration::MAX);
        let Some(at) = policy::in_time(&lacking, flow.pace(), left()) else { return Ok(false) };
        tell(Event::Begins(due[at], lacking[at]));
        let began = Instant::now();
        let others = due.len() > 1;
        let go_on =
            |rest: u64| !others || policy::in_time(&[rest, 0], flow.pace(), left()) == Some(0);
        match self.carry_while(due[at], flow, &go_on) {
            Ok(carried) => {
                let elapsed = began.elapsed();
                self.note(&carried, elapsed);
                tell(Event::Arrived(carried, elapsed));
            }
            Err(error) if is_of_this_one(&error) => {
                passed.insert(due[at].attempt);
                tell(Event::PassedOver(due[at].version, &error));
            }
            Err(error) => return Err(error),
        }
        Ok(true)
    }
}

/// Whether another checkpoint may fare better.
fn is_of_this_one(error: &Error) -> bool {
    matches!(error, Error::Gone { .. } | Error::TooSlow { .. }) || error.kind() == Kind::Corrupt
}
