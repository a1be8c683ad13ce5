//! Handing a checkpoint to the node's agent, and taking in what it made of it.
//!
//! ```text
//! captured -> image description: streams by id -> agent       call returns: level memory
//! agent -> outcome, places of all ranks' streams -> aliases   level local
//! ```
//! A rank numbers its new pages in *streams*; the agent writes the streams of all ranks into shared
//! segments and tells afterwards where each lies. Catalog, index over all ranks and positions go on
//! naming pages by stream; the *aliases* turn a stream into its segment when an image is described.
//! Where nodes have stores of their own each has its agent, which makes its node's part durable; the
//! ranks commit ([`super::seal`]).
//!
//! Invariants:
//! - All ranks have the same aliases: each is told those of all.
//! - Where the agent is lost nobody knows all aliases; then every rank forgets what it remembers,
//!   and reads it back from the store.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use standfast_agent::{HandOver, Link};
use standfast_checkpoint::{Described, Order, StreamPlace};
use standfast_format::{AttemptId, SegmentId};

use crate::attempt::Unfinished;
use crate::error::{Error, Result};
use crate::remembered::Remembered;

/// The agent's part of what capturing remembers.
#[derive(Default)]
pub(crate) struct AgentState {
    pub(crate) link: Option<Arc<Link>>,
    /// Ranks that share the agent's pool and segments.
    pub(crate) ranks: usize,
    /// Whether those are all ranks of the job: then the agent commits.
    is_whole: bool,
    /// Streams of earlier checkpoints: segment and first slot.
    pub(crate) aliases: BTreeMap<SegmentId, (SegmentId, u32)>,
}

impl AgentState {
    /// The streams in these segments, and the segments.
    pub(crate) fn with_streams(&self, segments: &[SegmentId]) -> Vec<SegmentId> {
        let gone: BTreeSet<&SegmentId> = segments.iter().collect();
        let streams = self.aliases.iter().filter(|(_, (segment, _))| gone.contains(segment));
        let streams = streams.map(|(stream, _)| *stream);
        segments.iter().copied().chain(streams).collect()
    }

    /// Where a stream lies: its segment, and its first slot there.
    pub(crate) fn placed(&self, stream: SegmentId) -> (SegmentId, u32) {
        self.aliases.get(&stream).copied().unwrap_or((stream, 0))
    }

    pub(crate) fn forget(&mut self, segments: &[SegmentId]) {
        self.aliases.retain(|_, (segment, _)| !segments.contains(segment));
    }

    pub(crate) fn learn(&mut self, places: &[StreamPlace]) {
        let alias = |place: &StreamPlace| (place.stream, (place.segment, place.first_slot));
        self.aliases.extend(places.iter().map(alias));
    }
}

impl Remembered {
    /// Takes the node's agent for what is captured from now on.
    /// `ranks`: how many it writes for.
    pub fn use_agent(&mut self, link: Link, ranks: usize) {
        let agent = &mut self.writer.agent;
        (agent.link, agent.ranks) = (Some(Arc::new(link)), ranks);
        agent.is_whole = ranks == self.env.ranks;
    }

    /// Whether the node's agent writes what is captured; the same on all ranks.
    pub(crate) fn has_agent(&self) -> bool {
        self.writer.agent.link.is_some()
    }

    /// Whether the agent commits what is captured: ranks need not talk about it any more.
    pub(crate) fn agent_commits(&self) -> bool {
        self.has_agent() && self.writer.agent.is_whole
    }

    /// Tells the agent that this rank has no part in an attempt.
    pub(crate) fn abort(&self, attempt: AttemptId) {
        if let Some(link) = &self.writer.agent.link {
            link.abort(attempt);
        }
    }

    /// Notes that the agent is not used although it was asked for.
    pub fn note_no_agent(&mut self, why: &str) {
        self.notes.push(format!("written by the ranks themselves: {why}"));
    }

    /// Notes something for the next report.
    pub fn note(&mut self, text: &str) {
        self.notes.push(text.to_owned());
    }

    /// Why the agent is of no more use to this rank, if that is so.
    pub fn agent_lost(&self) -> Option<Error> {
        self.writer.agent.link.as_ref().and_then(|link| link.lost()).map(Error::from)
    }

    /// Goes on without the agent: what refers to streams is forgotten and read back from the store
    /// by the next checkpoint. Every rank does it.
    pub fn dismiss_agent(&mut self, why: &str) {
        self.writer.agent = AgentState::default();
        self.forget_all();
        self.notes.push(format!("written by the ranks themselves from now on: {why}"));
    }

    /// Who makes captured pages durable; an agent gets this rank's part with its description, and
    /// finishes it from then on, whatever becomes of the rank.
    pub(crate) fn hand_over(
        &self,
        order: Order,
        described: Described,
        pages: standfast_write::Pending,
    ) -> Result<Unfinished> {
        let Some(link) = &self.writer.agent.link else {
            return Ok(Unfinished::Here(described, pages));
        };
        link.hand_over(HandOver {
            order,
            image: described.image.encode().0,
            streams: described.streams.clone(),
            stats: described.stats,
            elapsed_ns: described.started.ns(),
        });
        // Nothing is left to be sealed here.
        pages.seal()?;
        let link = Arc::clone(link);
        Ok(match self.agent_commits() {
            true => Unfinished::Job(link),
            false => Unfinished::Node(described, link),
        })
    }
}
