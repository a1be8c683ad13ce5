//! Whole sequences on virtual ranks: assign, place, locate, commit; against one global set.

mod damage;
mod space;
mod time;

use std::collections::{BTreeSet, HashMap};

use proptest::prelude::*;
use proptest::strategy::Strategy as _;
use standfast_comm::Comm;
use standfast_format::{HashKind, SegmentId};
use standfast_testkit::{Threads, run_threads};

use super::{Assignment, Exact, Fate, Location, Places, Shares, Strategy, Threshold, TopK};

const SIZES: [usize; 7] = [1, 2, 3, 5, 7, 8, 16];
/// Pages that a rank of the tests puts into a segment.
const SEGMENT_SLOTS: u32 = 5;

/// The pages of each rank, named by numbers.
type Pages = Vec<Vec<u32>>;

fn hash(kind: HashKind, page: u32) -> Vec<u8> {
    blake3::hash(&page.to_le_bytes()).as_bytes()[..kind.bytes()].to_vec()
}

fn hashes(kind: HashKind, pages: &[u32]) -> Vec<u8> {
    pages.iter().flat_map(|page| hash(kind, *page)).collect()
}

fn segment_id(attempt: u8, rank: usize, number: u32) -> SegmentId {
    let mut id = [attempt; 16];
    id[1] = rank as u8;
    id[2..6].copy_from_slice(&number.to_le_bytes());
    SegmentId(id)
}

/// What a rank stored and refers to, having gone through the whole sequence.
#[derive(Debug)]
struct Outcome {
    /// Where each page is that this rank stored.
    stored: Vec<(u32, (SegmentId, u32))>,
    /// Where this rank will look for its pages, and who stores them.
    referred: Vec<(u32, u32, (SegmentId, u32))>,
    old: Vec<(u32, (SegmentId, u32))>,
    fates: Vec<Fate>,
    shares: Shares,
}

/// One checkpoint on one rank, up to `locate`.
fn checkpoint(
    strategy: &mut dyn Strategy,
    comm: &Threads,
    kind: HashKind,
    pages: &[u32],
    attempt: u8,
) -> Outcome {
    let rank = comm.rank();
    let assignment = strategy.assign(comm, &hashes(kind, pages)).unwrap();
    let order: Vec<u32> = assignment.mine().collect();
    let place = |candidate: u32| {
        let at = order.binary_search(&candidate).expect("only own pages are asked for") as u32;
        Location { segment: at / SEGMENT_SLOTS, slot: at % SEGMENT_SLOTS }
    };
    let segments: Vec<SegmentId> = (0..(order.len() as u32).div_ceil(SEGMENT_SLOTS))
        .map(|number| segment_id(attempt, rank, number))
        .collect();
    let places = strategy.locate(comm, &assignment, &segments, &place).unwrap();
    let stored = order.iter().map(|candidate| {
        let Location { segment, slot } = place(*candidate);
        (pages[*candidate as usize], (segments[segment as usize], slot))
    });
    outcome(stored.collect(), pages, &assignment, &places)
}

fn outcome(
    stored: Vec<(u32, (SegmentId, u32))>,
    pages: &[u32],
    assignment: &Assignment,
    places: &Places,
) -> Outcome {
    let fates: Vec<Fate> = (0..assignment.len() as u32).map(|at| assignment.fate(at)).collect();
    let (mut referred, mut old) = (Vec::new(), Vec::new());
    for ((candidate, page), fate) in (0u32..).zip(pages).zip(&fates) {
        match fate {
            Fate::Mine => assert_eq!(places.page(candidate), None),
            Fate::Theirs { owner } => {
                let place = places.page(candidate).expect("others tell where it is");
                referred.push((*page, *owner, place));
            }
            Fate::Old { segment, slot } => old.push((*page, (*segment, *slot))),
        }
    }
    Outcome { stored, referred, old, fates, shares: assignment.shares.clone() }
}

/// One checkpoint on fresh ranks.
fn run(pages: &Pages, kind: HashKind, make: impl Fn() -> Box<dyn Strategy> + Sync) -> Vec<Outcome> {
    run_threads(pages.len(), |comm| checkpoint(&mut *make(), &comm, kind, &pages[comm.rank()], 1))
}

/// Every page of every rank is found where it was said to be, at the owner that was named.
fn assert_found(pages: &Pages, outcomes: &[Outcome]) {
    let mut stored: HashMap<(SegmentId, u32), (u32, u32)> = HashMap::new();
    for (rank, outcome) in (0u32..).zip(outcomes) {
        for (page, place) in &outcome.stored {
            assert_eq!(stored.insert(*place, (*page, rank)), None, "one page in a slot");
        }
    }
    for (outcome, pages) in outcomes.iter().zip(pages) {
        for (page, owner, place) in &outcome.referred {
            assert_eq!(stored.get(place), Some(&(*page, *owner)));
        }
        let own: BTreeSet<u32> = outcome.stored.iter().map(|(page, _)| *page).collect();
        let found = own.len() + outcome.referred.len() + outcome.old.len();
        assert_eq!(found, pages.len(), "each page has one fate");
        assert!(own.iter().all(|page| pages.contains(page)));
        let Shares { candidates, stored, referred, old, .. } = outcome.shares;
        assert_eq!(candidates, pages.len() as u64);
        let counts = [own.len(), outcome.referred.len(), outcome.old.len()];
        assert_eq!([stored, referred, old], counts.map(|count| count as u64));
    }
}

fn stored_pages(outcomes: &[Outcome]) -> usize {
    outcomes.iter().map(|outcome| outcome.stored.len()).sum()
}

fn distinct(pages: &Pages) -> usize {
    pages.iter().flatten().collect::<BTreeSet<_>>().len()
}

fn exact() -> Box<dyn Strategy> {
    Box::new(Exact::new(HashKind::Xxh3))
}

fn top_k(threshold: u32) -> Box<dyn Strategy> {
    Box::new(TopK::new(HashKind::Xxh3, Threshold::fixed(threshold)))
}

/// Ranks that share some pages: with everybody, with neighbours, with nobody.
fn jobs() -> impl proptest::strategy::Strategy<Value = Pages> {
    let rank = proptest::collection::hash_set(0u32..150, 0..60);
    proptest::sample::select(&SIZES[..])
        .prop_flat_map(move |size| proptest::collection::vec(rank.clone(), size))
        .prop_map(|pages| pages.into_iter().map(Vec::from_iter).collect())
}

/// Pages of every rank by what it alone holds (`own`), shares with the next, and with all.
fn regular(ranks: u32, own: impl Fn(u32) -> u32, pair: u32, all: u32) -> Pages {
    let pages = |rank: u32| {
        let alone = (0..own(rank)).map(move |page| 1_000_000 + rank * 10_000 + page);
        let before = (rank + ranks - 1) % ranks;
        let pairs = [before, rank].into_iter().collect::<BTreeSet<_>>();
        let pairs =
            pairs.into_iter().flat_map(move |with| (0..pair).map(move |page| with * 10_000 + page));
        let common = (0..all).map(|page| 2_000_000_000 + page);
        alone.chain(pairs).chain(common).collect()
    };
    (0..ranks).map(pages).collect()
}
