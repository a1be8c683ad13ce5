//! The history of a job: every time it began from its beginning, with what, and whether it finished.
//!
//! Manifests alone cannot tell a run that was cut off from one that has ended, nor the checkpoints of
//! one input from those of another. A *start* draws that line: checkpoints that were committed after
//! it belong to it. All stores of a job have a history; the one with the largest revision counts.
//!
//! Invariants:
//! - Starts are in the order of the checkpoints before them; at most [`STARTS_MAX`] are kept.
//! - A start goes on from a checkpoint that was there before it, or from none.

use crate::error::{Error, Result};
use crate::frame::{self, Sort};
use crate::id::JobId;

const SORT: Sort = Sort { mark: *b"SFHISTO\0", what: "history" };

/// Starts that are remembered.
pub const STARTS_MAX: usize = 32;
/// Longest text that a program may declare at one start, names and values together.
pub const DECLARED_BYTES_MAX: usize = 64 << 10;
/// Largest history that a reader accepts.
pub const HISTORY_BYTES_MAX: u64 = 4 << 20;

/// A value on which a program's result depends, as it has told.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Declared {
    /// Its name.
    pub name: String,
    /// Its value.
    pub value: String,
}

/// A job that begins: from its beginning, or from a checkpoint of an earlier start.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Start {
    /// Its own checkpoints have larger sequence numbers.
    pub after: u64,
    /// Sequence number of the checkpoint that it goes on from; 0: none.
    pub from: u64,
    /// When it began, nanoseconds since 1970.
    pub begun_ns: u64,
    /// When it finished; 0: it has not.
    pub finished_ns: u64,
    /// What a restart must have in common with it.
    pub declared: Vec<Declared>,
    /// The program's arguments, for people.
    pub arguments: String,
}

impl Start {
    /// What is different now, one text each; nothing where nothing was declared then.
    pub fn differences(&self, now: &[Declared]) -> Vec<String> {
        if self.declared.is_empty() {
            return Vec::new();
        }
        let value = |all: &[Declared], name: &str| {
            all.iter().find(|one| one.name == name).map(|one| one.value.clone())
        };
        let shown = |value: Option<String>| value.unwrap_or_else(|| "not declared".into());
        let added = now.iter().filter(|one| value(&self.declared, &one.name).is_none());
        let names = self.declared.iter().chain(added).map(|one| one.name.as_str());
        names
            .filter_map(|name| {
                let (then, now) = (value(&self.declared, name), value(now, name));
                let differ = then != now;
                differ.then(|| format!("{name}: {} then, {} now", shown(then), shown(now)))
            })
            .collect()
    }
}

/// All starts that are remembered.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct History {
    /// The job's id, as in the store header.
    pub job: JobId,
    /// Counts changes.
    pub revision: u64,
    /// Oldest first.
    pub starts: Vec<Start>,
}

impl History {
    /// Of a job that has never told anything: all of its checkpoints are of one start.
    pub fn new(job: JobId) -> Self {
        Self { job, revision: 0, starts: Vec::new() }
    }

    /// The newest start.
    pub fn last(&self) -> Option<&Start> {
        self.starts.last()
    }

    /// Whether the job has come to its end, and has not begun again.
    pub fn is_finished(&self) -> bool {
        self.last().is_some_and(|start| start.finished_ns > 0)
    }

    /// The start that a checkpoint belongs to; `None` for one from before all of them.
    pub fn start_of(&self, sequence: u64) -> Option<&Start> {
        self.index_of(sequence).map(|at| &self.starts[at])
    }

    /// Whether the newest start has made a checkpoint, or goes on from it.
    pub fn is_of_last(&self, sequence: u64) -> bool {
        let Some(mut at) = self.starts.len().checked_sub(1) else { return true };
        loop {
            let start = &self.starts[at];
            if sequence > start.after {
                return true;
            }
            if sequence > start.from {
                return false;
            }
            match self.index_of(start.from) {
                Some(earlier) => at = earlier,
                None => return true,
            }
        }
    }

    fn index_of(&self, sequence: u64) -> Option<usize> {
        self.starts.iter().rposition(|start| start.after < sequence)
    }

    /// Adds a start. One that has neither finished nor made a checkpoint is replaced.
    pub fn begin(&mut self, start: Start) {
        let unused = |last: &Start| last.finished_ns == 0 && last.after == start.after;
        if self.last().is_some_and(unused) {
            self.starts.pop();
        }
        self.starts.push(start);
        let old = self.starts.len().saturating_sub(STARTS_MAX);
        self.starts.drain(..old);
        self.revision = self.revision.saturating_add(1);
    }

    /// Changes the newest start; there is one.
    pub fn change(&mut self, change: impl FnOnce(&mut Start)) {
        change(self.starts.last_mut().expect("a job that changes has begun"));
        self.revision = self.revision.saturating_add(1);
    }

    /// The bytes of the file.
    pub fn encode(&self) -> Vec<u8> {
        frame::seal(SORT, &frame::encode(self))
    }

    /// Reads and checks the bytes of the file.
    pub fn decode(bytes: &[u8]) -> Result<Self> {
        let history: Self = frame::decode(SORT, frame::open(SORT, bytes)?.body)?;
        let refuse = |why| Err(Error::Malformed { what: SORT.what, why });
        if history.starts.len() > STARTS_MAX {
            return refuse("it lists too many starts");
        }
        let ordered = history.starts.windows(2).all(|pair| pair[0].after <= pair[1].after);
        if !ordered || history.starts.iter().any(|start| start.from > start.after) {
            return refuse("its starts are not in order");
        }
        Ok(history)
    }
}

#[cfg(test)]
mod tests;
