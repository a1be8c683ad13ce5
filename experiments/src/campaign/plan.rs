//! What a seed stands for: a job and the faults that it meets.

use std::fmt;
use std::time::Duration;

use super::fault::{Fault, Kind};

/// Numbers drawn from a seed.
pub(super) struct Dice(u64);

impl Dice {
    pub(super) fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ 0x51f1_5ee1_77ab_c0de)
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    pub(super) fn below(&mut self, end: u64) -> u64 {
        self.next() % end.max(1)
    }

    fn one_in(&mut self, many: u64) -> bool {
        self.below(many) == 0
    }

    fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.below(from.len() as u64) as usize]
    }
}

/// A job and what happens to it.
pub(super) struct Plan {
    pub(super) seed: u64,
    pub(super) nodes: usize,
    /// The node of every rank.
    pub(super) node_of: Vec<usize>,
    /// Settings beside those of the place.
    pub(super) settings: Vec<(&'static str, String)>,
    pub(super) global: bool,
    /// Messages take up to this long.
    pub(super) delay: Duration,
    /// What every life's clock is wrong by, in seconds.
    pub(super) clocks: Vec<i64>,
    pub(super) faults: Vec<Fault>,
}

impl Plan {
    /// The plan of a seed.
    pub(super) fn of(seed: u64) -> Self {
        let mut dice = Dice::new(seed);
        let nodes = 1 + dice.below(4) as usize;
        let node_of = (0..nodes).flat_map(|node| vec![node; 1 + dice.below(2) as usize]).collect();
        let ring = nodes > 1 && !dice.one_in(4);
        let global = dice.one_in(2);
        let settings = vec![
            ("capture", dice.pick(&["stop", "stop", "cow"]).to_owned()),
            // Only agents carry checkpoints to global storage by themselves.
            ("write", if global { "wag-dbi" } else { dice.pick(&["pool", "wag-dbi"]) }.to_owned()),
            ("codec", dice.pick(&["lz4", "zstd", "none", "auto"]).to_owned()),
            ("mode", dice.pick(&["all", "all", "collective", "local", "incremental"]).to_owned()),
            ("restart", dice.pick(&["eager", "eager", "lazy"]).to_owned()),
            ("keep", (2 + dice.below(3)).to_string()),
            ("ring", if ring { "auto" } else { "off" }.to_owned()),
        ];
        let delay = Duration::from_micros(if dice.one_in(3) { dice.below(3000) } else { 0 });
        let faults: Vec<Fault> = (0..2 + dice.below(4))
            .map(|_| Fault {
                kind: Kind::drawn(&mut dice, nodes),
                after: Duration::from_millis(dice.below(900)),
                dice: dice.next(),
            })
            .collect();
        let year = 365 * 24 * 3600;
        let clocks =
            (0..=faults.len())
                .map(|_| {
                    if dice.one_in(3) { dice.below(20 * year) as i64 - 10 * year as i64 } else { 0 }
                })
                .collect();
        Self { seed, nodes, node_of, settings, global, delay, clocks, faults }
    }
}

impl fmt::Display for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ranks on {} nodes", self.node_of.len(), self.nodes)?;
        for (name, value) in &self.settings {
            write!(f, ", {name} {value}")?;
        }
        if self.global {
            write!(f, ", global")?;
        }
        for fault in &self.faults {
            write!(f, "; {fault}")?;
        }
        Ok(())
    }
}
