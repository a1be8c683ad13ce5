//! How fast the stages are, and what the store feels of a choice.
//!
//! Why what is on its way to the store counts: blocks are not alike. Stages that are balanced on
//! average leave the store without work whenever some blocks take long, and that time is lost. So a
//! reserve is kept on its way to the store: with less than that, blocks are compressed more lightly,
//! with more, harder. It is worked off towards the end.

/// The reserve at most: two chunks, one that is written and one that waits while the next is filled;
/// and no more than so many raw bytes become, and than the store takes so long for, since it is to last
/// only while some blocks take longer.
pub(super) const RESERVE_BYTES: f64 = 4e6;
const RESERVE_RAW_BYTES: f64 = 10e6;
const RESERVE_S: f64 = 5e-3;
/// With so many raw bytes left the reserve begins to be worked off.
const ENDING_BYTES: f64 = 32e6;
/// A store with nothing to do is treated as if it were so much faster.
const HURRY: f64 = 0.15;
/// Over so many raw bytes a surplus is worked off, and over those that are left, if they are fewer and
/// not too few: the last blocks of a checkpoint must not be compressed hard while the last chunk waits
/// for them.
const HORIZON_BYTES: (f64, f64) = (4e6, 16e6);

/// How fast the other stages are, as measured.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rates {
    /// Seconds that collecting takes for a raw byte.
    pub collect_s: f64,
    /// Seconds that storing takes for a stored byte.
    pub store_s: f64,
    /// Compressing threads.
    pub threads: usize,
    /// Cores that collecting and compressing share.
    pub cores: usize,
    /// How much longer compressing takes than its processor time because other programs use the
    /// cores too.
    pub slowdown: f64,
    /// Stored bytes that are on their way and not yet written, where the store counts them.
    pub backlog_bytes: Option<f64>,
    /// Raw bytes that are collected and wait to be compressed.
    pub ahead_bytes: f64,
    /// Whether more of them are being collected.
    pub collecting: bool,
    /// Whether the stages take turns instead of working side by side.
    pub in_turn: bool,
}

impl Rates {
    /// How many of our own threads share a core: they hold each other up, but that is over when
    /// collecting is, and must not count as if it went on.
    pub(crate) fn crowding(&self) -> f64 {
        let collecting = usize::from(self.collecting && !self.in_turn);
        ((self.threads + collecting) as f64 / self.cores as f64).max(1.0)
    }

    /// What of a raw byte the store is to write, with what is on its way: more than `share` where
    /// that is more than the reserve, less where it has less to do.
    pub(crate) fn felt_share(&self, share: f64) -> f64 {
        let Some(backlog_bytes) = self.backlog_bytes.filter(|_| !self.in_turn) else {
            return share;
        };
        let ahead_bytes = if self.collecting { f64::INFINITY } else { self.ahead_bytes };
        let most_bytes = RESERVE_BYTES.min(share * RESERVE_RAW_BYTES).min(RESERVE_S / self.store_s);
        let reserve_bytes = (ahead_bytes / ENDING_BYTES).min(1.0) * most_bytes;
        match backlog_bytes - reserve_bytes {
            lack if lack < 0.0 => share * (1.0 + HURRY * lack / reserve_bytes),
            surplus => share + surplus / ahead_bytes.clamp(HORIZON_BYTES.0, HORIZON_BYTES.1),
        }
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// Of a store that does not count what is on its way.
    pub(in super::super) fn rates(store_mbps: f64) -> Rates {
        Rates {
            collect_s: 0.2e-9,
            store_s: 1e-6 / store_mbps,
            threads: 2,
            cores: 2,
            slowdown: 1.0,
            backlog_bytes: None,
            ahead_bytes: 0.0,
            collecting: true,
            in_turn: false,
        }
    }

    #[test]
    fn the_reserve_is_worked_off_towards_the_end() {
        let felt = |collecting, ahead_bytes| {
            let backlog_bytes = Some(RESERVE_BYTES);
            Rates { collecting, ahead_bytes, backlog_bytes, ..rates(1000.0) }.felt_share(0.5)
        };
        assert_eq!(felt(true, 0.0), 0.5);
        assert_eq!(felt(false, 1e9), 0.5);
        assert!(0.5 < felt(false, 20e6) && felt(false, 20e6) < felt(false, 10e6));
        assert_eq!(felt(false, 0.0), 0.5 + RESERVE_BYTES / HORIZON_BYTES.0);
        let empty = Rates { backlog_bytes: Some(0.0), ..rates(1000.0) };
        assert_eq!(empty.felt_share(0.5), 0.5 * (1.0 - HURRY));
        let slow = Rates { backlog_bytes: Some(1e6), ..rates(50.0) };
        assert!(slow.felt_share(0.5) > 0.5, "it has enough to do with less");
        assert_eq!(rates(1000.0).felt_share(0.5), 0.5, "of a store that does not count");
    }
}
