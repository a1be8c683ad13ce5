//! Scans and walks hand over what changed, once and in order.

use super::*;
use proptest::prelude::*;
use standfast_format::HashKind;

const PAGE: usize = 1024;

fn scanner(threads: usize) -> Scanner {
    Scanner::new(PageHasher::new(HashKind::Xxh3, &[3; 32]), PAGE, threads)
}

/// Scans once and returns (region, bytes, zero) of what was handed over.
fn scan(
    scanner: &Scanner,
    regions: &[Vec<u8>],
    positions: &mut [Positions],
) -> Vec<(usize, Vec<u8>, bool)> {
    let mut targets: Vec<Target<'_>> = regions
        .iter()
        .zip(positions)
        .map(|(bytes, positions)| Target { bytes, positions, dirty: None, trust_dirty: false })
        .collect();
    let mut seen = Seen { scanner, pages: Vec::new() };
    match scanner.threads {
        1 => scanner.walk(&mut targets, &mut seen),
        _ => scanner.scan(&mut targets, |page| seen.changed(page)),
    }
    .unwrap();
    seen.pages
}

/// Notes what is handed over.
struct Seen<'a> {
    scanner: &'a Scanner,
    pages: Vec<(usize, Vec<u8>, bool)>,
}

impl Consume for Seen<'_> {
    type Error = ();

    fn changed(&mut self, page: Changed<'_>) -> Result<PageRef, ()> {
        self.pages.push((page.region, page.bytes.to_vec(), page.zero));
        Ok(PageRef::ZERO)
    }

    fn unseen(
        &mut self,
        region: usize,
        _: usize,
        bytes: &[u8],
        hash: &mut [u8],
    ) -> Result<PageRef, ()> {
        self.scanner.hash_page(bytes, hash);
        self.changed(Changed { region, page: 0, bytes, hash, zero: false })
    }
}

#[test]
fn walking_and_scanning_see_the_same() {
    let bytes: Vec<u8> = (0..70 * PAGE + 5).map(|at| (at / PAGE % 9) as u8).collect();
    let mut positions = [Positions::default(), Positions::default()];
    let regions = [bytes];
    let walked = scan(&scanner(1), &regions, &mut positions[..1]);
    let scanned = scan(&scanner(3), &regions, &mut positions[1..]);
    assert_eq!(walked, scanned);
    assert_eq!(positions[0].hashes(), positions[1].hashes());
    let [walked, _] = &mut positions;
    let dirty = [1 << 3, 0];
    let mut changed = regions[0].clone();
    changed[3 * PAGE] = 99;
    changed[5 * PAGE] = 99;
    let target =
        Target { bytes: &changed, positions: walked, dirty: Some(&dirty), trust_dirty: false };
    let one = scanner(1);
    let mut seen = Seen { scanner: &one, pages: Vec::new() };
    one.walk(&mut [target], &mut seen).unwrap();
    assert_eq!(seen.pages.len(), 1, "5 was said to be clean");
}

#[test]
fn a_failing_consumer_leaves_nothing_known() {
    let bytes = vec![1; 100 * PAGE];
    let mut positions = Positions::default();
    let mut left = 10;
    let outcome = scanner(2).scan(
        &mut [Target { bytes: &bytes, positions: &mut positions, dirty: None, trust_dirty: false }],
        |_| {
            left -= 1;
            if left == 0 { Err("full") } else { Ok(PageRef::ZERO) }
        },
    );
    assert_eq!(outcome, Err("full"));
    let seen = scan(&scanner(1), &[bytes], std::slice::from_mut(&mut positions));
    assert_eq!(seen.len(), 100, "everything is handed over again");
}

#[test]
fn only_dirty_and_unseen_pages_are_looked_at() {
    let mut bytes = vec![1; 100 * PAGE];
    let mut positions = Positions::default();
    scan(&scanner(2), std::slice::from_ref(&bytes), std::slice::from_mut(&mut positions));
    bytes.resize(102 * PAGE, 2);
    bytes[3 * PAGE] = 7;
    bytes[70 * PAGE] = 7;
    let dirty = [1 << 3 | 1 << 4, 0];
    let target = Target {
        bytes: &bytes,
        positions: &mut positions,
        dirty: Some(&dirty),
        trust_dirty: false,
    };
    let mut seen = Vec::new();
    scanner(2)
        .scan::<()>(&mut [target], |page| {
            seen.push((page.bytes.as_ptr() as usize - bytes.as_ptr() as usize) / PAGE);
            Ok(PageRef::ZERO)
        })
        .unwrap();
    assert_eq!(seen, [3, 100, 101], "4 is dirty but equal; 70 was said to be clean");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn changed_pages_come_once_and_in_order(
        sizes in proptest::collection::vec(0usize..200 * PAGE, 1..4),
        writes in proptest::collection::vec((any::<proptest::sample::Index>(), 1u8..), 0..20),
        threads in 1usize..5,
    ) {
        let scanner = scanner(threads);
        let mut regions: Vec<Vec<u8>> = sizes.iter().map(|size| vec![0; *size]).collect();
        let mut positions: Vec<Positions> = sizes.iter().map(|_| Positions::default()).collect();
        let all = scan(&scanner, &regions, &mut positions);
        let pages: usize = sizes.iter().map(|size| size.div_ceil(PAGE)).sum();
        prop_assert_eq!(all.len(), pages);
        prop_assert!(all.iter().all(|(_, _, zero)| *zero));

        let mut expected = std::collections::BTreeSet::new();
        for (at, value) in writes {
            let region = at.index(regions.len());
            let len = regions[region].len();
            if len == 0 { continue; }
            let at = at.index(len);
            regions[region][at] = value;
            expected.insert((region, at / PAGE));
        }
        let seen = scan(&scanner, &regions, &mut positions);
        let want: Vec<_> = expected
            .into_iter()
            .map(|(region, page)| {
                let end = (page * PAGE + PAGE).min(regions[region].len());
                (region, regions[region][page * PAGE..end].to_vec(), false)
            })
            .collect();
        prop_assert_eq!(seen, want);
        prop_assert!(scan(&scanner, &regions, &mut positions).is_empty());
    }
}
