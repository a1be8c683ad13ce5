//! A job begins, goes on and finishes: what its history says, and what this process adds to it.
//!
//! ```text
//! restart:    history finished? -> begins anew
//!             declared as then? -> goes on from the newest checkpoint of the last start
//! checkpoint: the first one of a job that nobody restarted begins a start
//! finish:     all ranks, none failed -> finished, in all stores and in global storage
//! ```
//! Invariants:
//! - What was written is known to every store before the call returns.
//! - All ranks know the same history: it is agreed when the job opens, and changed together.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::sync::{MutexGuard, PoisonError};

use standfast_checkpoint::history::write;
use standfast_comm::{Collective, Step};
use standfast_format::{DECLARED_BYTES_MAX, Declared, Digest, History, Kind, Start, Version, name};
use standfast_restart::Candidate;

use super::Job;
use super::core::Core;
use crate::config::RestartFrom;
use crate::error::{Cause, Error, Phase, Result};
use crate::{history, identity};

/// Longest text of arguments that is remembered.
const ARGUMENTS_BYTES_MAX: usize = 4096;

/// What is known of the job's starts, and what this process says of itself.
pub(crate) struct Starts {
    pub(crate) history: History,
    /// Why a history that is there could not be read.
    pub(crate) unread: Option<String>,
    declared: Vec<Declared>,
    /// `None`: they are declared, or nobody's business.
    arguments: Option<String>,
    /// What the setting asks for, until the program has begun.
    wish: RestartFrom,
    /// Versions of finished starts that global storage has.
    finished: BTreeSet<Version>,
    /// The program has restarted, or taken a checkpoint.
    begun: bool,
    /// The last call has failed.
    pub(crate) failed: bool,
}

/// What a restart is to come back to, the same on all ranks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Wish {
    /// `None`: the newest.
    pub(crate) version: Option<Version>,
    /// Not the program has named it.
    asked_for: bool,
    anew: bool,
    force: bool,
}

/// What one rank asks for.
#[derive(Clone, serde::Serialize, serde::Deserialize)]
struct Asked {
    version: Option<Version>,
    by_run: Option<RestartFrom>,
    by_setting: RestartFrom,
    declared: Digest,
}

impl Starts {
    pub(super) fn new((history, unread): (History, Option<String>), wish: RestartFrom) -> Self {
        Self {
            history,
            unread,
            declared: Vec::new(),
            arguments: Some(arguments(std::env::args_os().skip(1))),
            wish,
            finished: BTreeSet::new(),
            begun: false,
            failed: false,
        }
    }

    /// Takes in what another level knows.
    pub(crate) fn learn(&mut self, other: Option<History>) {
        if let Some(other) = other.filter(|other| other.revision > self.history.revision) {
            self.history = other;
            self.unread = None;
        }
    }

    /// The history with another start, this one.
    fn with(&self, after: u64, from: u64) -> History {
        let declared = self.declared.clone();
        let arguments = self.arguments.clone().unwrap_or_default();
        let begun_ns = identity::now_ns();
        let mut history = self.history.clone();
        history.begin(Start { after, from, begun_ns, finished_ns: 0, declared, arguments });
        history
    }

    /// The history with what this process says of the newest start.
    fn changed(&self) -> History {
        let mut history = self.history.clone();
        history.change(|last| {
            last.declared.clone_from(&self.declared);
            last.arguments = self.arguments.clone().unwrap_or_default();
        });
        history
    }

    /// Whether the newest start was begun as this one would be.
    fn is_same(&self, last: &Start) -> bool {
        last.finished_ns == 0
            && last.declared == self.declared
            && self.arguments.as_ref().is_none_or(|arguments| *arguments == last.arguments)
    }
}

impl Job {
    /// Declares a value on which the result depends, such as a size or the name of an input. A
    /// restart is refused where it was another one when the job began. Call it on all ranks alike,
    /// before [`Job::restart`] and the first checkpoint.
    pub fn declare(&self, name: &str, value: &str) -> Result<()> {
        let refuse = |why: &str| Err(Cause::Declare { name: name.into(), why: why.into() }.into());
        if let Err(error) = name::check_region(name) {
            return refuse(&error.to_string());
        }
        let mut starts = self.starts();
        if starts.begun {
            return refuse("the program has restarted or taken a checkpoint already");
        }
        starts.declared.retain(|one| one.name != name);
        let taken: usize = starts.declared.iter().map(|one| one.name.len() + one.value.len()).sum();
        if taken + name.len() + value.len() > DECLARED_BYTES_MAX {
            return refuse("names and values together are longer than 64 KiB");
        }
        starts.declared.push(Declared { name: name.into(), value: value.into() });
        Ok(())
    }

    /// Declares a whole program: what it is, its arguments and where it runs. For those that start
    /// programs which know nothing of us.
    #[doc(hidden)]
    pub fn declare_program(&self, command: &[OsString]) -> Result<()> {
        let program = command.first().cloned().unwrap_or_default();
        let directory = std::env::current_dir().unwrap_or_default();
        self.starts().arguments = None;
        self.declare("program", &program.to_string_lossy())?;
        self.declare("arguments", &arguments(command.iter().skip(1).cloned()))?;
        self.declare("working directory", &directory.to_string_lossy())
    }

    /// The checkpoints that a restart may come back to, newest first. A job that begins anew has
    /// none: an error that [`Error::is_anew`]. For those that read checkpoints by themselves: they tell which one the
    /// program goes on from ([`Job::goes_on_from`]).
    #[doc(hidden)]
    pub fn restartable(&self) -> Result<Vec<standfast_format::Manifest>> {
        let mut core = self.core();
        core.settle();
        self.can_talk()?;
        let wish = self.agree_on_wish(&core.team, None)?;
        let (candidates, _) = self.look_around(&mut core, true)?;
        let mut candidates = self.choose_among(&core, wish, candidates)?;
        if let Some(version) = wish.version {
            candidates.retain(|one| one.manifest().version == version);
        }
        if candidates.is_empty() && wish.version.is_none() {
            self.begin(&core)?;
        }
        Ok(candidates.into_iter().map(|one| one.manifest().clone()).collect())
    }

    /// The program goes on from this checkpoint.
    #[doc(hidden)]
    pub fn goes_on_from(&self, version: Version) -> Result<()> {
        let mut core = self.core();
        let inventory = core.inventory()?;
        let sequence = inventory.checkpoint(version)?.sequence;
        let last = inventory.checkpoints.iter().map(|one| one.sequence).max().unwrap_or(sequence);
        core.floor.go_back(sequence, last);
        self.go_on(&core, sequence)?;
        Ok(())
    }

    pub(crate) fn starts(&self) -> MutexGuard<'_, Starts> {
        // Its few fields are whole at any time.
        self.starts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// All ranks must go back to one checkpoint of one program. What `standfast run` was asked for
    /// wins over the setting, and only ranks of its own node may know it.
    pub(crate) fn agree_on_wish(&self, team: &Collective, version: Option<Version>) -> Phase<Wish> {
        let own = {
            let starts = self.starts();
            let asked = self.asked.run.as_ref().and_then(|run| run.restart());
            let declared: Vec<u8> = starts
                .declared
                .iter()
                .flat_map(|one| [one.name.as_bytes(), &[0], one.value.as_bytes(), &[0]].concat())
                .collect();
            let (by_run, by_setting) = match starts.begun {
                true => (None, RestartFrom::Auto),
                false => (asked, starts.wish),
            };
            Asked { version, by_run, by_setting, declared: Digest::of(&declared) }
        };
        let all = team.collect(Step("restart: version"), own)?;
        Ok(all.map(common_wish).decide()?.into_inner())
    }

    /// Which checkpoints a restart may come back to; an error where the job begins anew, or where
    /// what it was given differs.
    pub(crate) fn choose_among(
        &self,
        core: &Core,
        wish: Wish,
        mut candidates: Vec<Candidate>,
    ) -> Phase<Vec<Candidate>> {
        let sequence = |one: &Candidate| one.manifest().sequence;
        let mut starts = self.starts();
        let finished = |one: &&Candidate| {
            starts.history.start_of(sequence(one)).is_some_and(|start| start.finished_ns > 0)
        };
        let versions = candidates.iter().filter(finished).map(|one| one.manifest().version);
        let versions: BTreeSet<Version> = versions.collect();
        starts.finished = versions;
        let history = &starts.history;
        let begins = wish.anew || (history.is_finished() && wish.version.is_none() && !wish.force);
        let refused = match (wish.version, wish.force || begins) {
            (_, true) => None,
            (None, false) => {
                candidates.retain(|one| history.is_of_last(sequence(one)));
                candidates.first()
            }
            (Some(version), false) => {
                candidates.iter().find(|one| one.manifest().version == version)
            }
        }
        .and_then(|one| differing(&starts, one));
        // A program would take it for a fresh start.
        let is_there = |version| candidates.iter().any(|one| one.manifest().version == version);
        let absent = wish.version.filter(|version| wish.asked_for && !is_there(*version));
        let inventory = core.inventory()?;
        let absent = absent.map(|version| match inventory.checkpoint(version) {
            Err(error) if error.kind() != Kind::Missing => error.into(),
            _ => Error::config(format!("restart = {version}: there is no such checkpoint")),
        });
        let last = candidates.iter().find(|one| history.is_of_last(sequence(one)));
        let last = last.map(|one| one.manifest().version);
        drop(starts);
        if begins {
            self.begin(core)?;
            let anew =
                Cause::Anew { job: self.header.job.clone(), last: last.filter(|_| !wish.anew) };
            return core.team.agree(Step("restart: anew"), Err(anew.into()));
        }
        core.team.agree(Step("restart: declared"), refused.or(absent).map_or(Ok(candidates), Err))
    }

    /// The job begins from its beginning.
    pub(crate) fn begin(&self, core: &Core) -> Phase<()> {
        let after = newest(core)?;
        self.record(core, |starts| {
            let unchanged = |last: &Start| last.after == after && last.from == 0;
            let last = starts.history.last();
            let known = last.is_some_and(|last| unchanged(last) && starts.is_same(last));
            (!known).then(|| starts.with(after, 0))
        })
    }

    /// The program goes on from a checkpoint; returns what it should know about that.
    pub(crate) fn go_on(&self, core: &Core, sequence: u64) -> Phase<Option<String>> {
        let after = newest(core)?;
        let mut differ = None;
        self.record(core, |starts| {
            let history = &starts.history;
            let then = history.start_of(sequence).map(|start| start.arguments.clone());
            differ = then.zip(starts.arguments.as_ref()).filter(|(then, now)| then != *now).map(
                |(then, now)| format!("the arguments were \"{then}\" then and are \"{now}\" now"),
            );
            match history.last() {
                // Before there were histories: all that is there is of one start.
                None => Some(starts.with(0, 0)),
                Some(last) if history.is_of_last(sequence) && last.finished_ns == 0 => {
                    (!starts.is_same(last)).then(|| starts.changed())
                }
                Some(_) => Some(starts.with(after, sequence)),
            }
        })?;
        Ok(differ)
    }

    /// The first checkpoint of a program that has not restarted: it belongs to the newest start,
    /// unless that has finished or was given something else.
    pub(super) fn enter(&self, core: &Core) -> Phase<()> {
        if self.starts().begun {
            return Ok(());
        }
        let after = newest(core)?;
        self.record(core, |starts| match starts.history.last() {
            None => Some(starts.with(0, 0)),
            Some(last) => {
                let declared = &starts.declared;
                let same = declared.is_empty() || last.differences(declared).is_empty();
                (last.finished_ns > 0 || !same).then(|| starts.with(after, 0))
            }
        })
    }

    /// Refuses a version under which a finished start keeps a checkpoint: it would be lost.
    pub(super) fn spare_finished(&self, core: &Core, version: Option<Version>) -> Result<()> {
        let Some(version) = version else { return Ok(()) };
        let starts = self.starts();
        let is_kept = |sequence: u64| {
            let start = starts.history.start_of(sequence);
            start.is_some_and(|start| start.finished_ns > 0) && !starts.history.is_of_last(sequence)
        };
        let here = core.inventory()?.checkpoints.iter();
        let mut here = here.filter(|one| one.version == version);
        let kept = match here.next() {
            Some(here) => is_kept(here.sequence),
            None => starts.finished.contains(&version),
        };
        if kept { Err(Cause::Finished { version }.into()) } else { Ok(()) }
    }

    /// Marks the job as finished, unless a call of some rank has failed before.
    pub(super) fn mark_finished(&self, core: &Core) -> Phase<()> {
        let team = &core.team;
        let [well] = *team.all_hold(Step("finish"), [!self.starts().failed])?;
        if !well {
            if team.is_first() {
                eprintln!(
                    "standfast: job {:?} is not marked as finished, for its last call has failed: \
                     its next start goes on from the newest checkpoint",
                    self.header.job
                );
            }
            return Ok(());
        }
        let inventory = core.inventory()?;
        let starts = self.starts();
        let own = |sequence| starts.history.is_of_last(sequence);
        if !inventory.checkpoints.iter().any(|one| own(one.sequence)) {
            return Ok(());
        }
        drop(starts);
        self.record(core, |starts| {
            let begun = starts.history.last().is_some();
            let mut next = if begun { starts.history.clone() } else { starts.with(0, 0) };
            next.change(|last| last.finished_ns = identity::now_ns());
            Some(next)
        })?;
        if !team.is_first() {
            return Ok(());
        }
        let told = history::tell_global(&self.loaded.config, &self.header, &self.starts().history);
        if let Err(error) = told {
            eprintln!(
                "standfast: global storage was not told that job {:?} has finished: {error}",
                self.header.job
            );
        }
        Ok(())
    }

    /// Changes the history in all stores, as the first rank decides.
    fn record(&self, core: &Core, next: impl FnOnce(&Starts) -> Option<History>) -> Phase<()> {
        let mut starts = self.starts();
        let first = || Ok::<_, Error>(next(&starts));
        let next = core.team.tell(Step("history"), first)?.into_inner();
        if let Some(next) = next {
            // Also if it fails: some store may have this revision.
            starts.history.revision = next.revision;
            let written = self.stores.lead(|| Ok(write(&*self.store, &next)?));
            core.team.agree(Step("history: written"), written)?;
            starts.history = next;
        }
        starts.begun = true;
        if let Some(run) = &self.asked.run {
            run.started();
        }
        Ok(())
    }
}

/// The newest place in the order of commits that any level has seen.
fn newest(core: &Core) -> Phase<u64> {
    let newest = core.inventory()?.checkpoints.first().map_or(0, |manifest| manifest.sequence);
    Ok(newest.max(core.floor.sequence))
}

fn differing(starts: &Starts, one: &Candidate) -> Option<Error> {
    let manifest = one.manifest();
    let differences = starts.history.start_of(manifest.sequence)?.differences(&starts.declared);
    let version = manifest.version;
    (!differences.is_empty())
        .then(|| Cause::Differs { version, what: differences.join("; ") }.into())
}

fn common_wish(all: Vec<Asked>) -> Result<Wish> {
    let versions: Vec<Option<Version>> = all.iter().map(|one| one.version).collect();
    let version = crate::restart::common_version(&versions)?;
    if let Some(rank) = all.iter().position(|one| one.declared != all[0].declared) {
        let what = format!("rank {rank} declares other values than rank 0");
        return Err(Error::disagree(what));
    }
    let from = all.iter().find_map(|one| one.by_run).unwrap_or(all[0].by_setting);
    let given = match from {
        RestartFrom::Version(version) => Some(Version(version)),
        _ => None,
    };
    Ok(Wish {
        version: version.or(given),
        asked_for: version.is_none(),
        anew: from == RestartFrom::Never,
        force: from == RestartFrom::Force,
    })
}

/// Arguments as one text, cut if need be.
fn arguments(all: impl Iterator<Item = OsString>) -> String {
    let all: Vec<String> = all.map(|one| one.to_string_lossy().into_owned()).collect();
    let mut text = all.join(" ").replace(char::is_control, "?");
    if text.len() > ARGUMENTS_BYTES_MAX {
        let whole = Digest::of(text.as_bytes());
        let end = (0..=ARGUMENTS_BYTES_MAX).rfind(|at| text.is_char_boundary(*at)).unwrap_or(0);
        text.truncate(end);
        text.extend(whole.0[..8].iter().map(|byte| format!("{byte:02x}")));
    }
    text
}
