//! The bars of deduplication across ranks that need no running job: what is stored, and by whom.

use std::path::Path;

use standfast_measure::{Bar, Better};

use crate::bars::Sheet;

use super::job::{self, Outcome, Way};
use super::names::{name, unique};
use super::{corpus, stencil};

const LETTER: &str = "B";

/// Measures the bars, handing each over as soon as it is known. The corpus is left out where none
/// is named.
pub(crate) fn bars(quick: bool, corpus: Option<&Path>, sheet: &mut Sheet) -> anyhow::Result<()> {
    unshared(quick, sheet)?;
    mixed(|bar| sheet.bar(bar))?;
    identical(quick, sheet)?;
    storm(quick, sheet)?;
    match corpus {
        Some(dir) => real_programs(dir, sheet)?,
        None => sheet.unmeasured(LETTER, "pages of real programs", "STANDFAST_CORPUS is not set"),
    }
    Ok(())
}

/// Pages that the exact strategy stores beyond the different ones there are: none.
fn beyond(of: &str, pages: i64) -> Bar {
    let name = format!("exact dedup, pages off one global set: {of}");
    Bar::new(LETTER, name, pages.abs() as f64, Better::Lower, 0.0)
}

fn unshared(quick: bool, sheet: &mut Sheet) -> anyhow::Result<()> {
    let (ranks, pages) = if quick { (16, 1 << 12) } else { (64, 1 << 14) };
    let all: Vec<Vec<u8>> = (0..ranks).map(|rank| unique(rank, pages)).collect();
    let outcome = job::run(ranks, Way::Exact, 1, |rank| all[rank].clone())?;
    sheet.bar(beyond("nothing shared", outcome.beyond(&slices(&all))));
    Ok(())
}

/// Pages of all sorts of holders: alone, pairs, random sets, everybody.
fn mixed(mut each: impl FnMut(Bar)) -> anyhow::Result<()> {
    let ranks = 16;
    let alike = holders(ranks, 0);
    let outcome = job::run(ranks, Way::Exact, 1, |rank| alike[rank].clone())?;
    each(beyond("random holders", outcome.beyond(&slices(&alike))));
    let name = "exact dedup, most pages with a choice on a rank, times the average";
    each(Bar::new(LETTER, name, outcome.chosen_imbalance(), Better::Lower, 1.1));
    // One rank has far more to store than its share: the others must make up for it.
    let extra = 3000;
    let unlike = holders(ranks, extra);
    let outcome = job::run(ranks, Way::Exact, 1, |rank| unlike[rank].clone())?;
    each(beyond("random holders, one rank with more", outcome.beyond(&slices(&unlike))));
    let forced = outcome.stored[0] - outcome.chosen[0];
    let least = outcome.average().max(forced as f64);
    let name = "exact dedup, one rank with more: most stored, times what cannot be less";
    each(Bar::new(LETTER, name, outcome.most() as f64 / least, Better::Lower, 1.1));
    Ok(())
}

/// Candidates of ranks that share in all sorts of ways; rank 0 has some more of its own.
fn holders(ranks: usize, extra: u64) -> Vec<Vec<u8>> {
    let mut all = vec![Vec::new(); ranks];
    for page in 0..30_000u64 {
        let bits = u64::from_le_bytes(name(page)[..8].try_into().expect("eight bytes"));
        let first = bits as usize % ranks;
        let set = match page % 4 {
            0 => 1 << first,
            1 => 1 << first | 1 << ((first + 1) % ranks),
            2 => (bits >> 40) as u16 | 1 << first,
            _ => u16::MAX,
        };
        let holding = all.iter_mut().enumerate().filter(|(rank, _)| set & (1 << rank) != 0);
        holding.for_each(|(_, names)| names.extend_from_slice(&name(page)));
    }
    (0..extra).for_each(|page| all[0].extend_from_slice(&name(1_000_000 + page)));
    all
}

fn identical(quick: bool, sheet: &mut Sheet) -> anyhow::Result<()> {
    let (ranks, pages) = if quick { (24, 1 << 13) } else { (96, 1 << 15) };
    let names: Vec<u8> = (0..pages).flat_map(name).collect();
    for way in [Way::TopK(pages as u32), Way::Exact] {
        let outcome: Outcome = job::run(ranks, way, 1, |_| names.clone())?;
        if way == Way::Exact {
            sheet.bar(beyond("identical ranks", outcome.beyond(&[&names])));
        }
        let name = format!("{}, identical ranks, most stored, times the average", way.name());
        sheet.bar(Bar::new(LETTER, name, outcome.imbalance(), Better::Lower, 1.02));
    }
    Ok(())
}

fn storm(quick: bool, sheet: &mut Sheet) -> anyhow::Result<()> {
    let ranks = if quick { 96 } else { 384 };
    let job = stencil::Job::compute(ranks);
    for way in [Way::TopK(stencil::THRESHOLD), Way::Exact] {
        let outcome = job.share(way, 1)?;
        if way == Way::Exact {
            sheet.bar(beyond("storm", job.beyond(&outcome)));
        }
        let share = outcome.most() as f64 / job.local_most() as f64;
        let name = format!("{}, storm on {ranks} ranks, most stored, share of local's", way.name());
        sheet.bar(Bar::new(LETTER, name, share, Better::Lower, 0.5));
    }
    Ok(())
}

fn real_programs(dir: &Path, sheet: &mut Sheet) -> anyhow::Result<()> {
    for program in corpus::programs(dir)? {
        sheet.bar(beyond(program.name(), program.beyond()?));
    }
    Ok(())
}

fn slices(all: &[Vec<u8>]) -> Vec<&[u8]> {
    all.iter().map(Vec::as_slice).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranks_that_share_in_all_ways_are_balanced() {
        let mut bars = Vec::new();
        mixed(|bar| bars.push(bar)).unwrap();
        assert_eq!(bars.len(), 4);
        assert!(bars.iter().all(|bar| bar.met), "{bars:?}");
    }
}
