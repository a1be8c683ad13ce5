//! Every mode of the pipeline stores the same pages, in order, whatever it compresses them with.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use standfast_format::{FilterKind, HashKind, JobId, Kind, Rank, SegmentId, name};
use standfast_reduce::{BlockDecoder, FilterChoice, PageHasher};
use standfast_store::{
    DirStore, Lock, LockGuard, MemoryStore, ObjectMeta, ObjectReader, ObjectWriter, Options, Store,
};
use standfast_testkit::{Fault, FaultyStore, Op};
use standfast_write::{
    Error, PackSettings, Packer, Pipeline, SealedSegment, SegmentReader, SegmentSettings,
};

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
    let mut batch = packer.begin(segments);
    batch.open_segment(SegmentId([2; 16]), None);
    for page in pages {
        let mut hash = [0; 16];
        batch.stage(page, 0, &mut hash)?;
        batch.keep_staged()?;
    }
    batch.close_segment()?;
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
                    assert_eq!(packer.units_in_use(), 0, "{words}");
                    // The next one has the same name, which must be new.
                    store.remove(&name::segment(sealed[0].reference.id)).unwrap();
                }
            }
        }
    }
}

#[test]
fn every_codec_takes_every_filter_with_any_number_of_threads() {
    let pages = pages(400);
    let expected = pages.concat();
    for threads in [1, 3, 7] {
        for codec in ["lz4", "zstd:1", "deflate:1", "auto"] {
            for filter in FilterKind::ALL {
                let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
                let settings = PackSettings {
                    threads,
                    filter: FilterChoice::Fixed(*filter),
                    ..settings(Pipeline::Pipelined, codec, 8 << 10)
                };
                let packer = Packer::new(Arc::clone(&store), settings, hasher());
                let sealed = pack(&packer, &pages).unwrap();
                assert!(read_back(&*store, &sealed[0]) == expected, "{threads} {codec} {filter:?}");
            }
        }
    }
}

/// Text that takes long to compress in every second block, noise in the others: with several
/// threads the noise behind a text is in the file first, and the index has the order.
#[test]
fn a_slow_block_holds_up_nobody() {
    const BLOCK: usize = 256 << 10;
    let all = pages(128);
    let (noise, text) = (&all[..64], &all[64..128]);
    let per_block = BLOCK / PAGE;
    let block = |at: usize| if at.is_multiple_of(2) { text } else { noise };
    let pages: Vec<Vec<u8>> = (0..24)
        .flat_map(|at| block(at).iter().cycle().take(per_block))
        .enumerate()
        .map(|(number, page)| {
            let mut page = page.clone();
            page[..8].copy_from_slice(&(number as u64).to_le_bytes());
            page
        })
        .collect();
    let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
    let settings = PackSettings {
        threads: 4,
        filter: FilterChoice::Auto,
        ..settings(Pipeline::Pipelined, "zstd:19", BLOCK)
    };
    let packer = Packer::new(Arc::clone(&store), settings, hasher());
    let sealed = pack(&packer, &pages).unwrap();
    let reader = SegmentReader::open(&*store, JOB, &sealed[0].reference).unwrap();
    let blocks = &reader.index().blocks;
    assert!(!blocks.is_sorted_by_key(|block| block.offset), "nobody overtook a slow block");
    assert!(read_back(&*store, &sealed[0]) == pages.concat());
}

/// Counts what is appended and not yet waited for.
#[derive(Debug, Default)]
struct Watched {
    inner: MemoryStore,
    unsettled: Arc<AtomicUsize>,
    unsettled_max: Arc<AtomicUsize>,
}

struct WatchedWriter {
    inner: Box<dyn ObjectWriter>,
    unsettled: Arc<AtomicUsize>,
    unsettled_max: Arc<AtomicUsize>,
}

impl ObjectWriter for WatchedWriter {
    fn append(&mut self, bytes: &[u8]) -> standfast_store::Result<()> {
        let count = self.unsettled.fetch_add(1, Ordering::SeqCst) + 1;
        self.unsettled_max.fetch_max(count, Ordering::SeqCst);
        self.inner.append(bytes)
    }

    fn written(&self) -> u64 {
        self.inner.written()
    }

    fn settle(&mut self) -> standfast_store::Result<()> {
        self.unsettled.store(0, Ordering::SeqCst);
        self.inner.settle()
    }

    fn seal(self: Box<Self>) -> standfast_store::Result<u64> {
        self.inner.seal()
    }
}

impl Store for Watched {
    fn describe(&self) -> String {
        "watched:".into()
    }

    fn create(
        &self,
        name: &str,
        size_hint: Option<u64>,
    ) -> standfast_store::Result<Box<dyn ObjectWriter>> {
        let inner = self.inner.create(name, size_hint)?;
        let (unsettled, unsettled_max) = (self.unsettled.clone(), self.unsettled_max.clone());
        Ok(Box::new(WatchedWriter { inner, unsettled, unsettled_max }))
    }

    fn put(&self, name: &str, bytes: &[u8]) -> standfast_store::Result<()> {
        self.inner.put(name, bytes)
    }

    fn put_new(&self, name: &str, bytes: &[u8]) -> standfast_store::Result<()> {
        self.inner.put_new(name, bytes)
    }

    fn open(&self, name: &str) -> standfast_store::Result<Box<dyn ObjectReader>> {
        self.inner.open(name)
    }

    fn list(&self, prefix: &str) -> standfast_store::Result<Vec<ObjectMeta>> {
        self.inner.list(prefix)
    }

    fn remove(&self, name: &str) -> standfast_store::Result<()> {
        self.inner.remove(name)
    }

    fn discard_unsealed(&self) -> standfast_store::Result<u64> {
        self.inner.discard_unsealed()
    }

    fn lock(&self, lock: Lock) -> standfast_store::Result<LockGuard> {
        self.inner.lock(lock)
    }

    fn free_bytes(&self) -> standfast_store::Result<Option<u64>> {
        self.inner.free_bytes()
    }
}

#[test]
fn in_turn_nothing_is_compressed_while_something_is_stored() {
    let in_flight = |pipeline| {
        let store = Watched::default();
        let most = Arc::clone(&store.unsettled_max);
        let packer = Packer::new(Arc::new(store), settings(pipeline, "lz4", 16 << 10), hasher());
        pack(&packer, &pages(640)).unwrap();
        most.load(Ordering::SeqCst)
    };
    // The header goes with the first block, the footer with the index.
    assert_eq!(in_flight(Pipeline::Serial), 2);
    assert!(in_flight(Pipeline::Pipelined) > 2);
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
