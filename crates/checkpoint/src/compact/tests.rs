use std::collections::{BTreeMap, BTreeSet, VecDeque};

use super::*;

fn id(number: u64) -> SegmentId {
    let mut bytes = [0; 16];
    bytes[..8].copy_from_slice(&number.to_le_bytes());
    SegmentId(bytes)
}

/// A rank's memory and store, as far as compaction sees them.
struct Store {
    /// The segment of each page.
    pages: Vec<u64>,
    slots: BTreeMap<u64, u32>,
    /// What the kept checkpoints refer to.
    kept: VecDeque<BTreeSet<u64>>,
    next: u64,
    /// Pages stored, beyond those that changed.
    again: u64,
}

impl Store {
    const SEGMENT: usize = 256;

    fn new(pages: usize) -> Self {
        let (slots, kept) = (BTreeMap::new(), VecDeque::new());
        let mut store = Self { pages: vec![0; pages], slots, kept, next: 1, again: 0 };
        store.put((0..pages).collect());
        store
    }

    fn put(&mut self, pages: Vec<usize>) {
        for part in pages.chunks(Self::SEGMENT) {
            part.iter().for_each(|page| self.pages[*page] = self.next);
            self.slots.insert(self.next, part.len() as u32);
            self.next += 1;
        }
    }

    fn uses(&self) -> Vec<Use> {
        let mut needed: BTreeMap<u64, u32> = BTreeMap::new();
        self.pages.iter().for_each(|segment| *needed.entry(*segment).or_default() += 1);
        let of = |(segment, needed): (&u64, &u32)| {
            let slots = self.slots[segment];
            Use { id: id(*segment), slots, needed: *needed }
        };
        needed.iter().map(of).collect()
    }

    fn checkpoint(&mut self, changed: &[usize], keep: usize) {
        let uses = self.uses();
        let slots = uses.iter().map(|used| u64::from(used.slots)).sum();
        let due = is_due(uses.len(), slots, self.pages.len() as u64);
        let retired: BTreeSet<SegmentId> = retire(&uses).into_iter().collect();
        assert!(due || retired.is_empty(), "nothing is retired that is not due");
        let mut stored: BTreeSet<usize> = changed.iter().copied().collect();
        let before = stored.len();
        let old = (0..self.pages.len()).filter(|page| retired.contains(&id(self.pages[*page])));
        stored.extend(old);
        self.again += (stored.len() - before) as u64;
        let mut stored: Vec<usize> = stored.into_iter().collect();
        stored.sort_unstable();
        self.put(stored);
        self.kept.push_back(self.pages.iter().copied().collect());
        if self.kept.len() > keep {
            self.kept.pop_front();
        }
    }

    fn files(&self) -> BTreeSet<u64> {
        self.kept.iter().flatten().copied().collect()
    }
}

#[test]
fn a_store_of_many_checkpoints_stays_small() {
    let (pages, changed, keep, rounds) = (4 << 10, 10, 8, 600);
    let mut store = Store::new(pages);
    let mut random = 1u64;
    let mut draw = || {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (random >> 33) as usize % pages
    };
    for _ in 0..rounds {
        let changes: Vec<usize> = (0..changed).map(|_| draw()).collect();
        store.checkpoint(&changes, keep);
        let files = store.files();
        let slots: u64 = files.iter().map(|file| u64::from(store.slots[file])).sum();
        assert!(slots as f64 <= 1.3 * pages as f64, "{slots} slots for {pages} pages");
        assert!(files.len() <= 64, "{} segments", files.len());
    }
    assert!(store.again < 6 * rounds * changed as u64, "{} pages stored again", store.again);
}

#[test]
fn what_is_dense_and_few_is_left_alone() {
    let dense: Vec<Use> =
        (0..40).map(|at| Use { id: id(at), slots: 1000, needed: 990 - at as u32 }).collect();
    assert_eq!(retire(&dense), []);
    assert_eq!(retire(&[]), []);
    assert_eq!(retire(&[Use { id: id(1), slots: 0, needed: 0 }]), []);
}

#[test]
fn the_emptiest_go_first_and_a_step_is_bounded() {
    let mut uses: Vec<Use> =
        (0..20).map(|at| Use { id: id(at), slots: 1000, needed: 800 }).collect();
    uses.push(Use { id: id(100), slots: 1000, needed: 10 });
    uses.push(Use { id: id(101), slots: 1000, needed: 200 });
    assert_eq!(retire(&uses), [id(100), id(101)]);
    // Where the first alone goes beyond a step it goes alone.
    uses.truncate(20);
    assert_eq!(retire(&uses).len(), 1);
}

#[test]
fn many_small_segments_are_joined() {
    let small: Vec<Use> = (0..60).map(|at| Use { id: id(at), slots: 8, needed: 8 }).collect();
    assert!(is_due(small.len(), 480, 480));
    let retired = retire(&small).len();
    assert!(retired >= 2, "{retired} joined");
}
