use super::*;
use crate::pool::Pool;
use crate::{PackSettings, Pipeline, SegmentReader};
use standfast_format::{HashKind, JobId};
use standfast_reduce::{BlockDecoder, FilterChoice, PageHasher};
use standfast_store::{MemoryStore, Store};

const PAGE: usize = 4096;

fn start() -> (Arc<dyn Store>, Arc<SegmentCore>, SegmentSettings) {
    let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
    let settings = PackSettings {
        pool_bytes: 1 << 20,
        block_bytes: 4 * PAGE,
        page_bytes: PAGE,
        pipeline: Pipeline::Pipelined,
        threads: 2,
        codec: "lz4".parse().unwrap(),
        filter: FilterChoice::Auto,
    };
    let segments = SegmentSettings {
        job: JobId([1; 16]),
        rank: Rank(0),
        hash: HashKind::Xxh3,
        page_bytes: PAGE as u32,
        created_ns: 0,
    };
    (Arc::clone(&store), SegmentCore::start(store, settings, None, Some(hasher())), segments)
}

fn hasher() -> PageHasher {
    PageHasher::new(HashKind::Xxh3, &[7; 32])
}

fn page(rank: u8, number: u32) -> Vec<u8> {
    let mut page = vec![rank; PAGE];
    page[..4].copy_from_slice(&number.to_le_bytes());
    page
}

fn block(rank: u8, number: u32, first: u32, pages: u32) -> Filled {
    let hasher = hasher();
    let mut unit = Pool::new(1, 4 * PAGE).take();
    let mut hashes = Vec::new();
    for (slot, at) in unit.chunks_mut(PAGE).zip(first..first + pages) {
        slot.copy_from_slice(&page(rank, at));
        let mut hash = [0; 16];
        hasher.hash(slot, &mut hash);
        hashes.extend_from_slice(&hash);
    }
    let (stream, rank) = (SegmentId([rank; 16]), Rank(u32::from(rank)));
    let head = Head { stream, rank, number, pages, elem: 0, hashes, size_hint: None };
    Filled { head, unit }
}

#[test]
fn interleaved_streams_come_back_in_order() {
    let (store, core, segments) = start();
    let batch = core.begin(segments, 2);
    // Three ranks, their blocks mixed and one of them out of order; the third gets a segment
    // of its own.
    for arrived in [
        block(1, 1, 4, 2),
        block(2, 0, 0, 3),
        block(3, 0, 0, 1),
        block(1, 0, 0, 4),
        block(2, 1, 3, 4),
    ] {
        batch.push(arrived).unwrap();
    }
    let sealed = batch.seal().unwrap();
    assert_eq!(sealed.len(), 2);
    let streams: Vec<(u32, u32)> =
        sealed[0].streams.iter().map(|placed| (placed.rank.0, placed.first_slot)).collect();
    assert_eq!(streams, [(1, 0), (2, 6)]);
    assert_eq!(sealed[0].sealed.reference.id, SegmentId([1; 16]));
    assert_eq!(sealed[0].sealed.reference.slots, 13);
    let reader = SegmentReader::open(&*store, segments.job, &sealed[0].sealed.reference).unwrap();
    let mut decoder = BlockDecoder::new(reader.raw_bytes_max());
    let mut pages = Vec::new();
    for block in &reader.index().blocks {
        let mut bytes = vec![0; block.stored_bytes as usize];
        reader.read_at(block.offset, &mut bytes).unwrap();
        let raw_bytes = block.pages as usize * PAGE;
        let raw = decoder.decode(block.codec, block.filter, &bytes, raw_bytes).unwrap();
        pages.extend(raw.chunks(PAGE).map(<[u8]>::to_vec));
    }
    let expected: Vec<Vec<u8>> =
        (0..6).map(|at| page(1, at)).chain((0..7).map(|at| page(2, at))).collect();
    assert!(pages == expected);
}

#[test]
fn contradictions_are_errors_and_leave_nothing() {
    let (store, core, segments) = start();
    let missing = core.begin(segments, 4);
    missing.push(block(1, 1, 0, 1)).unwrap();
    assert!(matches!(missing.seal(), Err(Error::Mismatch { .. })));
    let twice = core.begin(segments, 4);
    twice.push(block(1, 0, 0, 1)).unwrap();
    assert!(matches!(twice.push(block(1, 0, 0, 1)), Err(Error::Mismatch { .. })));
    let changed = |change: fn(&mut Head)| {
        let mut block = block(1, 5, 0, 1);
        change(&mut block.head);
        block
    };
    let stolen = changed(|head| head.rank = Rank(9));
    assert!(matches!(twice.push(stolen), Err(Error::Mismatch { .. })));
    for wrong in [
        changed(|head| head.pages = 0),
        changed(|head| head.pages = 2),
        changed(|head| {
            (head.pages, head.hashes) = (5, vec![0; 5 * 16]);
        }),
        changed(|head| head.pages = u32::MAX),
        changed(|head| head.hashes = vec![0; 15]),
    ] {
        assert!(matches!(twice.push(wrong), Err(Error::Mismatch { .. })));
    }
    drop(twice);
    assert!(store.list("").unwrap().is_empty());
}

#[test]
fn a_page_that_is_not_what_its_hash_says_fails_the_checkpoint() {
    let (store, core, segments) = start();
    let batch = core.begin(segments, 2);
    batch.push(block(1, 0, 0, 4)).unwrap();
    let mut wrong = block(2, 0, 0, 2);
    wrong.head.hashes[20] ^= 1;
    batch.push(wrong).unwrap();
    let error = batch.seal().unwrap_err();
    assert!(error.to_string().contains("not what its hash says"), "{error}");
    assert!(store.list("").unwrap().is_empty(), "nothing of it is there");
}

#[test]
fn a_segment_that_is_there_stays_as_it_is() {
    let (store, core, segments) = start();
    let seal = |pages| {
        let batch = core.begin(segments, 2);
        batch.push(block(1, 0, 0, pages)).unwrap();
        batch.seal()
    };
    let first = seal(4).unwrap();
    let object = standfast_format::name::segment(first[0].sealed.reference.id);
    let before = store.get(&object, 1 << 20).unwrap();
    assert_eq!(seal(2).unwrap_err().kind(), standfast_format::Kind::Busy);
    assert_eq!(store.get(&object, 1 << 20).unwrap(), before);
}
