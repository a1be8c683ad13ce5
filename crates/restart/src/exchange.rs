//! Pages that other ranks hold, asked for and handed out in bulk.
//!
//! ```text
//! 1. requests  each rank tells each owner (who wrote a segment, or can reach it) what it wants
//! 2. hashes    the owners answer with the hashes of those slots: references are proven
//! 3. pages     the owners read their pages, once each, and send them; in as many rounds as keep
//!             the messages of a rank within its bound
//! ```
//! Why through the owners and not straight from their files: a page that all ranks share is then
//! read from the disk once and not once a rank, and nobody needs another node's disk. Segments
//! that ranks can reach and hardly share are not asked for: [`crate::read_sharing`].
//!
//! Invariants:
//! - A rank that fails answers with nothing and goes on, so that no other waits for it: its failure
//!   is the inner result, and is reported when all is done.
//! - What is in memory at a time stays below three times [`ROUND_BYTES`] (read, sent, received) and
//!   the requests.

use std::sync::atomic::{AtomicUsize, Ordering};

use standfast_comm::{Collective, Step};
use standfast_format::{HashKind, SegmentRef, StoreHeader};
use standfast_store::Store;

use crate::error::{Error, Phase, Result};
use crate::rebuild::{Rebuild, Unproven};
use crate::region_sink::RegionSink;
use crate::remote::Slots;
use crate::slots::SlotReader;

/// What a rank sends in a round, to all others together.
const ROUND_BYTES: usize = 32 << 20;
/// Pages that a thread takes at a time.
const PIECE_PAGES: usize = 64;

/// What one rank wants of one owner: segments, and slots by their place in that list.
#[derive(Default, serde::Serialize, serde::Deserialize)]
struct PageRequest {
    segments: Vec<SegmentRef>,
    /// Segment, first slot, pages.
    slots: Vec<(u32, u32, u32)>,
}

impl PageRequest {
    fn pages(&self) -> usize {
        self.slots.iter().map(|(_, _, pages)| *pages as usize).sum()
    }
}

/// Where to read.
pub(crate) struct SegmentAccess<'a> {
    pub(crate) store_of: &'a dyn Fn(&SegmentRef) -> &'a dyn Store,
    pub(crate) header: &'a StoreHeader,
    pub(crate) hash: HashKind,
    pub(crate) page_bytes: u32,
    pub(crate) threads: usize,
}

/// The exchange of one restart.
pub(crate) struct Exchange<'a> {
    ranks: &'a Collective,
    access: SegmentAccess<'a>,
    /// What this rank wants, by owner.
    wants: Vec<PageRequest>,
    /// Numbers of the wanted pages of each owner in the image's own order.
    numbers: Vec<Vec<u32>>,
    /// What others want of this rank, by rank.
    serves: Vec<Vec<Slots>>,
    reader: Result<SlotReader>,
}

impl<'a> Exchange<'a> {
    /// Step 1.
    pub(crate) fn start(
        ranks: &'a Collective,
        access: SegmentAccess<'a>,
        image: &Unproven,
        owner_of: impl Fn(&SegmentRef) -> usize,
    ) -> Phase<Self> {
        let (wants, numbers) = sort_by_owner(image, ranks.size(), owner_of);
        let requests: Vec<PageRequest> = ranks.exchange(Step("exchange: requests"), &wants)?;
        let (reader, serves) = open_requested(&access, requests);
        Ok(Self { ranks, access, wants, numbers, serves, reader })
    }

    /// Step 2: the hashes of the wanted pages, in the order in which the image wants them.
    pub(crate) fn hashes(&self) -> Phase<Result<Vec<u8>>> {
        let answers: Vec<Vec<u8>> = self
            .serves
            .iter()
            .map(|slots| match &self.reader {
                Ok(reader) => collect_hashes(reader, slots),
                Err(_) => Vec::new(),
            })
            .collect();
        let answers = self.ranks.raw().all_to_all(answers)?;
        let hash_bytes = self.access.hash.bytes();
        let pages: usize = self.numbers.iter().map(Vec::len).sum();
        let mut hashes = vec![0; pages * hash_bytes];
        for (owner, (answers, numbers)) in answers.iter().zip(&self.numbers).enumerate() {
            if answers.len() != numbers.len() * hash_bytes {
                return Ok(Err(Error::NoPages(owner)));
            }
            for (hash, at) in answers.chunks_exact(hash_bytes).zip(numbers) {
                hashes[*at as usize * hash_bytes..][..hash_bytes].copy_from_slice(hash);
            }
        }
        Ok(Ok(hashes))
    }

    /// What this rank failed with as an owner.
    pub(crate) fn check(&self) -> Result<()> {
        match &self.reader {
            Ok(_) => Ok(()),
            Err(error) => Err(error.clone()),
        }
    }

    /// Step 3. While the pages of a round travel and are put in their places, those of the next
    /// are read.
    pub(crate) fn pages(
        &mut self,
        rebuild: &Rebuild,
        sink: &RegionSink<'_>,
        wanted: impl Fn(usize) -> bool + Sync,
    ) -> Phase<Result<()>> {
        let Self { ranks, access, wants, numbers, serves, reader } = self;
        let page_bytes = access.page_bytes as usize;
        let per_rank = (ROUND_BYTES / (ranks.size() * page_bytes)).max(1);
        let longest = wants.iter().map(PageRequest::pages).max().unwrap_or(0);
        let rounds =
            standfast_comm::collective::all_max(ranks.raw(), longest.div_ceil(per_rank) as u64)?
                as usize;
        let mut serve =
            |round: usize| serve(reader, serves, round * per_rank, per_rank, page_bytes);
        let mut outcome = Ok(());
        let mut served = if rounds > 0 { serve(0) } else { Vec::new() };
        for round in 0..rounds {
            let answers_of = std::mem::take(&mut served);
            let next = || if round + 1 < rounds { serve(round + 1) } else { Vec::new() };
            let (next, placed) = standfast_sys::beside(next, || {
                let answers = ranks.raw().all_to_all(answers_of);
                answers.map(|answers| {
                    let pieces = pieces(numbers, &answers, round * per_rank, per_rank, page_bytes);
                    let taken = pieces
                        .and_then(|pieces| take(rebuild, sink, &wanted, &pieces, access.threads));
                    if outcome.is_ok() {
                        outcome = taken;
                    }
                })
            });
            placed?;
            served = next;
        }
        Ok(self.check().and(outcome))
    }
}

/// The pages of one round, by rank; nothing for anybody from the first failure on.
fn serve(
    reader: &mut Result<SlotReader>,
    serves: &[Vec<Slots>],
    from: usize,
    pages: usize,
    page_bytes: usize,
) -> Vec<Vec<u8>> {
    let nothing = vec![Vec::new(); serves.len()];
    let Ok(open) = reader else { return nothing };
    let lists: Vec<Vec<Slots>> = serves.iter().map(|slots| part_of(slots, from, pages)).collect();
    let mut buffers: Vec<Vec<u8>> =
        lists.iter().map(|list| vec![0; count(list) * page_bytes]).collect();
    match open.read(&lists, buffers.iter_mut().map(Vec::as_mut_slice).collect()) {
        Ok(()) => buffers,
        Err(error) => {
            *reader = Err(error);
            nothing
        }
    }
}

/// Pages that follow each other among the wanted ones: the number of the first, and their bytes.
type Received<'a> = (usize, &'a [u8]);

/// What a round has brought, in pieces of [`PIECE_PAGES`] at most.
fn pieces<'a>(
    numbers: &[Vec<u32>],
    answers: &'a [Vec<u8>],
    from: usize,
    pages: usize,
    page_bytes: usize,
) -> Result<Vec<Received<'a>>> {
    let mut pieces = Vec::new();
    for (owner, (answers, numbers)) in answers.iter().zip(numbers).enumerate() {
        let end = (from + pages).min(numbers.len());
        let numbers = &numbers[from.min(end)..end];
        if answers.len() != numbers.len() * page_bytes {
            return Err(Error::NoPages(owner));
        }
        let mut rest = answers.as_slice();
        for run in numbers.chunk_by(|a, b| a + 1 == *b).flat_map(|run| run.chunks(PIECE_PAGES)) {
            let (piece, behind) = rest.split_at(run.len() * page_bytes);
            pieces.push((run[0] as usize, piece));
            rest = behind;
        }
    }
    Ok(pieces)
}

/// Verifies pieces and puts them in their places, on several threads.
fn take(
    rebuild: &Rebuild,
    sink: &RegionSink<'_>,
    wanted: &(impl Fn(usize) -> bool + Sync),
    pieces: &[Received<'_>],
    threads: usize,
) -> Result<()> {
    let next = AtomicUsize::new(0);
    let work = || -> Result<()> {
        while let Some((from, bytes)) = pieces.get(next.fetch_add(1, Ordering::Relaxed)) {
            rebuild.take_remote(sink, wanted, *from, bytes)?;
        }
        Ok(())
    };
    std::thread::scope(|scope| {
        let others = threads.min(pieces.len()).saturating_sub(1);
        let others: Vec<_> = (0..others).filter_map(|_| standfast_sys::help(scope, work)).collect();
        let own = work();
        let others = others.into_iter().map(|one| one.join().expect("taking does not panic"));
        others.fold(own, Result::and)
    })
}

/// Requests for each owner, and the numbers of their pages in the order of the image.
fn sort_by_owner(
    image: &Unproven,
    size: usize,
    owner_of: impl Fn(&SegmentRef) -> usize,
) -> (Vec<PageRequest>, Vec<Vec<u32>>) {
    let mut requests: Vec<PageRequest> = (0..size).map(|_| PageRequest::default()).collect();
    let mut numbers: Vec<Vec<u32>> = vec![Vec::new(); size];
    let segments = &image.image().segments;
    let mut next = 0;
    for slots in image.wanted() {
        let segment = segments[slots.segment as usize];
        let owner = owner_of(&segment);
        let request = &mut requests[owner];
        if request.segments.last() != Some(&segment) {
            request.segments.push(segment);
        }
        request.slots.push((request.segments.len() as u32 - 1, slots.slot, slots.pages));
        numbers[owner].extend(next..next + slots.pages);
        next += slots.pages;
    }
    (requests, numbers)
}

/// Opens what others want of this rank; their slots name the segments by place.
fn open_requested(
    access: &SegmentAccess<'_>,
    requests: Vec<PageRequest>,
) -> (Result<SlotReader>, Vec<Vec<Slots>>) {
    let mut segments: Vec<SegmentRef> = Vec::new();
    let mut serves = Vec::with_capacity(requests.len());
    for request in requests {
        let places: Vec<u32> = request
            .segments
            .iter()
            .map(|wanted| match segments.iter().position(|segment| segment.id == wanted.id) {
                Some(at) => at as u32,
                None => {
                    segments.push(*wanted);
                    segments.len() as u32 - 1
                }
            })
            .collect();
        let slots = request.slots.iter().map(|(segment, slot, pages)| Slots {
            // A place that does not exist stays one: reading refuses it.
            segment: places.get(*segment as usize).copied().unwrap_or(u32::MAX),
            slot: *slot,
            pages: *pages,
        });
        serves.push(slots.collect());
    }
    let SegmentAccess { store_of, header, hash, page_bytes, threads } = *access;
    let reader = SlotReader::open(header, (hash, page_bytes), segments, threads, store_of);
    (reader, serves)
}

/// The hashes of slots, or nothing if they are nonsense.
fn collect_hashes(reader: &SlotReader, slots: &[Slots]) -> Vec<u8> {
    let mut hashes = Vec::new();
    for slots in slots {
        match reader.hashes(*slots) {
            Ok(own) => hashes.extend_from_slice(own),
            Err(_) => return Vec::new(),
        }
    }
    hashes
}

fn count(list: &[Slots]) -> usize {
    list.iter().map(|slots| slots.pages as usize).sum()
}

/// The slots of the pages from this number on, so many at most.
fn part_of(list: &[Slots], from: usize, pages: usize) -> Vec<Slots> {
    let mut part = Vec::new();
    let (mut skip, mut left) = (from, pages);
    for slots in list {
        let own = slots.pages as usize;
        if skip >= own {
            skip -= own;
            continue;
        }
        let count = (own - skip).min(left);
        if count == 0 {
            break;
        }
        let slot = slots.slot + skip as u32;
        part.push(Slots { segment: slots.segment, slot, pages: count as u32 });
        left -= count;
        skip = 0;
    }
    part
}

#[cfg(test)]
mod tests;
