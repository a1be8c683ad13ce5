//! Every mode of the pipeline stores the same pages, in order, whatever it compresses them with.

use std::sync::Arc;

use standfast_format::{HashKind, JobId, Kind, Rank, SegmentId};
use standfast_pack::{
    Error, PackSettings, Packer, Pipeline, SealedSegment, SegmentReader, SegmentSettings,
};
use standfast_reduce::{BlockDecoder, FilterChoice, PageHasher};
use standfast_store::{DirStore, MemoryStore, Options, Store};
use standfast_testkit::{Fault, FaultyStore, Op};

const PAGE: usize = 1024;
const JOB: JobId = JobId([1; 16]);

fn hasher() -> PageHasher {
    PageHasher::new(HashKind::Xxh3, &[7; 32])
}

fn settings(pipeline: Pipeline, codec: &str, block_bytes: usize) -> PackSettings {
    PackSettings {
        pool_bytes: 16 * block_bytes,
        block_bytes,
        page_bytes: PAGE,
        pipeline,
        threads: 2,
        codec: codec.parse().unwrap(),
        filter: FilterChoice::Auto,
    }
}

/// Pages of all sorts: noise, text, numbers.
fn pages(count: usize) -> Vec<Vec<u8>> {
    let mut state = 1_u64;
    let mut next = move || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state
    };
    let page = |at: usize| match at / 64 % 3 {
        0 => (0..PAGE / 8).flat_map(|_| next().to_le_bytes()).collect(),
        1 => {
            format!("page {at} of the text ").into_bytes().into_iter().cycle().take(PAGE).collect()
        }
        _ => (0..PAGE / 8).flat_map(|i| ((at * i) as f64).sqrt().to_le_bytes()).collect(),
    };
    (0..count).map(page).collect()
}

fn pack(packer: &Packer, pages: &[Vec<u8>]) -> Result<Vec<SealedSegment>, Error> {
    let segments = SegmentSettings {
        job: JOB,
        rank: Rank(0),
        hash: HashKind::Xxh3,
        page_bytes: PAGE as u32,
        created_ns: 0,
    };
    let mut hashes = Vec::new();
    let mut batch = packer.begin(segments);
    batch.open_segment(SegmentId([2; 16]), None);
    for page in pages {
        let mut hash = [0; 16];
        batch.stage(page, 0, &mut hash)?;
        batch.keep_staged();
        hashes.extend_from_slice(&hash);
    }
    batch.close_segment(Arc::new(hashes));
    batch.finish().seal()
}

fn read_back(store: &dyn Store, sealed: &SealedSegment) -> Vec<u8> {
    let reader = SegmentReader::open(store, JOB, &sealed.reference).unwrap();
    let mut decoder = BlockDecoder::new(reader.raw_bytes_max());
    let mut all = Vec::new();
    for block in &reader.index().blocks {
        let mut stored = vec![0; block.stored_bytes as usize];
        reader.read_at(block.offset, &mut stored).unwrap();
        let raw_bytes = block.pages as usize * PAGE;
        all.extend_from_slice(
            decoder.decode(block.codec, block.filter, &stored, raw_bytes).unwrap(),
        );
    }
    all
}

#[test]
fn every_mode_and_buffer_size_gives_the_pages_back() {
    let pages = pages(1500);
    let expected = pages.concat();
    for pipeline in [Pipeline::None, Pipeline::Serial, Pipeline::Pipelined] {
        for codec in ["none", "lz4", "zstd:1", "auto"] {
            for block_bytes in [1 << 10, 16 << 10, 1 << 20] {
                let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
                let settings = settings(pipeline, codec, block_bytes);
                let packer = Packer::new(Arc::clone(&store), settings, hasher());
                for _ in 0..2 {
                    let sealed = pack(&packer, &pages).unwrap();
                    let words = format!("{pipeline:?} {codec} {block_bytes}");
                    assert!(read_back(&*store, &sealed[0]) == expected, "{words}");
                    let smaller = sealed[0].compressed_bytes < expected.len() as u64;
                    assert!(!smaller || pipeline != Pipeline::None, "{words}");
                    assert_eq!(packer.occupancy().busy + packer.occupancy().ready, 0, "{words}");
                }
            }
        }
    }
}

#[test]
fn pieces_and_writes_are_counted() {
    let dir = tempfile::tempdir().unwrap();
    let store: Arc<dyn Store> = Arc::new(DirStore::open(dir.path(), &Options::default()).unwrap());
    let packer =
        Packer::new(Arc::clone(&store), settings(Pipeline::Serial, "auto", 16 << 10), hasher());
    let pages = pages(5000);
    let sealed = pack(&packer, &pages).unwrap().remove(0);
    let blocks = pages.len().div_ceil(16) as u64;
    assert_eq!(sealed.pieces.total().count, blocks + 1, "the blocks and the index");
    assert!(sealed.pieces.total().bytes > sealed.compressed_bytes);
    // The last write is padded.
    assert!(sealed.writes.total().bytes >= sealed.reference.file_bytes);
    assert!(sealed.writes.total().count < blocks / 8, "pieces are gathered");
}

#[test]
fn a_store_that_fails_fails_the_checkpoint_in_every_mode() {
    for pipeline in [Pipeline::None, Pipeline::Serial, Pipeline::Pipelined] {
        let store = FaultyStore::new(Arc::new(MemoryStore::new()));
        store.inject(Fault::FailFrom { op: Op::Append, nth: 20, kind: Kind::Full });
        let store: Arc<dyn Store> = Arc::new(store);
        let packer =
            Packer::new(Arc::clone(&store), settings(pipeline, "auto", 16 << 10), hasher());
        assert!(pack(&packer, &pages(1500)).is_err(), "{pipeline:?}");
        assert!(store.list("").unwrap().is_empty(), "{pipeline:?}");
    }
}
