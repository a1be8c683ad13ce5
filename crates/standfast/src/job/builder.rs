//! Opening a job with typed settings.
//!
//! Data: values -> their words -> the same road as file, environment and call. What the builder
//! leaves out comes from there, and what it says wins.

use std::fmt::Display;

use standfast_comm::Comm;

use super::Job;
use crate::config::{
    AgentUse, ByteSize, Capture, Choice, Codec, GpuUse, Loaded, NodeLosses, Pacing, Rate, Restart,
    Retention, Share, Signal,
};
use crate::error::Result;

/// What a job is opened with: [`Job::builder`].
#[derive(Clone, Debug, Default)]
#[must_use = "a builder does nothing until it opens the job"]
pub struct JobBuilder {
    words: Vec<(String, String)>,
}

impl Job {
    /// Starts with what file and environment say.
    ///
    /// ```
    /// use standfast::Job;
    /// use standfast::config::{Choice, Codec};
    /// use std::time::Duration;
    ///
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let store = dir.path().to_str().unwrap();
    /// let job = Job::builder()
    ///     .store(store)
    ///     .job("heat")
    ///     .codec(Codec::small())
    ///     .interval(Duration::from_secs(600))
    ///     .keep(4)
    ///     .ring(Choice::Auto)
    ///     .open()?;
    /// # Ok::<(), standfast::Error>(())
    /// ```
    pub fn builder() -> JobBuilder {
        JobBuilder::default()
    }
}

impl JobBuilder {
    /// Sets a word, as a file would, such as `set("signal", "off")`; a later value of the same word
    /// replaces it.
    pub fn set(mut self, name: &str, value: impl Display) -> Self {
        self.words.retain(|(before, _)| before != name);
        self.words.push((name.into(), value.to_string()));
        self
    }

    /// Opens the job of this process alone.
    pub fn open(self) -> Result<Job> {
        Job::open_loaded(Loaded::load(&self.words)?)
    }

    /// Opens the job of several ranks. Every rank calls it with the same settings and its own end of
    /// one communicator, which is duplicated and may be used by the program as before.
    ///
    /// From then on these calls are collective, that is, made by all ranks in the same order:
    /// [`Job::checkpoint`], [`Job::restart`], [`Job::restart_from`], [`Job::point`], [`Job::finish`],
    /// [`Job::close`], and, unless the communicator may be used by any thread, [`Job::wait`],
    /// [`Job::checkpoints`] and [`Job::report`]. Where one rank fails, all fail.
    pub fn open_comm(self, comm: &dyn Comm) -> Result<Job> {
        Job::open_comm(Loaded::load(&self.words)?, comm)
    }
}

/// A method for each word, with its type.
macro_rules! words {
    ($($(#[$doc:meta])* $name:ident: $type:ty;)+) => {
        impl JobBuilder {
            $(
                $(#[$doc])*
                pub fn $name(self, value: impl Into<$type>) -> Self {
                    self.set(stringify!($name), value.into())
                }
            )+
        }
    };
}

words! {
    /// Directory or URL below which every job has its store; `{node}` stands for the node's name.
    store: String;
    /// Name of the job; a restart finds checkpoints by it.
    job: String;
    /// Who else may read the store, and whose files are read.
    share: Share;
    /// Checkpoints that stay in the store.
    keep: Retention;
    /// How memory is captured.
    capture: Choice<Capture>;
    /// Memory that Standfast may use on each node, for all ranks together.
    memory: Choice<ByteSize>;
    /// How pages are compressed.
    codec: Codec;
    /// What GPUs do.
    gpu: GpuUse;
    /// Whether one process per node writes for all ranks.
    agent: AgentUse;
    /// How often [`Job::point`] takes a checkpoint.
    interval: Pacing;
    /// Signal that requests one.
    signal: Signal;
    /// Whether a restart loads everything first.
    restart: Choice<Restart>;
    /// How many simultaneous losses of nodes checkpoints survive.
    ring: Choice<NodeLosses>;
    /// Storage that survives the machine.
    global: String;
    /// Checkpoints that stay there.
    global_keep: Retention;
    /// Upload limit of a node.
    global_rate: Rate;
    /// Where the key comes from that encrypts it: a file, or a command after `!`.
    global_key: String;
}

#[cfg(test)]
mod tests;
