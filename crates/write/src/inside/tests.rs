use super::*;
use crate::{PackSettings, Packer, Pipeline, SegmentReader, SegmentSettings};
use standfast_format::{HashKind, JobId, Rank, SegmentId};
use standfast_reduce::{FilterChoice, PageHasher};
use standfast_store::{MemoryStore, Store};

/// Stores pieces of so many pages; the pages come back from the segment in the order of slots.
fn round_trip(writing: Writing, pieces: &[usize]) {
    let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
    let hasher = PageHasher::new(HashKind::Xxh3, &[7; 32]);
    let settings = PackSettings {
        pool_bytes: 8 << 14,
        block_bytes: 1 << 14,
        page_bytes: 4096,
        pipeline: Pipeline::Pipelined,
        threads: 1,
        codec: "none".parse().unwrap(),
        filter: FilterChoice::Auto,
    };
    let packer = Packer::new(Arc::clone(&store), settings, hasher.clone());
    let segments = SegmentSettings {
        job: JobId([1; 16]),
        rank: Rank(0),
        hash: HashKind::Xxh3,
        page_bytes: 4096,
        created_ns: 0,
    };
    let mut batch = packer.begin_as(segments, writing);
    batch.open_segment(SegmentId([2; 16]), None);
    let mut number = 0u8;
    for piece in pieces {
        for _ in 0..*piece {
            number = number.wrapping_add(1);
            let (page, mut hash) = ([number; 4096], [0; 16]);
            hasher.hash(&page, &mut hash);
            batch.push(&page, &hash, 0).unwrap();
        }
        batch.end_piece().unwrap();
    }
    batch.close_segment().unwrap();
    let sealed = batch.finish().seal().unwrap();
    let reader = SegmentReader::open(&*store, JobId([1; 16]), &sealed[0].reference).unwrap();
    let mut number = 0u8;
    for block in &reader.index().blocks {
        let mut bytes = vec![0; block.stored_bytes as usize];
        reader.read_at(block.offset, &mut bytes).unwrap();
        for page in bytes.chunks(4096) {
            number = number.wrapping_add(1);
            assert!(page.iter().all(|byte| *byte == number), "page {number}");
        }
    }
    assert_eq!(usize::from(number), pieces.iter().sum::<usize>() % 256);
}

#[test]
fn pieces_of_every_size_come_back() {
    let pieces = [1, 1, 3, 40, 1, 8, 2, 17, 1, 30];
    round_trip(Writing::Direct, &pieces);
    for threshold_bytes in [4096, 1 << 15, 1 << 30] {
        round_trip(Writing::Wag { threshold_bytes }, &pieces);
    }
    round_trip(Writing::Behind, &pieces);
}
