//! Scans and walks hand over what changed, once and in order.

use super::*;
use proptest::prelude::*;
use standfast_format::HashKind;

const PAGE: usize = 1024;

fn scanner(threads: usize) -> Scanner {
    Scanner::new(PageHasher::new(HashKind::Xxh3, &[3; 32]), PAGE, threads)
}

/// Regions in memory, or read page by page.
struct Memory<'a> {
    regions: &'a [Vec<u8>],
    here: bool,
}

impl PageSource for Memory<'_> {
    type Error = ();

    fn reach(&self, region: usize) -> Option<Reach<'_>> {
        let bytes = self.regions.get(region)?;
        Some(if self.here { Reach::Here(bytes) } else { Reach::Read(bytes.len()) })
    }

    fn read(&self, page: PageAt, out: &mut [u8]) {
        let from = page.page as usize * PAGE;
        out.copy_from_slice(&self.regions[page.region as usize][from..from + out.len()]);
    }

    fn bring(&self, _: &[PageAt], _: bool, _: &mut crate::Take<'_, ()>) -> Result<(), ()> {
        Ok(())
    }
}

fn target(positions: &mut PageTable) -> Target<'_> {
    Target { positions, dirty: None, trust_dirty: false }
}

/// Scans once and returns (region, bytes, zero) of what was handed over.
fn scan(
    scanner: &Scanner,
    regions: &[Vec<u8>],
    positions: &mut [PageTable],
) -> Vec<(usize, Vec<u8>, bool)> {
    scan_source(scanner, &Memory { regions, here: true }, positions)
}

fn scan_source(
    scanner: &Scanner,
    source: &Memory<'_>,
    positions: &mut [PageTable],
) -> Vec<(usize, Vec<u8>, bool)> {
    let mut targets: Vec<Target<'_>> = positions.iter_mut().map(target).collect();
    let mut seen = Seen::of(scanner);
    scanner.scan(source, &mut targets, &mut seen).unwrap();
    seen.pages
}

/// Notes what is handed over.
struct Seen<'a> {
    scanner: &'a Scanner,
    pages: Vec<(usize, Vec<u8>, bool)>,
    numbers: Vec<usize>,
    /// Fails when so many pages have come.
    most: usize,
}

impl<'a> Seen<'a> {
    fn of(scanner: &'a Scanner) -> Self {
        Self { scanner, pages: Vec::new(), numbers: Vec::new(), most: usize::MAX }
    }
}

impl Consume for Seen<'_> {
    type Error = ();

    fn changed(&mut self, page: Changed<'_>) -> Result<PageRef, ()> {
        self.pages.push((page.region, page.bytes.to_vec(), page.zero));
        self.numbers.push(page.page);
        if self.pages.len() < self.most { Ok(PageRef::ZERO) } else { Err(()) }
    }

    fn unseen(
        &mut self,
        region: usize,
        page: usize,
        bytes: &[u8],
        hash: &mut [u8],
    ) -> Result<PageRef, ()> {
        self.scanner.hash_page(bytes, hash);
        self.changed(Changed { region, page, bytes, hash, zero: false })
    }

    fn hashed(&mut self, _: PageAt, _: &[u8]) -> Result<PageRef, ()> {
        Err(())
    }
}

#[test]
fn walking_and_scanning_see_the_same() {
    let bytes: Vec<u8> = (0..70 * PAGE + 5).map(|at| (at / PAGE % 9) as u8).collect();
    let mut positions = [PageTable::default(), PageTable::default(), PageTable::default()];
    let regions = [bytes];
    let walked = scan(&scanner(1), &regions, &mut positions[..1]);
    let scanned = scan(&scanner(3), &regions, &mut positions[1..2]);
    let source = Memory { regions: &regions, here: false };
    let read = scan_source(&scanner(3), &source, &mut positions[2..]);
    assert_eq!((&walked, &walked), (&scanned, &read));
    assert_eq!(positions[0].hashes(), positions[1].hashes());
    assert_eq!(positions[0].hashes(), positions[2].hashes());
    let [walked, ..] = &mut positions;
    let dirty = [1 << 3, 0];
    let mut changed = regions[0].clone();
    changed[3 * PAGE] = 99;
    changed[5 * PAGE] = 99;
    let target = Target { positions: walked, dirty: Some(&dirty), trust_dirty: false };
    let one = scanner(1);
    let mut seen = Seen::of(&one);
    let source = Memory { regions: &[changed], here: true };
    one.scan(&source, &mut [target], &mut seen).unwrap();
    assert_eq!(seen.pages.len(), 1, "5 was said to be clean");
}

/// One region of which only the pages that may be dirty are there.
struct Packed(Vec<u8>, usize);

impl PageSource for Packed {
    type Error = ();

    fn reach(&self, region: usize) -> Option<Reach<'_>> {
        (region == 0).then_some(Reach::Packed(&self.0, self.1))
    }

    fn bring(&self, _: &[PageAt], _: bool, _: &mut crate::Take<'_, ()>) -> Result<(), ()> {
        Ok(())
    }
}

#[test]
fn packed_pages_are_seen_as_the_whole_region_would_be() {
    let mut memory: Vec<u8> = (0..200 * PAGE + 100).map(|at| (at / 7) as u8).collect();
    let regions = |memory: &[u8]| vec![memory.to_vec()];
    for threads in [1, 3] {
        let scanner = scanner(threads);
        let (mut whole, mut packed) = (vec![PageTable::default()], vec![PageTable::default()]);
        scan(&scanner, &regions(&memory), &mut whole);
        scan(&scanner, &regions(&memory), &mut packed);
        // Written is not changed: the last two are marked only.
        let mut bits = vec![0u64; 4];
        for (page, written) in [(0, 1), (63, 2), (64, 3), (130, 0), (200, 0)] {
            bits[page / 64] |= 1 << (page % 64);
            memory[page * PAGE] = memory[page * PAGE].wrapping_add(written);
        }
        let marked = |page: usize| bits[page / 64] >> (page % 64) & 1 == 1;
        let pages = memory.chunks(PAGE).enumerate().filter(|(page, _)| marked(*page));
        let source = Packed(pages.flat_map(|(_, bytes)| bytes).copied().collect(), memory.len());
        let mut target = [Target { dirty: Some(&bits), ..target(&mut packed[0]) }];
        let mut seen = Seen::of(&scanner);
        scanner.scan(&source, &mut target, &mut seen).unwrap();
        assert_eq!(seen.pages, scan(&scanner, &regions(&memory), &mut whole), "{threads} threads");
        assert_eq!(seen.pages.len(), 3);
        assert_eq!(packed[0].hashes(), whole[0].hashes());
    }
}

#[test]
fn a_failing_consumer_leaves_nothing_known() {
    let bytes = vec![1; 100 * PAGE];
    let mut positions = PageTable::default();
    let two = scanner(2);
    let mut failing = Seen { most: 10, ..Seen::of(&two) };
    let source = Memory { regions: std::slice::from_ref(&bytes), here: true };
    assert_eq!(two.scan(&source, &mut [target(&mut positions)], &mut failing), Err(()));
    let seen = scan(&scanner(1), &[bytes], std::slice::from_mut(&mut positions));
    assert_eq!(seen.len(), 100, "everything is handed over again");
}

#[test]
fn only_dirty_and_unseen_pages_are_looked_at() {
    let mut bytes = vec![1; 100 * PAGE];
    let mut positions = PageTable::default();
    scan(&scanner(2), std::slice::from_ref(&bytes), std::slice::from_mut(&mut positions));
    bytes.resize(102 * PAGE, 2);
    bytes[3 * PAGE] = 7;
    bytes[70 * PAGE] = 7;
    let dirty = [1 << 3 | 1 << 4, 0];
    let target = Target { positions: &mut positions, dirty: Some(&dirty), trust_dirty: false };
    let two = scanner(2);
    let mut seen = Seen::of(&two);
    two.scan(&Memory { regions: &[bytes], here: true }, &mut [target], &mut seen).unwrap();
    let seen = seen.numbers;
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
        let mut positions: Vec<PageTable> = sizes.iter().map(|_| PageTable::default()).collect();
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
