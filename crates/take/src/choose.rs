//! Which way a checkpoint is captured, by what each would cost the program.
//!
//! Data: what every rank can do, and expects it to cost -> [`choose`] -> one [`Way`] for all ranks.
//!
//! What a way costs: the time until the call returns, and the time for which writers are held up
//! afterwards. [`Costs`] foretells both from what was measured: how fast this rank copies, whether the
//! memory for copies is ready, how much of its own memory the program writes to before it was read,
//! how long it was held up for that, and how long stopping took.

use serde::{Deserialize, Serialize};
use standfast_capture::Held;

use crate::settings::Capture;

/// How memory is captured at one checkpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Way {
    /// Memory is protected, and the program goes on at once.
    Cow,
    /// What changed is copied, then the program goes on.
    Staged,
    /// The program goes on when all pages were looked at.
    Stop,
}

/// What a rank can do, and what it expects that to cost.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Offer {
    /// Whether the state can be kept at all: device memory cannot.
    pub(crate) can_freeze: bool,
    /// Whether writers can be held up; then what that costs, in nanoseconds.
    pub(crate) cow_ns: Option<u64>,
    /// Whether everything that changed fits into memory; then what copying it costs.
    pub(crate) staged_ns: Option<u64>,
    /// What it costs to stop until everything is stored.
    pub(crate) stop_ns: u64,
}

/// The way that all ranks take. It costs as much as it does on the rank that it costs most.
pub(crate) fn choose(asked: Capture, offers: &[Offer]) -> Way {
    let most = |ns: fn(&Offer) -> Option<u64>| {
        let all: Option<Vec<u64>> = offers.iter().map(ns).collect();
        all.map(|all| all.into_iter().max().unwrap_or(0))
    };
    let (cow, staged) = (most(|offer| offer.cow_ns), most(|offer| offer.staged_ns));
    if !offers.iter().all(|offer| offer.can_freeze) {
        return Way::Stop;
    }
    match (asked, cow, staged) {
        (Capture::Stop, ..) => Way::Stop,
        (Capture::Cow, Some(_), _) => Way::Cow,
        (Capture::Cow | Capture::Staged, _, Some(_)) => Way::Staged,
        (Capture::Cow | Capture::Staged, ..) => Way::Stop,
        (Capture::Auto, ..) => {
            let stop = most(|offer| Some(offer.stop_ns));
            let ways = [(staged, Way::Staged), (cow, Way::Cow), (stop, Way::Stop)];
            let ways = ways.into_iter().filter_map(|(ns, way)| Some((ns?, way)));
            // The first of equal ones: copies bind the program to nothing.
            ways.min_by_key(|(ns, _)| *ns).map_or(Way::Stop, |(_, way)| way)
        }
    }
}

/// What a byte costs, in nanoseconds, where nothing was measured yet: copied at once, and written
/// to while it is protected.
const COPY_NS: f64 = 0.1;
const HELD_NS: f64 = 0.8;
/// Copied to memory that the system must find first, and stored while the program is stopped.
const COLD_NS: f64 = 2.0;
const STOP_NS: f64 = 0.4;
/// Protecting a byte of small pages.
const PROTECT_NS: f64 = 0.02;
/// What a new measurement counts.
const FRESH: f64 = 0.5;

/// What was measured of each way, per byte.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Costs {
    copy_ns: f64,
    protect_ns: f64,
    held_ns: f64,
    stop_ns: f64,
    /// How much of its memory the program writes to before it was read.
    early_share: f64,
}

impl Default for Costs {
    /// A program of which nothing is known writes to everything at once.
    fn default() -> Self {
        let (copy_ns, protect_ns, held_ns) = (COPY_NS, PROTECT_NS, HELD_NS);
        Self { copy_ns, protect_ns, held_ns, stop_ns: STOP_NS, early_share: 1.0 }
    }
}

impl Costs {
    /// What copying so many bytes is expected to cost.
    pub(crate) fn staged_ns(&self, bytes: u64) -> u64 {
        (self.copy_ns * bytes as f64) as u64
    }

    /// What it is expected to cost to copy some bytes, to protect others, and to hold up those who
    /// write to these.
    pub(crate) fn cow_ns(&self, copied: u64, shielded: u64) -> u64 {
        let each = self.protect_ns + self.early_share * self.held_ns;
        self.staged_ns(copied) + (each * shielded as f64) as u64
    }

    /// What it is expected to cost that so many bytes have no memory behind them yet; `warm_ns`: what
    /// a byte took where memory was made ready.
    pub(crate) fn cold_ns(&self, bytes: u64, warm_ns: Option<f64>) -> u64 {
        (warm_ns.unwrap_or(COLD_NS) * bytes as f64) as u64
    }

    /// What it is expected to cost to stop until so many bytes are stored.
    pub(crate) fn stop_ns(&self, bytes: u64) -> u64 {
        (self.stop_ns * bytes as f64) as u64
    }

    /// So many bytes were stored in this time while the program was stopped.
    pub(crate) fn stopped(&mut self, bytes: u64, ns: u64) {
        learn(&mut self.stop_ns, ns, bytes);
    }

    /// So many bytes were copied in this time.
    pub(crate) fn copied(&mut self, bytes: u64, ns: u64) {
        learn(&mut self.copy_ns, ns, bytes);
    }

    /// So many bytes were protected in this time, and writers held up for some of them.
    pub(crate) fn shielded(&mut self, bytes: u64, ns: u64, held: Held) {
        learn(&mut self.protect_ns, ns, bytes);
        learn(&mut self.held_ns, held.ns, held.bytes);
        self.early(held.bytes as f64 / bytes.max(1) as f64);
    }

    /// The program wrote to this share of its memory before it was read.
    pub(crate) fn early(&mut self, share: f64) {
        self.early_share = share.clamp(0.0, 1.0);
    }
}

/// Little memory says little.
const LEARN_BYTES_MIN: u64 = 4 << 20;

fn learn(rate: &mut f64, ns: u64, bytes: u64) {
    if bytes >= LEARN_BYTES_MIN {
        *rate += FRESH * (ns as f64 / bytes as f64 - *rate);
    }
}

#[cfg(test)]
mod tests;
