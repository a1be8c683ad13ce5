//! Letting pages arrive behind the program's back, where that is asked for and possible.
//!
//! Data: image -> every segment it names, opened straight from the store -> proven -> [`Lazy`].
//!
//! The ranks of a job do not ask each other for pages here: a rank that has gone on with its program
//! could not answer. So each must reach every segment it needs. Where one cannot, all of them fill
//! their memory before they return, and hand each other pages.

use std::sync::atomic::AtomicU64;

use standfast_comm::Step;
use standfast_format::{Level, Manifest};
use standfast_restart::{MemorySink, Rebuild, read_image};
use standfast_store::Lock;

use crate::config;
use crate::doubt::Marker;
use crate::error::{Error, Phase, Result};
use crate::job::{Core, Job};
use crate::lazy::Lazy;
use crate::restart::{Back, check_fit, check_ranks, unclaimed};

/// What became of it.
pub(crate) enum Arrival {
    /// Pages are arriving, or are there.
    Begun(Back),
    /// Not like this, for this reason, if it was asked for at all.
    None(Option<String>),
}

impl Job {
    /// Starts the arrival of a checkpoint's pages.
    pub(crate) fn arrive(&self, core: &mut Core, manifest: &Manifest) -> Phase<Arrival> {
        if self.config().config.restart == config::Restart::Eager {
            return Ok(Arrival::None(None));
        }
        let [here] = *core.team.all_hold(Step("lazy: devices"), [!core.has_device_regions()])?;
        if !here {
            let why = "device memory is filled before the program goes on";
            return Ok(Arrival::None(Some(why.into())));
        }
        let opened = self.open_all(core, manifest);
        let [all] = *core.team.all_hold(Step("lazy: open"), [opened.is_ok()])?;
        let rebuild = match opened {
            Ok(rebuild) if all => rebuild,
            Ok(_) => {
                let why = "another rank cannot read all it needs straight from the store";
                return Ok(Arrival::None(Some(why.into())));
            }
            Err(error) => return Ok(Arrival::None(Some(error.to_string()))),
        };
        let unclaimed = unclaimed(core, &rebuild);
        let marker = Marker::new(&self.store, manifest, core.team.rank());
        let begun = self.begin(core, rebuild, marker);
        let (begun, notes) = core.team.agree(Step("lazy: begin"), begun)?;
        match begun {
            Begun::Lazy(lazy) => core.lazy = Some(lazy),
            Begun::Filled(rebuild) => core.restored(*rebuild),
        }
        let levels = vec![Level::Local; core.team.size()];
        Ok(Arrival::Begun(Back { unclaimed, notes, levels }))
    }

    fn open_all(&self, core: &Core, manifest: &Manifest) -> Result<Rebuild> {
        check_ranks(manifest, core.team.size())?;
        let image = read_image(&*self.store, manifest, core.team.rank())?;
        check_fit(core, &image)?;
        let threads = self.restart_threads(core.team.size());
        Ok(Rebuild::open(&*self.store, &self.header, image, threads)?)
    }

    fn begin(&self, core: &Core, rebuild: Rebuild, marker: Marker) -> Result<(Begun, Vec<String>)> {
        let lock = self.store.lock(Lock::ReadShared)?;
        // SAFETY: `protect` obliges raw regions to stay mapped until `unprotect`, which waits, and
        // to be left alone during this call; the cells of safe regions are held for writing.
        match unsafe { Lazy::start(rebuild, core, lock, marker) } {
            Ok(lazy) => {
                // SAFETY: as above.
                unsafe { lazy.fill_others(core) }?;
                Ok((Begun::Lazy(lazy), Vec::new()))
            }
            Err((rebuild, why)) => {
                // SAFETY: as above.
                unsafe { fill(core, &rebuild, |_| true) }?;
                Ok((Begun::Filled(rebuild), vec![eager_note(why)]))
            }
        }
    }
}

enum Begun {
    Lazy(Lazy),
    Filled(Box<Rebuild>),
}

pub(crate) fn eager_note(why: &str) -> String {
    format!("restarted eagerly: {why}")
}

/// Fills regions of the image, as far as the program has protected them, from the store.
///
/// # Safety
/// Nobody uses the memory of these regions meanwhile.
pub(crate) unsafe fn fill(
    core: &Core,
    rebuild: &Rebuild,
    wanted: impl Fn(usize) -> bool + Sync,
) -> Result<()> {
    let regions = &rebuild.image().regions;
    let wanted = |at: usize| wanted(at) && core.regions.get(&regions[at].name).is_some();
    let destinations = (0..regions.len())
        .map(|at| {
            let own = core.regions.get(&regions[at].name).filter(|_| wanted(at))?;
            // SAFETY: the caller vouches for it.
            Some(unsafe { own.memory_mut() })
        })
        .collect();
    rebuild
        .rebuild(&MemorySink::new(destinations), wanted, &AtomicU64::new(0))
        .map_err(|failed| Error::from(standfast_restart::Error::from(failed)))
}
