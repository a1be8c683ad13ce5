//! Streaming: the pages of an image arrive in the order of the disk, those that somebody waits for
//! first.
//!
//! Data: the plan's extents -> [`Stream`]: a queue that several workers empty and that
//! [`Stream::hurry`] reorders -> verified pages for a [`Sink`].
//!
//! Invariants:
//! - Every extent is taken by one worker, once.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use standfast_format::SegmentId;

use super::{Failed, Rebuild, Worker};
use crate::plan::{Extent, Piece, plan};
use crate::sink::Sink;

/// The extents of some regions, on their way.
pub struct Stream {
    extents: Vec<Extent>,
    taken: Vec<AtomicBool>,
    next: AtomicUsize,
    urgent: Mutex<VecDeque<usize>>,
    /// By region, in the order of pages: first page, number of pages, extent.
    places: Vec<Vec<(u32, u32, usize)>>,
}

/// A stream that came to an end too soon, and the pages that were to come next.
#[derive(Debug)]
pub struct Stranded<E> {
    /// Why.
    pub failed: Failed<E>,
    /// Region in the image.
    pub region: usize,
    /// First of its pages that did not come.
    pub page: u32,
    /// How many would have come together.
    pub pages: u32,
    /// Where they lie.
    pub segment: SegmentId,
}

impl Stream {
    /// Lets the extent of a page come next; false if the page is in none: it is zero.
    pub fn hurry(&self, region: usize, page: u32) -> bool {
        let places = &self.places[region];
        let at = places.partition_point(|(first, ..)| *first <= page);
        let found = at.checked_sub(1).map(|at| places[at]);
        let Some((_, _, extent)) = found.filter(|(first, pages, _)| page - first < *pages) else {
            return false;
        };
        if !self.taken[extent].load(Ordering::Relaxed) {
            self.urgent.lock().unwrap_or_else(PoisonError::into_inner).push_back(extent);
        }
        true
    }

    fn take(&self) -> Option<&Extent> {
        loop {
            let urgent = self.urgent.lock().unwrap_or_else(PoisonError::into_inner).pop_front();
            let at = urgent.unwrap_or_else(|| self.next.fetch_add(1, Ordering::Relaxed));
            let extent = self.extents.get(at)?;
            if !self.taken[at].swap(true, Ordering::Relaxed) {
                return Some(extent);
            }
        }
    }
}

impl Rebuild {
    /// Plans the streaming of some regions. All segments must be at hand.
    pub fn stream(&self, wanted: impl Fn(usize) -> bool) -> Stream {
        assert!(self.readers.iter().all(Option::is_some), "no page comes from another rank");
        let extents = plan(&self.image, &self.readers, &wanted);
        let mut places = vec![Vec::new(); self.image.regions.len()];
        for (at, extent) in extents.iter().enumerate() {
            for piece in &extent.pieces {
                places[piece.region as usize].push((piece.page, piece.pages, at));
            }
        }
        places.iter_mut().for_each(|places| places.sort_unstable());
        Stream {
            taken: extents.iter().map(|_| AtomicBool::new(false)).collect(),
            extents,
            next: AtomicUsize::new(0),
            urgent: Mutex::default(),
            places,
        }
    }

    /// One worker's part of a stream: reads, verifies and hands over until nothing is left.
    pub fn run_stream<S: Sink>(
        &self,
        stream: &Stream,
        sink: &S,
    ) -> std::result::Result<(), Stranded<S::Error>> {
        let mut worker = Worker::default();
        while let Some(extent) = stream.take() {
            let mut handed = 0;
            self.hand_over(&mut worker, extent, sink, &mut handed).map_err(|failed| {
                let Piece { region, page, pages, .. } = extent.pieces[handed];
                let segment = self.image.segments[extent.segment as usize].id;
                Stranded { failed, region: region as usize, page, pages, segment }
            })?;
        }
        Ok(())
    }

    /// Hands the pieces of an extent over, and counts them.
    fn hand_over<S: Sink>(
        &self,
        worker: &mut Worker,
        extent: &Extent,
        sink: &S,
        handed: &mut usize,
    ) -> std::result::Result<(), Failed<S::Error>> {
        let page_bytes = u64::from(self.image.page_bytes);
        let reader = self.readers[extent.segment as usize].as_ref().expect("planned");
        worker.read(reader, extent)?;
        worker.decode(reader, extent, &self.hasher, |piece, _, bytes| {
            let offset = u64::from(piece.page) * page_bytes;
            sink.pages(piece.region as usize, offset, bytes).map_err(Failed::Sink)?;
            *handed += 1;
            Ok(())
        })
    }

    /// How many threads read.
    pub fn threads(&self) -> usize {
        self.threads
    }
}
