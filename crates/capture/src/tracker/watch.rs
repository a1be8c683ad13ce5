//! The watch: which regions are tracked now, decided by what tracking brought so far.
//!
//! A region is armed with its first checkpoint. When more than a quarter of its pages were
//! written since the last one, it is left to hashing for a while, and then tried again.

use std::collections::HashMap;

use super::{Dirty, Span, Tracker};

/// Smaller regions are hashed: that is cheaper than asking.
const SPAN_BYTES_MIN: usize = 1 << 20;
/// Tracking pays while at most one page in so many is written.
const WRITTEN_SHARE: usize = 4;
/// Checkpoints a region sits out after tracking did not pay.
const PAUSE: u32 = 16;

enum State {
    Armed,
    Paused(u32),
    /// Cannot be tracked where it lies now.
    Refused,
}

/// Tracks regions as long as it pays.
pub struct Watch {
    tracker: Box<dyn Tracker>,
    /// Keep tracking whatever it costs.
    always: bool,
    regions: HashMap<usize, (usize, State)>,
}

impl Watch {
    /// Uses a tracker; `always` keeps tracking also where it does not pay.
    pub fn new(tracker: Box<dyn Tracker>, always: bool) -> Self {
        Self { tracker, always, regions: HashMap::new() }
    }

    /// The tracker's name.
    pub fn name(&self) -> &'static str {
        self.tracker.name()
    }

    /// What was written in each region since the last call; regions that are not tracked are
    /// wholly dirty. Decides which regions [`Watch::arm`] will watch from now on.
    pub fn collect(&mut self, spans: &[Span], page_bytes: usize) -> Vec<Dirty> {
        self.forget_others(spans);
        let armed: Vec<usize> = (0..spans.len()).filter(|at| self.is_armed(spans[*at])).collect();
        let watched: Vec<Span> = armed.iter().map(|at| spans[*at]).collect();
        let mut dirty = vec![Dirty::All; spans.len()];
        for (at, found) in armed.iter().zip(self.tracker.collect(&watched, page_bytes)) {
            dirty[*at] = found;
        }
        for (span, dirty) in spans.iter().zip(&dirty) {
            self.decide(*span, dirty, page_bytes);
        }
        dirty
    }

    /// The regions that are to be armed now. Arming may run beside the scan, as long as the
    /// program is stopped.
    pub fn to_arm(&self, spans: &[Span]) -> Vec<Span> {
        let new =
            |span: &&Span| span.bytes >= SPAN_BYTES_MIN && !self.regions.contains_key(&span.start);
        spans.iter().filter(new).copied().collect()
    }

    /// Arms a region; returns whether it is watched. Takes no exclusive access, so that it can
    /// run on another thread; [`Watch::armed`] records the outcome.
    pub fn arm(&self, span: Span) -> bool {
        self.tracker.arm(span)
    }

    /// Records what arming a region brought.
    pub fn armed(&mut self, span: Span, watched: bool) {
        let state = if watched { State::Armed } else { State::Refused };
        self.regions.insert(span.start, (span.bytes, state));
    }

    /// Stops watching a region, because somebody else needs its memory; [`Watch::to_arm`] names it
    /// again.
    pub fn let_go(&mut self, span: Span) {
        if self.is_armed(span) {
            self.tracker.disarm(span);
            self.regions.remove(&span.start);
        }
    }

    /// Stops watching everything, until it is armed again.
    pub fn rest(&mut self) {
        self.forget_others(&[]);
    }

    fn is_armed(&self, span: Span) -> bool {
        matches!(self.regions.get(&span.start), Some((bytes, State::Armed)) if *bytes == span.bytes)
    }

    /// Stops watching regions that are gone or have changed.
    fn forget_others(&mut self, spans: &[Span]) {
        let Self { tracker, regions, .. } = self;
        regions.retain(|start, (bytes, state)| {
            let span = Span { start: *start, bytes: *bytes };
            let stays = spans.contains(&span);
            if !stays && matches!(state, State::Armed) {
                tracker.disarm(span);
            }
            stays
        });
    }

    fn decide(&mut self, span: Span, dirty: &Dirty, page_bytes: usize) {
        let Some((_, state)) = self.regions.get_mut(&span.start) else { return };
        let pages = span.bytes.div_ceil(page_bytes);
        match (&mut *state, dirty.count()) {
            // It was unmapped or moved under its watch, or devices may write: ask anew next time.
            (State::Armed, None) => {
                self.regions.remove(&span.start);
            }
            (State::Armed, Some(written)) if written > pages / WRITTEN_SHARE && !self.always => {
                self.tracker.disarm(span);
                *state = State::Paused(PAUSE);
            }
            (State::Paused(0), _) => {
                self.regions.remove(&span.start);
            }
            (State::Paused(left), _) => *left -= 1,
            _ => {}
        }
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.rest();
    }
}
