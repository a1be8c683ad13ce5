//! What a seed stands for: a job and the faults that it meets.

use std::fmt;
use std::time::Duration;

use super::disk::Medium;
use super::fault::{Fault, Kind, When};
use super::life::Word;
use super::proxy::Mood;
use super::stage::Stage;

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

    pub(super) fn one_in(&mut self, many: u64) -> bool {
        self.below(many) == 0
    }

    fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.below(from.len() as u64) as usize]
    }

    fn millis(&mut self, most: u64) -> Duration {
        Duration::from_micros(self.below(most * 1000))
    }
}

/// Where checkpoints go beyond the nodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Global {
    None,
    Directory,
    /// A real S3 server, by a way that can be disturbed.
    Objects,
}

/// A job and what happens to it.
pub(super) struct Plan {
    pub(super) seed: u64,
    pub(super) nodes: usize,
    /// The node of every rank.
    pub(super) node_of: Vec<usize>,
    pub(super) medium: Medium,
    /// Settings beside those of the place.
    pub(super) settings: Vec<(&'static str, String)>,
    pub(super) global: Global,
    pub(super) faults: Vec<Fault>,
}

impl Plan {
    /// The plan of a seed.
    pub(super) fn of(seed: u64) -> Self {
        let mut dice = Dice::new(seed);
        let nodes = 1 + dice.below(4) as usize;
        let node_of = (0..nodes).flat_map(|node| vec![node; 1 + dice.below(2) as usize]).collect();
        let medium = if dice.one_in(3) { Medium::Xfs } else { Medium::Memory };
        let ring = nodes > 1 && !dice.one_in(4);
        let global = dice.pick(&[Global::None, Global::Directory, Global::Objects]);
        // Only agents carry checkpoints to global storage by themselves.
        let write = match global {
            Global::None => dice.pick(&["pool", "wag-dbi"]),
            Global::Directory | Global::Objects => "wag-dbi",
        };
        let keep_global = dice.below(3);
        let mut settings = vec![
            ("capture", dice.pick(&["stop", "stop", "cow"]).to_owned()),
            ("lab.write", write.to_owned()),
            ("codec", dice.pick(&["lz4", "zstd", "none", "auto"]).to_owned()),
            (
                "lab.mode",
                dice.pick(&["all", "all", "collective", "local", "incremental"]).to_owned(),
            ),
            ("restart", dice.pick(&["eager", "eager", "lazy"]).to_owned()),
            // Few, so that most checkpoints are followed by pruning.
            ("keep", (1 + dice.below(3)).to_string()),
            ("ring", if ring { "auto" } else { "off" }.to_owned()),
        ];
        if keep_global > 0 && global != Global::None {
            settings.push(("global_keep", keep_global.to_string()));
        }
        let place = Place { nodes, ranks: Vec::len(&node_of), ring, global };
        let faults = (0..3 + dice.below(3)).flat_map(|_| place.life(&mut dice)).collect();
        Self { seed, nodes, node_of, medium, settings, global, faults }
    }
}

/// What faults are drawn for.
struct Place {
    nodes: usize,
    ranks: usize,
    ring: bool,
    global: Global,
}

impl Place {
    /// What happens in one life: some disturbances, and its end.
    fn life(&self, dice: &mut Dice) -> Vec<Fault> {
        let is_early = dice.one_in(4);
        let when = |dice: &mut Dice| if is_early { early(dice) } else { self.instant(dice) };
        let mut faults: Vec<Fault> = (0..dice.below(3))
            .map(|_| {
                let kind = self.disturbance(dice, is_early);
                Fault { kind, when: when(dice), dice: dice.next() }
            })
            .collect();
        faults.push(Fault { kind: self.end(dice), when: when(dice), dice: dice.next() });
        faults
    }

    fn node(&self, dice: &mut Dice) -> usize {
        dice.below(self.nodes as u64) as usize
    }

    fn end(&self, dice: &mut Dice) -> Kind {
        let node = self.node(dice);
        match dice.below(14) {
            0 | 1 => Kind::Rank(dice.below(self.ranks as u64) as usize),
            2 | 3 => Kind::Ranks,
            4 | 5 => Kind::Node(node),
            6 | 7 => Kind::Power,
            8 | 9 => Kind::Disk(node),
            10 => Kind::Disks,
            _ => Kind::File(node),
        }
    }

    /// `is_early`: of a job that comes back. Global storage is left alone then: without an answer
    /// from there a restart rightly makes do with what the nodes have.
    fn disturbance(&self, dice: &mut Dice, is_early: bool) -> Kind {
        let (node, time) = (self.node(dice), dice.millis(250));
        match dice.below(if self.global == Global::Objects && !is_early { 9 } else { 6 }) {
            0 | 1 => Kind::Agent(node),
            2 | 3 => Kind::Full(node, time),
            4 => Kind::Clock(self.wrong_clock(dice)),
            5 => Kind::Messages(dice.millis(6)),
            _ => Kind::Storage(dice.pick(&[Mood::Slow, Mood::Busy, Mood::Broken]), time),
        }
    }

    /// An instant of a running job: any, just after something was told, or in some stage.
    fn instant(&self, dice: &mut Dice) -> When {
        match dice.below(4) {
            0 => When::After(dice.millis(350)),
            1 => {
                let word = dice.pick(&[Word::Begun, Word::Taken, Word::Local, Word::Ring]);
                When::Word(word, 1 + dice.below(4) as usize, dice.millis(6))
            }
            _ => match dice.pick(&self.stages()) {
                // No file is touched: only the rank's word tells.
                Stage::Capture => {
                    When::Word(Word::Begun, 1 + dice.below(8) as usize, dice.millis(1))
                }
                stage => {
                    // What a few checkpoints have of it.
                    let acts = match stage {
                        Stage::Drain | Stage::Pack => 5,
                        _ => 12,
                    };
                    When::Stage(stage, 1 + dice.below(acts) as usize, dice.millis(4))
                }
            },
        }
    }

    /// The stages that the job passes when it runs; one that is waited for longer counts twice.
    fn stages(&self) -> Vec<Stage> {
        let mut stages = vec![Stage::Capture, Stage::Pack, Stage::Commit, Stage::Prune];
        if self.ring {
            stages.extend([Stage::Encode; 2]);
        }
        if self.global != Global::None {
            stages.extend([Stage::Drain; 2]);
        }
        stages
    }

    /// Seconds by which a clock jumps; S3 servers refuse whoever is minutes off.
    fn wrong_clock(&self, dice: &mut Dice) -> i64 {
        let most = match self.global {
            Global::Objects => 240,
            Global::None | Global::Directory => 10 * 365 * 24 * 3600,
        };
        dice.below(2 * most) as i64 - most as i64
    }
}

/// An instant of a job that comes back: any, or when it does something.
fn early(dice: &mut Dice) -> When {
    match dice.one_in(3) {
        true => When::Early(dice.millis(150)),
        false => When::Stage(Stage::Recovery, 1 + dice.below(40) as usize, dice.millis(4)),
    }
}

impl fmt::Display for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ranks on {} nodes, {:?}", self.node_of.len(), self.nodes, self.medium)?;
        for (name, value) in &self.settings {
            write!(f, ", {name} {value}")?;
        }
        if self.global != Global::None {
            write!(f, ", global {:?}", self.global)?;
        }
        for fault in &self.faults {
            write!(f, "; {fault}")?;
        }
        Ok(())
    }
}
