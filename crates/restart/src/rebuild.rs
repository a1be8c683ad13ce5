//! Rebuilding: the pages of an image are read, verified and handed to a sink by several threads.
//!
//! ```text
//! open:    image -> segment readers -> the runs' hashes against the image's references by hash, and
//!          against its digest, per region
//! rebuild: plan -> extents -> [threads: read, decode, hash every page] -> sink
//! ```
//! Why more threads than cores: each alternates between waiting for the disk and hashing.
//!
//! Segments of other ranks may be left to them: then their hashes are asked for before anything is
//! proven, and their pages are handed over as they arrive ([`Remote`]).
//!
//! Invariants:
//! - A sink receives only pages whose hash is the one in the index, and the index's hashes are
//!   those the image was committed with: corruption is found, never returned.
//! - Memory: one extent and one decoded block per thread, whatever the image's size.

mod stream;

use std::convert::Infallible;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};

use standfast_checkpoint::Unreadable;
use standfast_format::{
    HASH_BYTES_MAX, Image, Referred, RegionImage, Run, SegmentId, SegmentRef, StoreHeader,
};
use standfast_reduce::{BlockDecoder, PageHasher};
use standfast_store::Store;
use standfast_sys::AlignedBuf;
use standfast_write::{Error as PackError, SegmentReader};

use crate::error::{Error, Result};
use crate::plan::{EXTENT_BYTES_MAX, Extent, Piece, plan, plan_all};
use crate::remote::{Remote, Slots, wanted_of};
use crate::sink::Sink;

pub use stream::{Stranded, Stream};

/// Direct I/O wants offsets and lengths in multiples of this.
const ALIGN: u64 = 4096;

/// Hashes of zero pages that go into a digest by one call.
const ZEROS_AT_ONCE: usize = 4096;

/// What rebuilding or its sink failed with.
#[derive(Debug)]
pub enum Failed<E> {
    /// The checkpoint could not be read.
    Source(Error),
    /// The sink could not take the pages.
    Sink(E),
}

impl<E> From<Error> for Failed<E> {
    fn from(error: Error) -> Self {
        Failed::Source(error)
    }
}

impl From<Failed<Infallible>> for Error {
    fn from(failed: Failed<Infallible>) -> Self {
        match failed {
            Failed::Source(error) => error,
            Failed::Sink(never) => match never {},
        }
    }
}

/// An image whose segments are open and whose references are proven.
pub struct Rebuild {
    pub(crate) image: Image,
    /// `None`: its pages come from another rank.
    readers: Vec<Option<SegmentReader>>,
    remote: Remote,
    hasher: PageHasher,
    threads: usize,
}

impl Rebuild {
    /// Opens every segment the image needs and proves that its runs lead to the pages that were
    /// captured. Reads no page yet.
    pub fn open(
        store: &dyn Store,
        header: &StoreHeader,
        image: Image,
        threads: usize,
    ) -> Result<Self> {
        Self::open_sharing(header, image, threads, |_| Some(store))?.prove(Vec::new())
    }

    /// Opens the segments that have a store to be read from. What the image wants of the others is
    /// remote: it must be asked for elsewhere.
    pub fn open_sharing<'a>(
        header: &StoreHeader,
        image: Image,
        threads: usize,
        store_of: impl Fn(&SegmentRef) -> Option<&'a dyn Store>,
    ) -> Result<Unproven> {
        let hasher = PageHasher::new(image.hash, &header.key);
        let readers = image
            .segments
            .iter()
            .map(|wanted| match store_of(wanted) {
                None => Ok(None),
                Some(store) => open_segment(store, header, &image, wanted).map(Some),
            })
            .collect::<Result<Vec<_>>>()?;
        let wanted = wanted_of(&image, |segment| readers[segment as usize].is_none());
        let remote = Remote::new(wanted, hasher.bytes());
        Ok(Unproven(Self { image, readers, remote, hasher, threads: threads.max(1) }))
    }

    /// Takes pages of other ranks' segments, from this one of the wanted pages on: verifies them
    /// and hands them to a sink, neighbours that stay neighbours together.
    pub fn take_remote<S: Sink>(
        &self,
        sink: &S,
        wanted: impl Fn(usize) -> bool,
        from: usize,
        bytes: &[u8],
    ) -> std::result::Result<(), Failed<S::Error>> {
        let page_bytes = self.image.page_bytes as usize;
        let mut hash = [0; HASH_BYTES_MAX];
        let hash = &mut hash[..self.hasher.bytes()];
        for (page, at) in bytes.chunks_exact(page_bytes).zip(from..) {
            self.hasher.hash(page, hash);
            if *hash != *self.remote.hash(at) {
                let (segment, slot) = self.remote.slot(at);
                let segment = self.image.segments[segment as usize].id;
                return Err(Error::Page { segment, slot }.into());
            }
        }
        let pages = bytes.len() / page_bytes;
        let mut done = 0;
        while done < pages {
            let together = self.remote.neighbours(from + done, pages - done);
            let bytes = &bytes[done * page_bytes..][..together * page_bytes];
            for (region, page_at) in self.remote.destinations(from + done) {
                if wanted(region) {
                    let offset = (page_at * page_bytes) as u64;
                    sink.pages(region, offset, bytes).map_err(Failed::Sink)?;
                }
            }
            done += together;
        }
        Ok(())
    }

    /// The image.
    pub fn image(&self) -> &Image {
        &self.image
    }

    /// The pages of a region in order: where each is stored (`None`: it is zero) and its hash.
    pub fn pages<'a>(
        &'a self,
        region: &'a RegionImage,
        zero_hash: &'a [u8],
    ) -> impl Iterator<Item = (Option<(SegmentId, u32)>, &'a [u8])> {
        region.runs.iter().flat_map(move |run| {
            let (pages, stored) = match *run {
                Run::Zero { pages } => (pages, None),
                Run::Stored { pages, segment, slot } => (pages, Some((segment, slot))),
            };
            (0..pages).map(move |at| match stored {
                None => (None, zero_hash),
                Some((segment, slot)) => {
                    let id = self.image.segments[segment as usize].id;
                    (Some((id, slot + at)), self.hash_of(segment, slot + at))
                }
            })
        })
    }

    /// The hash of a page of zeros.
    pub fn zero_hash(&self) -> Vec<u8> {
        let mut hash = vec![0; self.hasher.bytes()];
        self.hasher.hash(&vec![0; self.image.page_bytes as usize], &mut hash);
        hash
    }

    /// Rebuilds the wanted regions into a sink; `done` counts the bytes that have arrived.
    pub fn rebuild<S: Sink>(
        &self,
        sink: &S,
        wanted: impl Fn(usize) -> bool,
        done: &AtomicU64,
    ) -> std::result::Result<(), Failed<S::Error>> {
        let extents = plan(&self.image, &self.readers, &wanted);
        let page_bytes = u64::from(self.image.page_bytes);
        work(self.threads, &extents, |extent, worker: &mut Worker| {
            let reader = self.readers[extent.segment as usize].as_ref().expect("planned");
            worker.read(reader, extent)?;
            worker.decode(reader, extent, &self.hasher, |piece, _, bytes| {
                let offset = u64::from(piece.page) * page_bytes;
                sink.pages(piece.region as usize, offset, bytes).map_err(Failed::Sink)?;
                done.fetch_add(bytes.len() as u64, Ordering::Relaxed);
                Ok::<(), Failed<S::Error>>(())
            })
        })?;
        for (number, region) in self.image.regions.iter().enumerate() {
            if wanted(number) {
                self.zeros(number, region, sink, done)?;
            }
        }
        Ok(())
    }

    fn zeros<S: Sink>(
        &self,
        number: usize,
        region: &RegionImage,
        sink: &S,
        done: &AtomicU64,
    ) -> std::result::Result<(), Failed<S::Error>> {
        let page_bytes = u64::from(self.image.page_bytes);
        let mut page = 0;
        for run in &region.runs {
            if let Run::Zero { pages } = *run {
                let (offset, bytes) = (page * page_bytes, u64::from(pages) * page_bytes);
                sink.zeros(number, offset, bytes).map_err(Failed::Sink)?;
                done.fetch_add(bytes, Ordering::Relaxed);
            }
            page += u64::from(run.pages());
        }
        Ok(())
    }

    /// The hashes of all slots of an open segment.
    pub(crate) fn hashes_of(&self, segment: u32) -> &[u8] {
        let reader = self.readers[segment as usize].as_ref().expect("it is open");
        &reader.index().hashes
    }

    fn hash_of(&self, segment: u32, slot: u32) -> &[u8] {
        self.hashes_from(segment, slot, 1)
    }

    /// The hashes of consecutive slots that a run leads to, end to end.
    fn hashes_from(&self, segment: u32, slot: u32, pages: u32) -> &[u8] {
        let bytes = self.hasher.bytes();
        // Neighbouring slots are neighbours among the wanted ones, too.
        let (hashes, first) = match &self.readers[segment as usize] {
            Some(reader) => (&reader.index().hashes, slot as usize),
            None => (self.remote.hashes(), self.remote.find(segment, slot)),
        };
        &hashes[first * bytes..][..pages as usize * bytes]
    }

    /// Proves that the owners hold the pages that the image refers to by their hashes.
    fn prove_references(&self) -> Result<()> {
        self.image.referred().try_for_each(|piece| match self.first_other(&piece) {
            None => Ok(()),
            Some(page) => Err(Error::Reference {
                version: self.image.version,
                rank: self.image.rank,
                region: self.image.regions[piece.reference.region as usize].name.clone(),
                page,
                owner: piece.reference.owner,
            }),
        })
    }

    /// The first page of a piece that is another one where its run leads.
    fn first_other(&self, piece: &Referred<'_>) -> Option<u64> {
        let Run::Stored { pages, segment, slot } = piece.run else { return Some(piece.page) };
        let found = self.hashes_from(segment, slot, pages);
        if found == piece.hashes {
            return None;
        }
        let bytes = self.hasher.bytes();
        let mut pairs = found.chunks_exact(bytes).zip(piece.hashes.chunks_exact(bytes));
        let at = pairs.position(|(found, referred)| found != referred)?;
        Some(piece.page + at as u64)
    }

    /// Proves that the runs of a region lead to pages with the hashes that were captured.
    fn prove(&self, region: &RegionImage) -> Result<()> {
        // Many at once: an image may claim billions of zero pages.
        let zeros = self.zero_hash().repeat(ZEROS_AT_ONCE);
        let mut digest = blake3::Hasher::new();
        for run in &region.runs {
            match *run {
                Run::Zero { pages } => {
                    let mut left = pages as usize;
                    while left > 0 {
                        let now = left.min(ZEROS_AT_ONCE);
                        digest.update(&zeros[..now * self.hasher.bytes()]);
                        left -= now;
                    }
                }
                Run::Stored { pages, segment, slot } => {
                    digest.update(self.hashes_from(segment, slot, pages));
                }
            }
        }
        if *digest.finalize().as_bytes() != region.pages_digest.0 {
            return Err(Unreadable::Mismatch {
                object: format!("checkpoint {}, region {:?}", self.image.version, region.name),
                why: "its references do not lead to the pages that were captured",
            }
            .into());
        }
        Ok(())
    }
}

/// A [`Rebuild`] of which nothing is proven yet.
pub struct Unproven(Rebuild);

impl Unproven {
    /// The image.
    pub fn image(&self) -> &Image {
        &self.0.image
    }

    /// The pages that must come from elsewhere, in the order in which they are wanted.
    pub fn wanted(&self) -> &[Slots] {
        self.0.remote.wanted()
    }

    /// Proves that all references lead to the pages that were captured, given the hashes of those
    /// that come from elsewhere.
    pub fn prove(mut self, remote_hashes: Vec<u8>) -> Result<Rebuild> {
        if !self.0.remote.take_hashes(remote_hashes) {
            return Err(Unreadable::Mismatch {
                object: format!("checkpoint {}", self.0.image.version),
                why: "the hashes of other ranks' pages are not as many as were asked for",
            }
            .into());
        }
        // First, for it tells the page.
        self.0.prove_references()?;
        for region in &self.0.image.regions {
            self.0.prove(region)?;
        }
        Ok(self.0)
    }
}

fn open_segment(
    store: &dyn Store,
    header: &StoreHeader,
    image: &Image,
    wanted: &SegmentRef,
) -> Result<SegmentReader> {
    let reader = SegmentReader::open(store, header.id, wanted)?;
    if reader.index().hash != image.hash || reader.index().page_bytes != image.page_bytes {
        return Err(PackError::Mismatch {
            id: wanted.id,
            why: "its hash or page size is not that of the image",
        }
        .into());
    }
    Ok(reader)
}

/// Reads every block of a segment and checks every page; calls `damaged` for each finding and
/// goes on.
pub fn check_segment(
    reader: &SegmentReader,
    header: &StoreHeader,
    threads: usize,
    done: &AtomicU64,
    damaged: impl Fn(Error) + Sync,
) {
    let hasher = PageHasher::new(reader.index().hash, &header.key);
    let extents = plan_all(reader);
    let Ok(()) = work(threads.max(1), &extents, |extent, worker: &mut Worker| {
        // A stretch that cannot be read at once is tried block by block: one bad sector must
        // not hide what else is good or bad.
        let whole = worker.read(reader, extent);
        for piece in &extent.pieces {
            let one = one_block(reader, *piece);
            let outcome = match &whole {
                Ok(()) => Ok(()),
                Err(_) => worker.read(reader, &one),
            };
            let outcome = outcome
                .and_then(|()| worker.decode(reader, &one, &hasher, |_, _, _| Ok::<(), Error>(())));
            if let Err(error) = outcome {
                damaged(error);
            }
        }
        done.fetch_add(extent.bytes, Ordering::Relaxed);
        Ok::<(), Infallible>(())
    });
}

/// A block as it is stored, and what it holds, every page verified.
pub struct WholeBlock<'a> {
    /// Its number.
    pub number: u32,
    /// Its stored bytes.
    pub stored: &'a [u8],
    /// Its pages.
    pub raw: &'a [u8],
}

/// Hands every block of a segment to several threads, each with a state of its own. `before` is
/// called before each stretch of the file is read. The first failure ends it.
pub fn each_block<S, E: From<Error> + Send>(
    reader: &SegmentReader,
    header: &StoreHeader,
    threads: usize,
    state: impl Fn() -> S + Sync,
    before: impl Fn() -> std::result::Result<(), E> + Sync,
    each: impl Fn(&mut S, WholeBlock<'_>) -> std::result::Result<(), E> + Sync,
) -> std::result::Result<(), E> {
    let hasher = PageHasher::new(reader.index().hash, &header.key);
    let extents = plan_all(reader);
    work(threads.max(1), &extents, |extent, own: &mut (Worker, Option<S>)| {
        before()?;
        let (worker, own) = own;
        let own = own.get_or_insert_with(&state);
        worker.read(reader, extent)?;
        worker.decode(reader, extent, &hasher, |piece, stored, raw| {
            each(own, WholeBlock { number: piece.block, stored, raw })
        })
    })
}

fn one_block(reader: &SegmentReader, piece: Piece) -> Extent {
    let block = reader.block(piece.block);
    Extent {
        segment: 0,
        offset: block.offset,
        bytes: u64::from(block.stored_bytes),
        pieces: vec![piece],
    }
}

/// What one thread needs: a stretch of the file and a decoded block.
#[derive(Default)]
struct Worker {
    buf: Option<AlignedBuf>,
    /// File offset of the buffer's first byte.
    start: u64,
    /// With the largest block it can take.
    decoder: Option<(usize, BlockDecoder)>,
}

impl Worker {
    fn read(&mut self, reader: &SegmentReader, extent: &Extent) -> Result<()> {
        let start = extent.offset / ALIGN * ALIGN;
        let end = (extent.offset + extent.bytes).next_multiple_of(ALIGN).min(reader.file_bytes());
        let bytes = (end - start) as usize;
        if self.buf.as_ref().is_none_or(|buf| buf.len() < bytes) {
            let usual = (EXTENT_BYTES_MAX + 2 * ALIGN) as usize;
            // Small checkpoints need no large buffer: its first use would cost more than they do.
            self.buf = Some(AlignedBuf::with_len(bytes.next_power_of_two().min(usual).max(bytes)));
        }
        self.start = start;
        let buf = self.buf.as_mut().expect("just made");
        Ok(reader.read_at(start, &mut buf[..bytes])?)
    }

    fn decode<E: From<Error>>(
        &mut self,
        reader: &SegmentReader,
        extent: &Extent,
        hasher: &PageHasher,
        mut take: impl FnMut(&Piece, &[u8], &[u8]) -> std::result::Result<(), E>,
    ) -> std::result::Result<(), E> {
        let page_bytes = reader.index().page_bytes as usize;
        let buf = self.buf.as_ref().expect("an extent was read");
        let raw_bytes_max = reader.raw_bytes_max();
        let decoder = match &mut self.decoder {
            Some((bytes, decoder)) if *bytes >= raw_bytes_max => decoder,
            place => &mut place.insert((raw_bytes_max, BlockDecoder::new(raw_bytes_max))).1,
        };
        for pieces in extent.pieces.chunk_by(|a, b| a.block == b.block) {
            let number = pieces[0].block;
            let block = reader.block(number);
            let from = (block.offset - self.start) as usize;
            let stored = &buf[from..from + block.stored_bytes as usize];
            let raw_bytes = block.pages as usize * page_bytes;
            let raw = decoder
                .decode(block.codec, block.filter, stored, raw_bytes)
                .map_err(|error| damaged_block(reader, number, &error))?;
            if raw.len() != raw_bytes {
                return Err(damaged_block(reader, number, &"it has the wrong length").into());
            }
            for piece in pieces {
                let from = piece.first as usize * page_bytes;
                let bytes = &raw[from..from + piece.pages as usize * page_bytes];
                verify(reader, hasher, reader.first_slot(number) + piece.first, bytes)?;
                take(piece, stored, bytes)?;
            }
        }
        Ok(())
    }
}

fn damaged_block(reader: &SegmentReader, block: u32, why: &dyn std::fmt::Display) -> Error {
    PackError::Block { id: reader.index().id, block, why: why.to_string() }.into()
}

/// Checks the hash of every page.
fn verify(reader: &SegmentReader, hasher: &PageHasher, slot: u32, bytes: &[u8]) -> Result<()> {
    let index = reader.index();
    let mut hash = [0; HASH_BYTES_MAX];
    let hash = &mut hash[..hasher.bytes()];
    for (page, slot) in bytes.chunks_exact(index.page_bytes as usize).zip(slot..) {
        hasher.hash(page, hash);
        if *hash != *index.hash_of(slot) {
            return Err(Error::Page { segment: index.id, slot });
        }
    }
    Ok(())
}

/// Lets several threads work through the extents; the first failure stops them all.
fn work<W: Default, E: Send>(
    threads: usize,
    extents: &[Extent],
    each: impl Fn(&Extent, &mut W) -> std::result::Result<(), E> + Sync,
) -> std::result::Result<(), E> {
    let next = AtomicUsize::new(0);
    let stop = AtomicBool::new(false);
    let failure = Mutex::new(None);
    let run = || {
        let mut own = W::default();
        while !stop.load(Ordering::Relaxed) {
            let Some(extent) = extents.get(next.fetch_add(1, Ordering::Relaxed)) else { return };
            if let Err(error) = each(extent, &mut own) {
                stop.store(true, Ordering::Relaxed);
                failure.lock().expect("nobody panics with it").get_or_insert(error);
            }
        }
    };
    std::thread::scope(|scope| {
        for _ in 1..threads.min(extents.len()) {
            standfast_sys::help(scope, run);
        }
        run();
    });
    match failure.into_inner().expect("nobody panics with it") {
        Some(error) => Err(error),
        None => Ok(()),
    }
}
