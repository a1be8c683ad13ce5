//! Sealing: a captured part becomes durable, by this process or by the node's agent.
//!
//! ```text
//! here:         segments are sealed                     -> the ranks publish
//! agents:       each makes its node's part durable, with a pledge -> the ranks publish
//! one agent:    commits for all ranks                   -> published
//! ```
//! A pledge outlives the ranks: if they die before the manifest is written, the next opening
//! commits what all nodes have pledged.

use standfast_agent::{Failure, Link, Settled};
use standfast_checkpoint::{Described, Inventory, Order, Part, failpoint, refresh};
use standfast_format::{Level, SegmentId, SegmentRef};

use crate::attempt::{Attempt, Captured, Closed, Committed, Published, Sealed, Unfinished};
use crate::error::{Error, Result};
use crate::remembered::Env;
use crate::stored::guarded;

impl Attempt<Captured> {
    /// Makes this rank's part durable. Talks to no rank; an agent of all ranks may have published
    /// the checkpoint already.
    pub fn seal(self, inventory: &mut Inventory) -> Closed {
        let (has_agent, agent_commits) = (self.memory.has_agent(), self.memory.agent_commits());
        let (mut attempt, Captured { part }) = self.advance(());
        let order = attempt.order;
        let sealed = match part {
            Err(error) if agent_commits => return attempt.close(Err(error)),
            Err(error) => Sealed { part: Err(error), own: Vec::new(), pledged: has_agent },
            Ok(Unfinished::Job(link)) => {
                let settled = link.settled(order.attempt).map_err(Error::from);
                let env = &attempt.memory.env;
                let outcome = take_settled(env, order, settled, &mut attempt.notes, inventory);
                return attempt.close(outcome);
            }
            Ok(Unfinished::Node(described, link)) => {
                let part = pledged_part(&link, order, described);
                let own = part.iter().flat_map(|(_, part)| part.ids()).collect();
                Sealed { part, own, pledged: true }
            }
            Ok(Unfinished::Here(described, pages)) => {
                let own = pages.ids().collect();
                let part = guarded("sealing", || seal_segments(pages, described));
                Sealed { part, own, pledged: false }
            }
        };
        Closed::Sealed(Box::new(attempt.advance(sealed).0))
    }
}

impl Attempt<()> {
    fn close(self, outcome: Result<Committed>) -> Closed {
        Closed::Published(Box::new(self.advance(Published { outcome }).0))
    }
}

impl Committed {
    /// What there is to know of a checkpoint that exists.
    pub fn of(
        order: Order,
        part: Part,
        removed: Vec<SegmentId>,
        inventory: &Inventory,
    ) -> Result<Self> {
        let segments = inventory.checkpoint(order.version)?.segments.clone();
        Ok(Self { segments, removed, places: part.places, level: Level::Local })
    }
}

fn seal_segments(
    pages: standfast_write::Pending,
    mut described: Described,
) -> Result<(Described, Part)> {
    failpoint::pass("commit.before_segments");
    let sealed = pages.seal()?;
    let stats = &mut described.stats;
    stats.compressed_bytes = sealed.iter().map(|segment| segment.compressed_bytes).sum();
    stats.segment_bytes = sealed.iter().map(|segment| segment.reference.file_bytes).sum();
    for segment in &sealed {
        described.writes.pieces.join(&segment.pieces);
        described.writes.writes.join(&segment.writes);
    }
    let segments = sealed.iter().map(|segment| segment.reference).collect();
    Ok((described, Part { segments, places: Vec::new() }))
}

/// What the node's agent has made of its ranks' parts. Every rank tells of the segments that are
/// named after it, so that each is told once.
fn pledged_part(link: &Link, order: Order, mut described: Described) -> Result<(Described, Part)> {
    let Settled { outcome, places, pledged, .. } = link.settled(order.attempt)?;
    outcome.map_err(Failure::into_error)?;
    let pledged = pledged.ok_or(Error::Broken { what: "pledging" })?;
    let rank = described.image.rank;
    let mut segments = pledged.segments;
    segments.retain(|segment: &SegmentRef| segment.rank == rank);
    let is_own = |id: SegmentId| segments.iter().any(|segment| segment.id == id);
    let places = places.into_iter().filter(|place| is_own(place.segment)).collect();
    if let Some(figures) = pledged.figures.into_iter().find(|figures| figures.rank == rank.0) {
        let Described { stats, writes, .. } = &mut described;
        stats.compressed_bytes = figures.compressed_bytes;
        stats.segment_bytes = figures.segment_bytes;
        (writes.pieces, writes.writes) = (figures.pieces, figures.writes);
    }
    Ok((described, Part { segments, places }))
}

/// What the agent of all ranks has made of it.
fn take_settled(
    env: &Env,
    order: Order,
    settled: Result<Settled>,
    notes: &mut Vec<String>,
    inventory: &mut Inventory,
) -> Result<Committed> {
    match settled {
        Ok(Settled { outcome, places, removed, holdings, notes: told, .. }) => {
            holdings.take_in(inventory);
            outcome.map_err(Failure::into_error)?;
            notes.extend(told);
            Committed::of(order, Part { places, ..Part::default() }, removed, inventory)
        }
        // The agent is gone: the store knows whether the checkpoint exists. Nobody writes there now.
        Err(error) => {
            refresh(&*env.store, inventory);
            if inventory.checkpoints.iter().any(|found| found.attempt == order.attempt) {
                return Committed::of(order, Part::default(), Vec::new(), inventory);
            }
            Err(error)
        }
    }
}
