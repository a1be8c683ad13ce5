//! NDP Table 3: codec speed, cores and drain interval that saturate global I/O.
//!
//! Data: the compression study -> one result per [`Reading`] of what the paper leaves open, best
//! first -> rows of the best one, and a line for each of the others.
//!
//! The table follows from mean factors, mean speeds and the global rate of a node, but the paper
//! prints each of them more than once, with different digits. All combinations are tried.
//!
//! Invariants:
//! - The paper's values only rank the readings; they enter no calculation.

use super::exascale::{Assumptions, Exascale};
use super::study::{COLUMN_MEANS, MB, MINI_APPS, TEXT_MEANS, UTILITIES, mean_of};
use super::{Reproduction, claim, row};
use standfast_model::Result;
use standfast_model::codec::Codec;

/// Paper's values per utility: MB/s, cores, seconds.
const TABLE3: [[f64; 3]; 7] = [
    [367.0, 4.0, 305.0],
    [395.0, 8.0, 283.0],
    [407.0, 34.0, 275.0],
    [421.0, 41.0, 266.0],
    [515.0, 21.0, 217.0],
    [596.0, 125.0, 188.0],
    [283.0, 1.0, 395.0],
];
const ENTRIES: usize = 3 * TABLE3.len();

/// Which of the printed mean factors is meant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Means {
    Text,
    Apps,
    Column,
}

/// Which of the printed global rates of a node is meant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Rate {
    Share,
    Commit,
}

/// How the required speed becomes a whole number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Whole {
    Cut,
    Nearest,
    Up,
}

/// One way to read what the paper leaves open.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Reading {
    means: Means,
    rate: Rate,
    whole: Whole,
}

impl Reading {
    fn all() -> impl Iterator<Item = Self> {
        [Means::Text, Means::Apps, Means::Column].into_iter().flat_map(|means| {
            [Rate::Share, Rate::Commit].into_iter().flat_map(move |rate| {
                [Whole::Cut, Whole::Nearest, Whole::Up].into_iter().map(move |whole| Self {
                    means,
                    rate,
                    whole,
                })
            })
        })
    }

    /// Mean share of bytes that a utility removes.
    fn factor(self, utility: usize) -> f64 {
        let percent = match self.means {
            Means::Text => TEXT_MEANS[utility],
            Means::Apps => None,
            Means::Column => Some(COLUMN_MEANS[utility]),
        };
        percent.map_or(mean_of(utility).0, |percent| percent / 100.0)
    }

    /// Bytes per second of a node.
    fn rate_bps(self, machine: &Exascale) -> f64 {
        match self.rate {
            Rate::Share => machine.global_bps,
            Rate::Commit => machine.bytes / (18.67 * 60.0),
        }
    }

    /// Speed, cores and interval of every utility.
    fn table(self, machine: &Exascale) -> Result<Vec<[f64; 3]>> {
        let rate = self.rate_bps(machine);
        (0..UTILITIES.len())
            .map(|utility| {
                let codec =
                    Codec::new(self.factor(utility), mean_of(utility).1, machine.decompress_bps)?;
                let speed = codec.saturating_bps(rate)? / MB;
                let whole = match self.whole {
                    Whole::Cut => speed.floor(),
                    Whole::Nearest => speed.round(),
                    Whole::Up => speed.ceil(),
                };
                let cores = codec.saturating_cores(rate)? as f64;
                Ok([whole, cores, (codec.stored_bytes(machine.bytes) / rate).round()])
            })
            .collect()
    }

    fn describe(self, machine: &Exascale) -> String {
        let means = match self.means {
            Means::Text => {
                "mean factors of the text where it prints them (72.77, 83.25, 64.75 %), else means \
                 over the mini-apps"
            }
            Means::Apps => "mean factors over the mini-apps",
            Means::Column => "mean factors of the last line of the study (one decimal)",
        };
        let rate = match self.rate {
            Rate::Share => "10 TB/s over 100,000 nodes",
            Rate::Commit => "112 GB in 18.67 minutes",
        };
        let whole = match self.whole {
            Whole::Cut => "cut",
            Whole::Nearest => "rounded",
            Whole::Up => "rounded up",
        };
        let mb_s = self.rate_bps(machine) / MB;
        format!("{means}; {mb_s:.2} MB/s a node ({rate}); required speeds {whole} to whole MB/s")
    }
}

/// A reading, what it gives, and how many entries are the paper's.
struct Tried {
    reading: Reading,
    table: Vec<[f64; 3]>,
    exact: usize,
}

/// Every reading, the best first.
fn tried(machine: &Exascale) -> Result<Vec<Tried>> {
    let mut all = Reading::all()
        .map(|reading| {
            let table = reading.table(machine)?;
            let ours = table.iter().flatten();
            let exact = ours.zip(TABLE3.iter().flatten()).filter(|(a, b)| a == b).count();
            Ok(Tried { reading, table, exact })
        })
        .collect::<Result<Vec<_>>>()?;
    all.sort_by_key(|tried| std::cmp::Reverse(tried.exact));
    Ok(all)
}

pub(super) fn table3() -> Result<Reproduction> {
    let machine = Exascale::new(Assumptions::fitting());
    let all = tried(&machine)?;
    let (best, others) = all.split_first().expect("there are readings");
    let mut rows = Vec::new();
    for ((name, paper), ours) in UTILITIES.iter().zip(TABLE3).zip(&best.table) {
        for (entry, (what, unit)) in
            [("speed", "MB/s"), ("cores", ""), ("interval", "s")].into_iter().enumerate()
        {
            rows.push(row(format!("{name} {what}"), unit, paper[entry], ours[entry], 0.0));
        }
    }
    let mut assumptions = vec![
        best.reading.describe(&machine),
        format!(
            "speeds are means over the {} mini-apps of the compression study ({} to {}), \
             unweighted; cores are rounded up, intervals rounded",
            MINI_APPS.len(),
            MINI_APPS[0].name,
            MINI_APPS[MINI_APPS.len() - 1].name
        ),
        format!("{} readings of what is left open were tried", all.len()),
    ];
    assumptions.extend(others.iter().map(|other| {
        let what = other.reading.describe(&machine);
        format!("tried and rejected, {} of {ENTRIES} entries: {what}", other.exact)
    }));
    Ok(Reproduction {
        name: "ndp-table3",
        title: "NDP Table 3: codec speed, cores and drain interval that saturate global I/O",
        assumptions,
        rows,
        claims: vec![
            claim(&format!("all {ENTRIES} entries are exact"), best.exact == ENTRIES),
            claim(
                "one reading alone gives all of them",
                others.iter().all(|other| other.exact < ENTRIES),
            ),
        ],
        charts: vec![],
    })
}
