//! Restarting lazily: the program continues at once, its pages are loaded when it touches them.
//!
//! ```text
//! restart: image -> every segment it names, opened straight from the store -> references proven
//!          -> regions absent -> return
//! behind:  threads stream extents in the order of the disk -> verified pages are loaded
//! touch:   the page's extent comes next; a page of zeros at once
//! ```
//! The ranks of a job do not ask each other for pages here: a rank that has continued with its program
//! could not answer. So each must reach every segment it needs. Where one cannot, all of them fill
//! their memory before they return, and hand each other pages.
//!
//! Everything that a restart can prove without reading pages is proven before it returns. A page
//! that turns out to be damaged later can no longer be replaced by an older checkpoint's: the
//! checkpoint is marked for the next restart ([`crate::distrust`]), and the program is ended by
//! `SIGBUS` with a message on stderr. It never sees the page.
//!
//! Invariants:
//! - A page is loaded once, verified.
//! - Whatever needs all memory (a checkpoint, another restart, the end of a protection) waits until
//!   everything is loaded.

use std::ops::Range;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

use standfast_capture::{Absent, Served, end_by_bus_error, system_page_bytes};
use standfast_checkpoint::read_image;
use standfast_comm::Step;
use standfast_format::{Level, Manifest, name};
use standfast_store::{Lock, LockGuard};
use standfast_sys::keep_signals_away;

use crate::distrust::DamageMarker;
use crate::error::{Error, Phase, Result};
use crate::rebuild::{Failed, Rebuild, Stranded, Stream};
use crate::region_sink::{Destinations, check_ranks};
use crate::restart::{Filled, Restart, Restored};
use crate::sink::Sink;

/// What became of the wish to load pages later.
pub(crate) enum LazyStart {
    /// Pages are being loaded, or are there.
    Begun(Restored),
    /// Not possible, for this reason, if it was asked for at all.
    Eager(Option<String>),
}

impl Restart<'_> {
    /// Starts to load a checkpoint's pages behind the program.
    pub(crate) fn start_lazily(&self, manifest: &Manifest) -> Phase<LazyStart> {
        if !self.way.lazy {
            return Ok(LazyStart::Eager(None));
        }
        let in_memory = !self.memory.has_device_regions();
        let [in_memory] = *self.ranks.all_hold(Step("lazy: devices"), [in_memory])?;
        if !in_memory {
            let why = "device memory is filled before the program continues";
            return Ok(LazyStart::Eager(Some(why.into())));
        }
        let opened = self.open_all(manifest);
        let [all] = *self.ranks.all_hold(Step("lazy: open"), [opened.is_ok()])?;
        let rebuild = match opened {
            Ok(rebuild) if all => rebuild,
            Ok(_) => {
                let why = "another rank cannot read all it needs straight from the store";
                return Ok(LazyStart::Eager(Some(why.into())));
            }
            Err(error) => return Ok(LazyStart::Eager(Some(error.to_string()))),
        };
        let unclaimed = self.memory.unclaimed(&rebuild);
        let marker = DamageMarker::new(self.store, manifest, self.ranks.rank());
        let (memory, notes) = self.ranks.agree(Step("lazy: begin"), self.begin(rebuild, marker))?;
        let levels = vec![Level::Local; self.ranks.size()];
        Ok(LazyStart::Begun(Restored { unclaimed, notes, levels, memory }))
    }

    fn open_all(&self, manifest: &Manifest) -> Result<Rebuild> {
        check_ranks(manifest.version, manifest.ranks, self.ranks.size())?;
        let image = read_image(&**self.store, manifest, self.ranks.rank())?;
        self.memory.check_fit(&image)?;
        Rebuild::open(&**self.store, self.header, image, self.way.threads)
    }

    fn begin(&self, rebuild: Rebuild, marker: DamageMarker) -> Result<(Filled, Vec<String>)> {
        let lock = self.store.lock(Lock::ReadShared)?;
        match Lazy::start(rebuild, self.memory, lock, marker) {
            Ok(lazy) => {
                lazy.fill_others(self.memory)?;
                Ok((Filled::Lazily(lazy), Vec::new()))
            }
            Err((rebuild, why)) => {
                fill(self.memory, &rebuild, |_| true)?;
                Ok((Filled::Completely(Some(rebuild)), vec![eager_note(why)]))
            }
        }
    }
}

pub(crate) fn eager_note(why: &str) -> String {
    format!("restarted eagerly: {why}")
}

/// Fills regions of the image, as far as the program has protected them, from the store.
fn fill(
    to: Destinations<'_>,
    rebuild: &Rebuild,
    wanted: impl Fn(usize) -> bool + Sync,
) -> Result<()> {
    let images = &rebuild.image().regions;
    let regions = to.regions();
    let wanted = |at: usize| wanted(at) && regions.get(&images[at].name).is_some();
    let memory = to.memory(images, wanted);
    rebuild.rebuild(&memory, wanted, &AtomicU64::new(0)).map_err(Error::from)
}

/// A restart whose pages are still being loaded.
pub struct Lazy {
    shared: Option<Arc<Loader>>,
    workers: Vec<JoinHandle<()>>,
    _lock: LockGuard,
}

struct Loader {
    absent: Absent,
    loading: Arc<Loading>,
    /// Held by the first worker that ends the program, until it has ended.
    marker: Mutex<DamageMarker>,
}

/// What is loaded where.
struct Loading {
    rebuild: Rebuild,
    stream: Stream,
    /// By region of the image: its pages in memory, if they are loaded later.
    ranges: Vec<Option<Range<usize>>>,
}

impl Lazy {
    /// Starts to load all regions that can be loaded later; `Err` gives the rebuild back where none
    /// can, and tells why.
    fn start(
        rebuild: Rebuild,
        to: Destinations<'_>,
        lock: LockGuard,
        marker: DamageMarker,
    ) -> std::result::Result<Self, (Box<Rebuild>, &'static str)> {
        let ranges: Vec<Option<Range<usize>>> =
            rebuild.image().regions.iter().map(|region| lazy_range(to, &region.name)).collect();
        let whole = (rebuild.image().page_bytes as usize).is_multiple_of(system_page_bytes());
        if !whole {
            return Err((Box::new(rebuild), "pages are smaller than the system's"));
        }
        if ranges.iter().all(Option::is_none) {
            return Err((Box::new(rebuild), "no region has its pages for itself"));
        }
        let stream = rebuild.stream(|region| ranges[region].is_some());
        let loading = Arc::new(Loading { rebuild, stream, ranges });
        let asked = Arc::clone(&loading);
        let absent = loading.ranges.iter().flatten().cloned().collect();
        // SAFETY: whoever made the destinations vouches for the memory.
        let absent = unsafe { Absent::new(absent, move |address| asked.touched(address)) };
        let Some(absent) = absent else {
            let loading = Arc::into_inner(loading).expect("its only other user was not started");
            let why = "this process may not use userfaultfd (see docs/CAPTURE.md)";
            return Err((Box::new(loading.rebuild), why));
        };
        let shared = Arc::new(Loader { absent, loading, marker: Mutex::new(marker) });
        let start = |_| {
            let shared = Arc::clone(&shared);
            let thread = std::thread::Builder::new().name("sf-stream".into());
            thread.spawn(move || shared.work()).ok()
        };
        let workers: Vec<JoinHandle<()>> =
            (0..shared.loading.rebuild.threads()).filter_map(start).collect();
        if workers.is_empty() {
            // No thread can be started: everything is loaded now.
            shared.work();
        }
        Ok(Self { shared: Some(shared), workers, _lock: lock })
    }

    /// The regions that are not loaded later, filled now.
    fn fill_others(&self, to: Destinations<'_>) -> Result<()> {
        let loading = &self.shared.as_ref().expect("until it is finished").loading;
        fill(to, &loading.rebuild, |at| loading.ranges[at].is_none())
    }

    /// Whether everything is loaded and verified.
    pub fn is_done(&self) -> bool {
        self.workers.iter().all(JoinHandle::is_finished)
    }

    /// Waits until everything is loaded.
    pub fn finish(mut self) -> Rebuild {
        self.join();
        let shared = self.shared.take().expect("until it is finished");
        let shared = Arc::into_inner(shared).expect("its workers have ended");
        let Loader { absent, loading, .. } = shared;
        drop(absent);
        Arc::into_inner(loading).expect("nobody asks for pages any more").rebuild
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

impl Loader {
    fn work(&self) {
        keep_signals_away();
        let run = || self.loading.rebuild.run_stream(&self.loading.stream, self);
        match std::panic::catch_unwind(std::panic::AssertUnwindSafe(run)) {
            Ok(Ok(())) => {}
            Ok(Err(stranded)) => self.end(stranded),
            Err(_) => end_program(&"a thread that loads pages broke down"),
        }
    }

    /// Ends the program, whose checkpoint is marked if that is why.
    fn end(&self, stranded: Stranded<std::io::Error>) -> ! {
        // Another worker may have come to damage too: once is enough, and it must not end the
        // program before the mark is durable.
        let marker = self.marker.lock().unwrap_or_else(PoisonError::into_inner);
        match &stranded.failed {
            Failed::Source(error) => {
                marker.report(&format!("{}: {error}", self.loading.place_of(&stranded)));
                end_program(error)
            }
            Failed::Sink(error) => end_program(error),
        }
    }
}

impl Sink for Loader {
    type Error = std::io::Error;

    fn pages(&self, region: usize, offset: u64, bytes: &[u8]) -> std::io::Result<()> {
        let range = self.loading.ranges[region]
            .as_ref()
            .expect("only regions that are loaded later stream");
        let start = range.start + offset as usize;
        let bytes = &bytes[..bytes.len().min(range.end - start)];
        self.absent.bring(start, bytes)
    }

    fn zeros(&self, _: usize, _: u64, _: u64) -> std::io::Result<()> {
        Ok(())
    }
}

impl Loading {
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

/// The whole pages of a region, if it has its pages for itself and nothing of them is excluded.
fn lazy_range(to: Destinations<'_>, name: &str) -> Option<Range<usize>> {
    let (span, page) = (to.regions().get(name)?.span(), system_page_bytes());
    let end = span.start + span.bytes;
    let alone =
        span.start.is_multiple_of(page) && (end.is_multiple_of(page) || to.owns_pages(name));
    let whole = to.excluded(name).is_empty();
    (alone && whole && span.bytes > 0).then(|| span.start..end.next_multiple_of(page))
}

/// Ends the program: it waits for a page that cannot be had.
fn end_program(why: &dyn std::fmt::Display) -> ! {
    eprintln!("standfast: the program ends: a page of a lazy restart cannot be loaded: {why}");
    end_by_bus_error()
}
