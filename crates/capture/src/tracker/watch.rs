//! The watch: which regions are tracked now, decided by what tracking brought so far.
//!
//! A region is armed with its first checkpoint. When more of its pages were written since the last
//! one than tracking pays for, it is left to hashing for a while, and then tried again; every time
//! that fails the while is twice as long.

use std::collections::HashMap;

use super::{Dirty, Span, Tracker};

/// Smaller regions are hashed: that is cheaper than asking.
const SPAN_BYTES_MIN: usize = 1 << 20;
/// Checkpoints a region sits out after tracking did not pay, the first time and at most.
const PAUSES: (u32, u32) = (16, 256);

enum State {
    Armed,
    /// Still watched by the kernel, and nobody asks any more.
    Parting,
    /// Checkpoints that are still to be sat out.
    Paused(u32),
    /// To be armed again.
    Due,
    /// Cannot be tracked where it lies now.
    Refused,
}

struct Region {
    bytes: usize,
    state: State,
    /// How long it is to pause next.
    pause: u32,
}

/// Tracks regions as long as it pays.
pub struct Watch {
    tracker: Box<dyn Tracker>,
    /// Tracking pays while at most one page in so many is written; `None`: always.
    written_share: Option<usize>,
    regions: HashMap<usize, Region>,
}

impl Watch {
    /// Uses a tracker as long as at most one page in `written_share` is written; `None`: always.
    pub fn new(tracker: Box<dyn Tracker>, written_share: Option<usize>) -> Self {
        Self { tracker, written_share, regions: HashMap::new() }
    }

    /// The tracker's name.
    pub fn name(&self) -> &'static str {
        self.tracker.name()
    }

    /// What was written in each region since the last call; regions that are not tracked are
    /// wholly dirty. Decides for which regions that still pays: [`Watch::part`]
    /// stops watching the others.
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

    /// The regions that are to be watched from now on. [`Watch::start`] may run beside the scan, as
    /// long as the program is stopped.
    pub fn to_arm(&self, spans: &[Span]) -> Vec<Span> {
        let due = |span: &&Span| match self.regions.get(&span.start) {
            None => span.bytes >= SPAN_BYTES_MIN,
            Some(region) => matches!(region.state, State::Due),
        };
        spans.iter().filter(due).copied().collect()
    }

    /// Starts watching a region, if that is possible.
    pub fn start(&mut self, span: Span) {
        let state = if self.tracker.arm(span) { State::Armed } else { State::Refused };
        let pause = self.regions.get(&span.start).map_or(PAUSES.0, |region| region.pause);
        self.regions.insert(span.start, Region { bytes: span.bytes, state, pause });
    }

    /// Stops watching a region at once, because somebody else needs its memory: more was written
    /// than is worth asking for.
    pub fn let_go(&mut self, span: Span) {
        let Some(region) = self.regions.get_mut(&span.start) else { return };
        if matches!(region.state, State::Armed | State::Parting) {
            self.tracker.disarm(span);
            region.rest();
        }
    }

    /// Stops watching the regions for which it does not pay. Takes time in proportion to them, so
    /// nobody should wait for it.
    pub fn part(&mut self) {
        for (start, region) in &mut self.regions {
            if matches!(region.state, State::Parting) {
                self.tracker.disarm(Span { start: *start, bytes: region.bytes });
                region.rest();
            }
        }
    }

    /// Whether a region is watched.
    pub fn is_watching(&self, span: Span) -> bool {
        self.is_armed(span)
    }

    /// Stops watching everything, until it is armed again.
    pub fn rest(&mut self) {
        self.forget_others(&[]);
    }

    fn is_armed(&self, span: Span) -> bool {
        let region = self.regions.get(&span.start);
        region.is_some_and(|it| it.bytes == span.bytes && matches!(it.state, State::Armed))
    }

    /// Stops watching regions that are gone or have changed.
    fn forget_others(&mut self, spans: &[Span]) {
        let Self { tracker, regions, .. } = self;
        regions.retain(|start, region| {
            let span = Span { start: *start, bytes: region.bytes };
            let stays = spans.contains(&span);
            if !stays && matches!(region.state, State::Armed | State::Parting) {
                tracker.disarm(span);
            }
            stays
        });
    }

    fn decide(&mut self, span: Span, dirty: &Dirty, page_bytes: usize) {
        let Some(region) = self.regions.get_mut(&span.start) else { return };
        let pages = span.bytes.div_ceil(page_bytes);
        match (&mut region.state, dirty.count()) {
            // It was unmapped or moved under its watch, or devices may write: ask anew next time.
            (State::Armed, None) => {
                self.regions.remove(&span.start);
            }
            (state @ State::Armed, Some(written))
                if self.written_share.is_some_and(|share| written > pages / share) =>
            {
                *state = State::Parting;
            }
            (state @ State::Paused(0), _) => *state = State::Due,
            (State::Paused(left), _) => *left -= 1,
            _ => {}
        }
    }
}

impl Region {
    fn rest(&mut self) {
        self.state = State::Paused(self.pause);
        self.pause = (self.pause * 2).min(PAUSES.1);
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.rest();
    }
}
