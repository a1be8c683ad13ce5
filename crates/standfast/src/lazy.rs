//! Restarting lazily: the program goes on at once, its pages arrive when it touches them.
//!
//! ```text
//! restart: image, references proven -> regions absent -> return
//! behind:  threads stream extents in the order of the disk -> verified pages are brought
//! touch:   the page's extent comes next; a page of zeros at once
//! ```
//! Everything that a restart can prove without reading pages is proven before it returns. A page
//! that turns out to be damaged later can no longer be passed over for an older checkpoint: the
//! checkpoint is marked for the next restart ([`crate::doubt`]), and the program is ended by
//! `SIGBUS` with a message on stderr. It never sees the page.
//!
//! Invariants:
//! - A page is brought once, verified.
//! - Whatever needs all memory (a checkpoint, another restart, the end of a protection) waits until
//!   everything has arrived.

use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

use standfast_capture::{Absent, Served, end_by_bus_error, system_page_bytes};
use standfast_format::name;
use standfast_restart::{Failed, Rebuild, Sink, Stranded, Stream};
use standfast_store::LockGuard;
use standfast_sys::keep_signals_away;

use crate::arrive::fill;
use crate::doubt::Marker;
use crate::error::Result;
use crate::job::Core;

/// A restart whose pages are still arriving.
pub(crate) struct Lazy {
    shared: Option<Arc<Shared>>,
    workers: Vec<JoinHandle<()>>,
    _lock: LockGuard,
}

struct Shared {
    absent: Absent,
    arrival: Arc<Arrival>,
    /// Held by the first worker that ends the program, until it has ended.
    marker: Mutex<Marker>,
}

/// What arrives where.
struct Arrival {
    rebuild: Rebuild,
    stream: Stream,
    /// By region of the image: its pages in memory, if they arrive lazily.
    ranges: Vec<Option<Range<usize>>>,
}

impl Lazy {
    /// Starts the arrival of all regions that can arrive lazily; `Err` gives the rebuild back
    /// where none can, and tells why.
    ///
    /// # Safety
    /// The memory of every region is mapped until the arrival is finished, and nobody uses it
    /// during this call.
    pub(crate) unsafe fn start(
        rebuild: Rebuild,
        core: &Core,
        lock: LockGuard,
        marker: Marker,
    ) -> std::result::Result<Self, (Box<Rebuild>, &'static str)> {
        let ranges: Vec<Option<Range<usize>>> =
            rebuild.image().regions.iter().map(|region| lazy_range(core, &region.name)).collect();
        let whole = (rebuild.image().page_bytes as usize).is_multiple_of(system_page_bytes());
        if !whole {
            return Err((Box::new(rebuild), "pages are smaller than the system's"));
        }
        if ranges.iter().all(Option::is_none) {
            return Err((Box::new(rebuild), "no region has its pages for itself"));
        }
        let stream = rebuild.stream(|region| ranges[region].is_some());
        let arrival = Arc::new(Arrival { rebuild, stream, ranges });
        let asked = Arc::clone(&arrival);
        let absent = arrival.ranges.iter().flatten().cloned().collect();
        // SAFETY: the caller vouches for the memory.
        let absent = unsafe { Absent::new(absent, move |address| asked.touched(address)) };
        let Some(absent) = absent else {
            let arrival = Arc::into_inner(arrival).expect("its only other user was not started");
            let why = "the kernel lets this process hold up no reads (see docs/CAPTURE.md)";
            return Err((Box::new(arrival.rebuild), why));
        };
        let shared = Arc::new(Shared { absent, arrival, marker: Mutex::new(marker) });
        let workers = (0..shared.arrival.rebuild.threads())
            .map(|_| {
                let shared = Arc::clone(&shared);
                std::thread::Builder::new()
                    .name("sf-stream".into())
                    .spawn(move || shared.work())
                    .expect("a thread can be started")
            })
            .collect();
        Ok(Self { shared: Some(shared), workers, _lock: lock })
    }

    /// The regions that do not arrive lazily, filled now.
    ///
    /// # Safety
    /// As [`Lazy::start`].
    pub(crate) unsafe fn fill_others(&self, core: &Core) -> Result<()> {
        let arrival = &self.shared.as_ref().expect("until it is finished").arrival;
        // SAFETY: the caller vouches for it.
        unsafe { fill(core, &arrival.rebuild, |at| arrival.ranges[at].is_none()) }
    }

    /// Waits until everything has arrived.
    pub(crate) fn finish(mut self) -> Rebuild {
        self.join();
        let shared = self.shared.take().expect("until it is finished");
        let shared = Arc::into_inner(shared).expect("its workers have ended");
        let Shared { absent, arrival, .. } = shared;
        drop(absent);
        Arc::into_inner(arrival).expect("nobody asks for pages any more").rebuild
    }

    fn join(&mut self) {
        for worker in self.workers.drain(..) {
            // A worker that panicked has ended the program.
            let _ = worker.join();
        }
    }
}

impl Drop for Lazy {
    fn drop(&mut self) {
        self.join();
    }
}

impl Shared {
    fn work(&self) {
        keep_signals_away();
        let run = || self.arrival.rebuild.run_stream(&self.arrival.stream, self);
        match std::panic::catch_unwind(std::panic::AssertUnwindSafe(run)) {
            Ok(Ok(())) => {}
            Ok(Err(stranded)) => self.end(stranded),
            Err(_) => end_program(&"a thread that brings pages broke down"),
        }
    }

    /// Ends the program, whose checkpoint is marked if that is why.
    fn end(&self, stranded: Stranded<std::io::Error>) -> ! {
        // Another worker may have come to damage too: once is enough, and it must not end the
        // program before the mark is durable.
        let marker = self.marker.lock().unwrap_or_else(PoisonError::into_inner);
        match &stranded.failed {
            Failed::Source(error) => {
                marker.tell(&format!("{}: {error}", self.arrival.place_of(&stranded)));
                end_program(error)
            }
            Failed::Sink(error) => end_program(error),
        }
    }
}

impl Sink for Shared {
    type Error = std::io::Error;

    fn pages(&self, region: usize, offset: u64, bytes: &[u8]) -> std::io::Result<()> {
        let range = self.arrival.ranges[region].as_ref().expect("only lazy regions stream");
        let start = range.start + offset as usize;
        let bytes = &bytes[..bytes.len().min(range.end - start)];
        self.absent.bring(start, bytes)
    }

    fn zeros(&self, _: usize, _: u64, _: u64) -> std::io::Result<()> {
        Ok(())
    }
}

impl Arrival {
    /// The pages that did not come, and the file they lie in.
    fn place_of(&self, stranded: &Stranded<std::io::Error>) -> String {
        let image = self.rebuild.image();
        let Stranded { region, page, pages, segment, .. } = *stranded;
        let (name, last) = (&image.regions[region].name, page + pages - 1);
        format!("pages {page}-{last} of region {name:?}, {}", name::segment(segment))
    }

    /// Somebody waits for an address.
    fn touched(&self, address: usize) -> Served {
        let inside = |range: &Option<Range<usize>>| {
            range.as_ref().is_some_and(|range| range.contains(&address))
        };
        let Some(region) = self.ranges.iter().position(inside) else { return Served::Zero };
        let start = self.ranges[region].as_ref().expect("just found").start;
        let page = (address - start) / self.rebuild.image().page_bytes as usize;
        match self.stream.hurry(region, page as u32) {
            true => Served::Coming,
            false => Served::Zero,
        }
    }
}

/// The whole pages of a region, if it has its pages for itself.
fn lazy_range(core: &Core, name: &str) -> Option<Range<usize>> {
    let (span, page) = (core.regions.get(name)?.span(), system_page_bytes());
    let end = span.start + span.bytes;
    let alone =
        span.start.is_multiple_of(page) && (end.is_multiple_of(page) || core.owns_pages(name));
    (alone && span.bytes > 0).then(|| span.start..end.next_multiple_of(page))
}

/// Ends the program: it waits for a page that cannot be had.
fn end_program(why: &dyn std::fmt::Display) -> ! {
    eprintln!("standfast: the program ends: a page of a lazy restart cannot be brought: {why}");
    end_by_bus_error()
}
