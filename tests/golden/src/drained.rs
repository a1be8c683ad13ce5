//! Draining the stores of nodes to global storage.

use std::path::Path;
use std::sync::atomic::AtomicBool;

use anyhow::Result;
use standfast_drain::policy::Policy;
use standfast_drain::{Drain, Encoding, Error, Event, Flow, Progress, Until};
use standfast_store::{DirStore, Options};

use crate::cases::Case;
use crate::open::{global, store};

/// Drains all versions of a node; how many arrived, for which the last node to come counts.
pub(crate) fn drain(dir: &Path, case: &Case, node: usize) -> Result<usize> {
    let local = DirStore::open(store(dir, case, node), &Options::default())?;
    std::fs::create_dir_all(dir.join("global"))?;
    let global = DirStore::open(global(dir), &Options::default())?;
    let codec = "zstd:3".parse().map_err(anyhow::Error::msg)?;
    let encoding = Encoding { codec, threads: 2 };
    let (stop, progress) = (AtomicBool::new(false), Progress::default());
    let until = Until { policy: Policy::Every(1), follow: false, tries: 0 };
    let (mut arrived, mut failed) = (0, None);
    let mut tell = |event: Event<'_>| match event {
        Event::Arrived(..) => arrived += 1,
        // It waits for other nodes.
        Event::PassedOver(_, Error::Others { .. }) | Event::Begins(..) => {}
        Event::PassedOver(_, error) | Event::Waits(error, _) => failed = Some(error.to_string()),
    };
    let drain = Drain::open(&local, &global, encoding)?;
    drain.run(&until, &Flow::new(&local, &stop, &progress), &mut tell)?;
    failed.map_or(Ok(arrived), |why| Err(anyhow::Error::msg(why)))
}
