//! Storing the pages of one attempt, from any source, alone or together with other ranks.
//!
//! Data: sources of pages, what is known of them, ledger and writer -> [`Stored`].
//!
//! Alone, looking and bringing are one pass ([`Ingest::alone`]); ranks that agree on pages look first
//! ([`Ingest::together`]).

use standfast_capture::{Dirty, Regions};
use standfast_checkpoint::Order;
use standfast_comm::Collective;
use standfast_reduce::{PageSource, PageTable, Target};
use standfast_sys::Stopwatch;

use crate::device::{DevicePages, SharedDevice};
use crate::error::{Error, Result};
use crate::ledger::Ledger;
use crate::place::Place;
use crate::remembered::Env;
use crate::settings::Comparison;
use crate::stopped::Stopped;
use crate::stored::{Aborted, Stored, guarded};
use crate::storing::{Bringing, Pages, Storing, expected_bytes};
use crate::writer::PageWriter;

/// What storing the pages of one attempt works on.
pub(crate) struct Ingest<'a> {
    pub(crate) env: &'a Env,
    pub(crate) ledger: &'a mut Ledger,
    pub(crate) writer: &'a mut PageWriter,
    pub(crate) regions: &'a Regions,
    pub(crate) order: Order,
    /// What is known of the regions' pages.
    pub(crate) positions: &'a mut [PageTable],
    /// What may have been written since.
    pub(crate) dirty: &'a [Dirty],
}

/// The regions as a scan wants them.
pub(crate) fn targets<'a>(
    positions: &'a mut [PageTable],
    dirty: &'a [Dirty],
    compare: Comparison,
) -> Vec<Target<'a>> {
    let trust_dirty = compare.back && !compare.equal;
    let target = |(positions, dirty)| match dirty {
        &Dirty::All => Target { positions, dirty: None, trust_dirty },
        Dirty::Pages(bits) => Target { positions, dirty: Some(bits.as_slice()), trust_dirty },
    };
    positions.iter_mut().zip(dirty).map(target).collect()
}

impl Ingest<'_> {
    pub(crate) fn storing(&mut self, expected_bytes: u64) -> Storing<'_> {
        let catalog = &mut self.ledger.catalog;
        self.writer.begin(self.env, catalog, (self.regions, self.order), expected_bytes)
    }

    /// Stores the pages of a stopped program, but for those that stay on the device, which comes
    /// back with them. Collective.
    pub(crate) fn store_stopped(
        &mut self,
        place: &mut Place,
        team: &Collective,
        here: &Stopped<'_>,
        device: Option<&SharedDevice>,
    ) -> (std::result::Result<Stored, Aborted>, Option<DevicePages>) {
        let ahead = matches!(place, Place::Alone);
        let how = (self.env.scanner.page_bytes(), ahead);
        let scan = |device| DevicePages::scan(self.regions, device, self.positions, how);
        let scanned = guarded("scanning", || device.map(scan).transpose());
        let (ready, device) = match scanned {
            Ok(device) => (Ok(()), device.flatten()),
            Err(error) => (Err(error), None),
        };
        let mut sources: Vec<&Pages<'_>> = vec![here];
        sources.extend(device.iter().filter(|_| !ahead).map(|device| -> &Pages<'_> { device }));
        let stored = self.store(place, Some(team), &sources, ready);
        let stored = stored.and_then(|stored| match device.as_ref().filter(|_| ahead) {
            Some(device) => guarded("staging", || self.stage(device, stored)),
            None => Ok(stored),
        });
        (stored, device)
    }

    /// Looks at all pages of these sources and stores what is new. `ready`: whether all sources are
    /// there. Collective where ranks store pages together.
    pub(crate) fn store(
        &mut self,
        place: &mut Place,
        team: Option<&Collective>,
        sources: &[&Pages<'_>],
        ready: Result<()>,
    ) -> std::result::Result<Stored, Aborted> {
        match (place, team) {
            (Place::Together(placement), Some(team)) => {
                self.together(&mut **placement, team, sources, ready)
            }
            _ => {
                ready?;
                guarded("storing", || self.alone(sources, None))
            }
        }
    }

    /// Looks and stores what is new in one pass, by this rank alone. `expected_pages`: how many may
    /// be new, where somebody knows better than the tracker.
    pub(crate) fn alone(
        &mut self,
        sources: &[&Pages<'_>],
        expected_pages: Option<u64>,
    ) -> std::result::Result<Stored, Aborted> {
        let started = Stopwatch::start();
        let settings = &self.env.settings;
        let (compare, page_bytes) = (settings.compare, settings.pack.page_bytes as u64);
        let expected_bytes = expected_pages.map_or_else(
            || expected_bytes(self.regions, self.positions, self.dirty, page_bytes),
            |pages| pages * page_bytes,
        );
        if compare.equal {
            self.ledger.catalog.reserve((expected_bytes / page_bytes) as usize);
        }
        // Where most pages are new, the encoders want a core: one thread less. If that leaves one,
        // it hashes what it copies instead of copying what it hashed.
        let mostly_new = expected_bytes > self.regions.host_bytes() / 2;
        let scanner = &self.env.scanner;
        let scanner = scanner.with_threads(scanner.threads() - usize::from(mostly_new));
        let mut targets = targets(self.positions, self.dirty, compare);
        let of = (self.regions, self.order);
        let mut store = self.writer.begin(self.env, &mut self.ledger.catalog, of, expected_bytes);
        let scanned = sources.iter().try_for_each(|source| {
            let mut bringing = Bringing::new(&mut store, *source);
            scanner.scan(*source, &mut targets, &mut bringing)?;
            bringing.flush()
        });
        let closed = scanned.and_then(|()| store.close());
        match closed.and_then(|()| sources.iter().try_for_each(|source| source.end())) {
            Ok(()) => {
                let stored = Stored::of(store.batch.finish(), store.begun);
                Ok(Stored { scan_ns: started.ns(), ..stored })
            }
            Err(error) => Err(Aborted { error, begun: store.begun }),
        }
    }

    /// Stages what changed on the device; what does not fit is stored now.
    fn stage(
        &mut self,
        device: &DevicePages,
        mut stored: Stored,
    ) -> std::result::Result<Stored, Aborted> {
        let mut round = || -> std::result::Result<(), Aborted> {
            while !device.stage()? {
                stored.join(self.alone(&[device], Some(device.staged_pages()))?);
            }
            Ok(())
        };
        match round() {
            Ok(()) => Ok(stored),
            Err(aborted) => Err(aborted.after(&stored)),
        }
    }

    /// Brings what was set aside to the segments that are reserved for it.
    pub(crate) fn bring_reserved(
        &mut self,
        device: &DevicePages,
        stored: &Stored,
    ) -> std::result::Result<Stored, Aborted> {
        let mut store = self.storing(0);
        let brought = stored.reserved.iter().try_for_each(|segment| {
            store.batch.open_segment(segment.id, None);
            Bringing::fill(&mut store, device, &segment.pages, &segment.hashes)?;
            store.batch.close_segment().map_err(Error::from)
        });
        match brought.and_then(|()| device.end()) {
            Ok(()) => Ok(Stored::of(store.batch.finish(), Vec::new())),
            Err(error) => Err(error.into()),
        }
    }
}
