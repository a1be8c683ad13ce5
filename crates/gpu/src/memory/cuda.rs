//! Memory of an NVIDIA device.
//!
//! A page that is not whole, at the end of a region, is copied to a page of its own first, filled
//! up with zeros: kernels only ever see whole pages.

use standfast_capture::{ChangedPages, Scanned, Which};
use standfast_format::FilterKind;

use super::backend::{Backend, Before, Encoding, Place};
use super::fill::CudaFiller;
use crate::deflate::DeviceDeflate;
use crate::device::{DeviceBuffer, DeviceSlice, Gpu, PinnedBuffer, Stream};
use crate::encoder::DeviceEncoder;
use crate::error::{Error, Result};
use crate::float::DeviceFloat;
use crate::hash::{DIGEST_BYTES, DeviceHasher, MARK_CHANGED, MARK_ZERO, check_page_bytes};
use crate::packed::Packed;
use crate::pages::{self, PageList};

/// A device, with a stream for what the program waits for.
pub struct Cuda {
    gpu: Gpu,
    stream: Stream,
    hasher: DeviceHasher,
}

impl Cuda {
    /// For the job with this key.
    pub fn new(gpu: Gpu, key: &[u8; 32]) -> Result<Self> {
        Ok(Self { stream: gpu.stream_or_shared()?, gpu, hasher: DeviceHasher::new(key) })
    }
}

/// Hashes, marks and lists of a region: 49 bytes a page.
pub struct Tracker {
    place: Place,
    digests: [DeviceBuffer; 2],
    /// Which of the two the last scan has filled.
    last: usize,
    marks: DeviceBuffer,
    changed: PageList,
    zeroed: PageList,
    found: Scanned,
    /// A page that is not whole, filled up.
    tail: Option<DeviceBuffer>,
}

impl Tracker {
    fn whole_pages(&self) -> usize {
        self.place.bytes / self.place.page_bytes
    }

    /// The whole pages of the region.
    fn region(&self) -> DeviceSlice<'_> {
        // SAFETY: whoever registered the region keeps it allocated until it is released.
        unsafe { DeviceSlice::from_raw(self.place.at, self.whole_pages() * self.place.page_bytes) }
    }

    /// Queues copying the page that is not whole.
    fn fill_tail(&self, stream: &Stream) -> Result<()> {
        let Some(tail) = &self.tail else { return Ok(()) };
        let start = self.region().bytes();
        let bytes = self.place.bytes - start;
        // SAFETY: as above.
        let from = unsafe { DeviceSlice::from_raw(self.place.at + start as u64, bytes) };
        stream.fill(tail.slice(), 0)?;
        stream.copy(from, tail.first(bytes))
    }
}

/// Staged pages, and what it takes to prove that they are what was hashed: 49 bytes a page more.
pub struct Arena {
    pages: DeviceBuffer,
    page_bytes: usize,
    list: DeviceBuffer,
    expected: DeviceBuffer,
    found: DeviceBuffer,
    marks: DeviceBuffer,
    differing: PageList,
}

/// One piece on its way: gathered, encoded, brought over, on a stream of its own.
pub struct Lane {
    stream: Stream,
    list_host: PinnedBuffer,
    list: DeviceBuffer,
    input: DeviceBuffer,
    filled: usize,
    encoder: Option<DeviceEncoder>,
    out: Option<DeviceBuffer>,
    host: PinnedBuffer,
}

impl Backend for Cuda {
    type Tracker = Tracker;
    type Arena = Arena;
    type Lane = Lane;
    type Filler = CudaFiller;

    fn finish_program(&self) -> Result<()> {
        self.gpu.finish_all()
    }

    fn read(&self, at: u64, out: &mut [u8]) -> Result<()> {
        // SAFETY: whoever registered the region keeps it allocated until it is released.
        self.stream.download(unsafe { DeviceSlice::from_raw(at, out.len()) }, out)
    }

    fn filler(&self) -> Result<CudaFiller> {
        CudaFiller::new(&self.gpu)
    }

    fn tracker(&self, place: Place) -> Result<Tracker> {
        check_page_bytes(place.page_bytes)?;
        if !place.at.is_multiple_of(16) {
            return Err(Error::invalid(format!("{:#x} is not a multiple of 16", place.at)));
        }
        let pages = place.pages();
        let digests = || self.gpu.allocate("hashes of a region", pages * DIGEST_BYTES);
        let tail = (!place.bytes.is_multiple_of(place.page_bytes))
            .then(|| self.gpu.allocate("the end of a region", place.page_bytes));
        Ok(Tracker {
            place,
            digests: [digests()?, digests()?],
            last: 0,
            marks: self.gpu.allocate("marks of a region", pages)?,
            changed: PageList::new(&self.gpu, pages as u64)?,
            zeroed: PageList::new(&self.gpu, pages as u64)?,
            found: Scanned::default(),
            tail: tail.transpose()?,
        })
    }

    fn scan(&self, tracker: &mut Tracker, before: Before<'_>) -> Result<Scanned> {
        let (stream, page_bytes) = (&self.stream, tracker.place.page_bytes);
        let (pages, whole) = (tracker.place.pages(), tracker.whole_pages());
        let old = tracker.digests[tracker.last].first(pages * DIGEST_BYTES);
        let fresh = tracker.digests[1 - tracker.last].first(pages * DIGEST_BYTES);
        let before = match before {
            Before::Nothing => None,
            Before::Last => Some(old),
            Before::Hashes(hashes) => {
                stream.upload(hashes, old)?;
                Some(old)
            }
        };
        let marks = tracker.marks.first(pages);
        self.hasher.queue(
            stream,
            tracker.region(),
            page_bytes,
            before.map(|before| hashes_of(before, 0, whole)),
            hashes_of(fresh, 0, whole),
            marks.part(0, whole),
        )?;
        if let Some(tail) = &tracker.tail {
            tracker.fill_tail(stream)?;
            let before = before.map(|before| hashes_of(before, whole, 1));
            let (fresh, mark) = (hashes_of(fresh, whole, 1), marks.part(whole, 1));
            self.hasher.queue(stream, tail.slice(), page_bytes, before, fresh, mark)?;
        }
        let both = MARK_ZERO | MARK_CHANGED;
        let found = Scanned {
            changed: tracker.changed.fill(stream, marks, both, MARK_CHANGED)?,
            zeroed: tracker.zeroed.fill(stream, marks, both, both)?,
        };
        tracker.found = found;
        tracker.last = 1 - tracker.last;
        Ok(found)
    }

    fn changed(&self, tracker: &Tracker, first: u64, count: u64) -> Result<ChangedPages> {
        let list = tracker.changed.part(first, count);
        let pages = self.words(list)?;
        let bytes = count as usize * DIGEST_BYTES;
        let digests = tracker.digests[tracker.last].first(tracker.place.pages() * DIGEST_BYTES);
        let dense = match self.gpu.allocate("hashes of changed pages", bytes) {
            // All of them cross, and are picked here.
            Err(Error::OutOfMemory { .. }) => {
                let mut all = vec![0; digests.bytes()];
                self.stream.download(digests, &mut all)?;
                let of = |page: &u64| &all[*page as usize * DIGEST_BYTES..][..DIGEST_BYTES];
                let hashes = pages.iter().flat_map(of).copied().collect();
                return Ok(ChangedPages { pages, hashes });
            }
            dense => dense?,
        };
        pages::gather(&self.stream, digests, list, DIGEST_BYTES, dense.slice())?;
        let mut hashes = vec![0; bytes];
        self.stream.download(dense.first(bytes), &mut hashes)?;
        Ok(ChangedPages { pages, hashes })
    }

    fn zeroed(&self, tracker: &Tracker) -> Result<Vec<u64>> {
        self.words(tracker.zeroed.part(0, tracker.found.zeroed))
    }

    fn arena(&self, pages: usize, page_bytes: usize) -> Result<Arena> {
        Ok(Arena {
            pages: self.gpu.allocate("staging", pages * page_bytes)?,
            page_bytes,
            list: self.gpu.allocate("a list of pages", pages * 8)?,
            expected: self.gpu.allocate("hashes of staged pages", pages * DIGEST_BYTES)?,
            found: self.gpu.allocate("hashes of staged pages", pages * DIGEST_BYTES)?,
            marks: self.gpu.allocate("marks of staged pages", pages)?,
            differing: PageList::new(&self.gpu, pages as u64)?,
        })
    }

    fn stage(
        &self,
        tracker: &Tracker,
        which: Which<'_>,
        count: usize,
        arena: &Arena,
        slot: usize,
    ) -> Result<()> {
        let (stream, page_bytes) = (&self.stream, arena.page_bytes);
        let (list, last) = match which {
            Which::Changed { first } => {
                let list = tracker.changed.part(first, count as u64);
                let mut last = [0; 8];
                stream.download(list.part((count - 1) * 8, 8), &mut last)?;
                (list, u64::from_le_bytes(last))
            }
            Which::Pages(numbers) => {
                let numbers = &numbers[..count];
                let bytes: Vec<u8> = numbers.iter().flat_map(|n| n.to_le_bytes()).collect();
                let list = arena.list.first(bytes.len());
                stream.upload(&bytes, list)?;
                (list, numbers[count - 1])
            }
        };
        let to = arena.pages.slice().part(slot * page_bytes, count * page_bytes);
        let whole = match &tracker.tail {
            Some(tail) if last == tracker.whole_pages() as u64 => {
                tracker.fill_tail(stream)?;
                stream.copy(tail.slice(), to.part((count - 1) * page_bytes, page_bytes))?;
                count - 1
            }
            _ => count,
        };
        pages::gather(stream, tracker.region(), list.part(0, whole * 8), page_bytes, to)?;
        let expected = arena.expected.first(count * DIGEST_BYTES);
        let digests = tracker.digests[tracker.last].slice();
        pages::gather(stream, digests, list, DIGEST_BYTES, expected)?;
        let (found, marks) = (arena.found.first(count * DIGEST_BYTES), arena.marks.first(count));
        self.hasher.queue(stream, to, page_bytes, Some(expected), found, marks)?;
        match arena.differing.fill(stream, marks, MARK_CHANGED, MARK_CHANGED)? {
            0 => Ok(()),
            pages => Err(Error::Changed { pages }),
        }
    }

    fn read_staged(&self, arena: &Arena, slot: usize, page: &mut [u8]) -> Result<()> {
        let from = arena.pages.slice().part(slot * arena.page_bytes, page.len());
        self.stream.download(from, page)
    }

    fn lane(&self, encoding: Encoding, bytes: usize) -> Result<Lane> {
        let gpu = &self.gpu;
        let (encoder, out_bytes) = match encoding {
            Encoding::Raw => (None, None),
            Encoding::Float(element) => (
                Some(DeviceEncoder::Float(DeviceFloat::new(gpu, element, bytes)?)),
                Some(DeviceFloat::out_bytes_max(bytes)),
            ),
            Encoding::Deflate => (
                Some(DeviceEncoder::Deflate(DeviceDeflate::new(gpu, FilterKind::None, bytes)?)),
                Some(DeviceDeflate::out_bytes_max(bytes)),
            ),
        };
        // A page has 1 KiB at least.
        let list_bytes = bytes / 1024 * 8;
        Ok(Lane {
            stream: gpu.stream()?,
            list_host: gpu.pinned("a list of pages", list_bytes)?,
            list: gpu.allocate("a list of pages", list_bytes)?,
            input: gpu.allocate("pages to encode", bytes)?,
            filled: 0,
            encoder,
            out: out_bytes.map(|bytes| gpu.allocate("encoded pages", bytes)).transpose()?,
            host: gpu.pinned("encoded pages", out_bytes.unwrap_or(bytes))?,
        })
    }

    fn start(&self, lane: &mut Lane, arena: &Arena, slots: &[u32]) -> Result<()> {
        let Lane { stream, list_host, list, input, filled, encoder, out, .. } = lane;
        let list_bytes = slots.len() * 8;
        for (to, slot) in list_host.chunks_exact_mut(8).zip(slots) {
            to.copy_from_slice(&u64::from(*slot).to_le_bytes());
        }
        *filled = slots.len() * arena.page_bytes;
        let (list, input) = (list.first(list_bytes), input.first(*filled));
        // SAFETY: `list_host` is written again only after `finish` has waited, or after the wait
        // at the next start.
        unsafe { stream.queue_upload(&list_host[..list_bytes], list)? };
        pages::gather(stream, arena.pages.slice(), list, arena.page_bytes, input)?;
        match (encoder, out) {
            (Some(encoder), Some(out)) => encoder.queue_encode(stream, input, out.slice()),
            _ => Ok(()),
        }
    }

    fn finish<'a>(&self, lane: &'a mut Lane) -> Result<(Packed, &'a [u8])> {
        lane.stream.wait()?;
        let (packed, from) = match (&lane.encoder, &lane.out) {
            (Some(encoder), Some(out)) => (encoder.packed(), out),
            _ => (Packed::new(vec![lane.filled as u32]), &lane.input),
        };
        let bytes = packed.bytes();
        lane.stream.download(from.first(bytes), &mut lane.host[..bytes])?;
        Ok((packed, &lane.host[..bytes]))
    }
}

impl Cuda {
    fn words(&self, from: DeviceSlice<'_>) -> Result<Vec<u64>> {
        let mut bytes = vec![0; from.bytes()];
        self.stream.download(from, &mut bytes)?;
        let (words, _) = bytes.as_chunks::<8>();
        Ok(words.iter().map(|word| u64::from_le_bytes(*word)).collect())
    }
}

fn hashes_of(all: DeviceSlice<'_>, first: usize, pages: usize) -> DeviceSlice<'_> {
    all.part(first * DIGEST_BYTES, pages * DIGEST_BYTES)
}
