//! Handing a checkpoint to the node's agent, and taking in what it made of it.
//!
//! ```text
//! draft -> image description: streams by id -> agent          call returns: level memory
//! agent -> outcome, places of all ranks' streams -> aliases   level local
//! ```
//! A rank numbers its new pages in *streams*; the agent writes the streams of all ranks into shared
//! segments and tells afterwards where each lies. Catalog, index over all ranks and positions go on
//! naming pages by stream; the *aliases* turn a stream into its segment when an image is described.
//! Where nodes have stores of their own each has its agent, which makes its node's part durable; the
//! ranks commit ([`super::agent_outcome`]).
//!
//! Invariants:
//! - All ranks have the same aliases: each is told those of all.
//! - Where the agent is lost nobody knows all aliases; then every rank forgets what it remembers,
//!   and reads it back from the store.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use standfast_agent::{HandOver, Link, Settled, StreamPlace};
use standfast_checkpoint::{Moved, relocate, unplaced};
use standfast_comm::Collective;
use standfast_format::{AttemptId, Image, SegmentId};

use super::draft::{Draft, elapsed_ns};
use super::place::Place;
use super::remembered::Remembered;
use super::sink::{Pending, Stage, Ticket, Unplaced};
use crate::error::{Error, Result};
use crate::stores::Stores;

/// The agent's part of what capturing remembers.
#[derive(Default)]
pub(crate) struct Agency {
    pub(super) link: Option<Arc<Link>>,
    /// Ranks that share the agent's pool and segments.
    pub(super) ranks: usize,
    /// Whether those are all ranks of the job: then the agent commits.
    is_whole: bool,
    /// Streams of earlier checkpoints: segment and first slot.
    aliases: HashMap<SegmentId, (SegmentId, u32)>,
}

impl Agency {
    /// The streams in these segments, and the segments.
    pub(super) fn with_streams(&self, segments: &[SegmentId]) -> Vec<SegmentId> {
        let gone: HashSet<&SegmentId> = segments.iter().collect();
        let streams = self.aliases.iter().filter(|(_, (segment, _))| gone.contains(segment));
        let streams = streams.map(|(stream, _)| *stream);
        segments.iter().copied().chain(streams).collect()
    }

    pub(super) fn forget(&mut self, segments: &[SegmentId]) {
        self.aliases.retain(|_, (segment, _)| !segments.contains(segment));
    }

    pub(super) fn learn(&mut self, places: &[StreamPlace]) {
        let alias = |place: &StreamPlace| (place.stream, (place.segment, place.first_slot));
        self.aliases.extend(places.iter().map(alias));
    }
}

impl Remembered {
    /// Takes the node's agent for what is captured from now on.
    pub(crate) fn use_agent(&mut self, link: Link, stores: &Stores) {
        self.writer.agency.link = Some(Arc::new(link));
        self.writer.agency.ranks = stores.own_ranks().len();
        self.writer.agency.is_whole = stores.are_one();
    }

    /// Whether the agent commits what is captured: ranks need not talk about it any more.
    pub(super) fn agent_commits(&self) -> bool {
        self.writer.has_agent() && self.writer.agency.is_whole
    }

    /// Tells the agent that this rank has no part in an attempt.
    pub(super) fn give_up(&self, attempt: AttemptId) {
        if let Some(link) = &self.writer.agency.link {
            link.abort(attempt);
        }
    }

    /// Notes that the agent is not used although it was asked for.
    pub(crate) fn note_no_agent(&mut self, why: &str) {
        self.notes.push(format!("written by the ranks themselves: {why}"));
    }

    /// Notes something for the next report.
    pub(crate) fn note(&mut self, text: &str) {
        self.notes.push(text.to_owned());
    }

    /// Why the agent is of no more use to this rank, if that is so.
    pub(crate) fn agent_lost(&self) -> Option<Error> {
        self.writer.agency.link.as_ref().and_then(|link| link.lost()).map(Error::from)
    }

    /// Goes on without the agent: what refers to streams is forgotten and read back from the store
    /// by the next checkpoint. Every rank does it.
    pub(crate) fn dismiss_agent(&mut self, team: &Collective, why: &str) {
        self.writer.agency = Agency::default();
        self.ledger.reset(self.env.config.mode);
        self.place = Place::new(&self.env.config, team);
        self.notes.push(format!("written by the ranks themselves from now on: {why}"));
    }

    /// Hands a draft of the agent's over; the others are the committer's.
    pub(super) fn hand_over(&self, draft: &mut Draft) {
        let part = match &draft.pending {
            Pending::Own(_) => return,
            Pending::Agent(_) => self.describe_part(draft),
        };
        let Pending::Agent(ticket) = &mut draft.pending else { return };
        match part {
            Ok((part, image)) => {
                let (streams, image) = (part.streams.clone(), Box::new(image));
                ticket.unplaced =
                    (!self.writer.agency.is_whole).then_some(Unplaced { image, streams });
                ticket.hand_over(part);
            }
            Err(error) => ticket.stage = Stage::Failed(error),
        }
    }

    fn describe_part(&self, draft: &mut Draft) -> Result<(HandOver, Image)> {
        let (mut moved, mut streams) = (HashMap::new(), Vec::new());
        let mut segments = Vec::with_capacity(draft.table.len());
        for (id, known) in &draft.table {
            let alias = self.writer.agency.aliases.get(id);
            let target = alias.and_then(|(segment, _)| self.ledger.references.get(segment));
            match (alias, target, known) {
                (Some((_, first_slot)), Some(segment), _) => {
                    moved.insert(*id, Moved { segment: *segment, first_slot: *first_slot });
                    segments.push(unplaced(*id));
                }
                (Some((segment, _)), None, _) => {
                    return Err(Error::Unsealed { segment: *segment });
                }
                (None, _, Some(known)) => segments.push(*known),
                (None, _, None) => {
                    streams.push(*id);
                    segments.push(unplaced(*id));
                }
            }
        }
        let mut image = Image {
            job: self.env.header.id,
            version: draft.order.version,
            rank: self.env.rank,
            page_bytes: self.env.config.page.0 as u32,
            hash: self.env.config.hash,
            segments,
            regions: std::mem::take(&mut draft.regions),
            references: draft.references.take(),
        };
        relocate(&mut image.segments, &mut image.regions, &moved)?;
        let part = HandOver {
            order: draft.order,
            image: image.encode().0,
            streams,
            stats: draft.stats,
            elapsed_ns: elapsed_ns(draft.started),
        };
        Ok((part, image))
    }
}

impl Ticket {
    /// Hands this rank's part over: from now on the agent finishes it, whatever becomes of the rank.
    fn hand_over(&mut self, part: HandOver) {
        self.link.hand_over(part);
        if let Stage::Captured(pending) = std::mem::replace(&mut self.stage, Stage::HandedOver) {
            // Nothing is left to be sealed here.
            let _ = pending.seal();
        }
    }

    /// Waits for what the agent made of it.
    pub(super) fn settled(&mut self) -> Result<Settled> {
        if let Stage::Failed(error) = &self.stage {
            return Err(error.clone());
        }
        Ok(self.link.settled(self.attempt)?)
    }
}
