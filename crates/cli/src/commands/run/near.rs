//! What a whole program goes on from comes near first.
//!
//! Data: global storage, where it has something newer than the node -> the local store, as `fetch`
//! brings it -> the launcher reads it there.
//!
//! Why a copy: the twins that take the next checkpoints see the local store only, where they find
//! the pages that they need not store again and the number that they have to go on from.

use std::sync::atomic::AtomicBool;

use serde_json::json;
use standfast::config::Config;
use standfast::location;
use standfast_drain::{Drain, Flow, Progress};
use standfast_format::{Manifest, Version};
use standfast_restart::{Inventory, Unreadable};
use standfast_store::Store;

use super::remark;
use crate::args::RestartFrom;
use crate::failure::{Failure, Result};
use crate::output::Output;

/// Brings what the node lacks: the checkpoint that is asked for, or the newest.
pub(super) fn bring(config: &Config, from: RestartFrom, output: &Output) -> Result<()> {
    let Some(global) = location::open_global(config)? else { return Ok(()) };
    let local = location::open_job(config)?;
    let near = checkpoints(&*local)?;
    let far = match checkpoints(&*global) {
        Ok(far) => far,
        // A network that is down is no reason to begin anew, but to go on with what there is.
        Err(failure) if near.is_empty() => return Err(failure),
        Err(failure) => {
            let (kind, message) = failure.summary();
            let text = format!("global storage was not asked: {message}");
            remark(output, &text, "not_asked", json!({ "kind": kind, "message": message }));
            return Ok(());
        }
    };
    let Some(wanted) = wanted(from, &near, &far) else { return Ok(()) };
    let version = wanted.version;
    let text = format!("checkpoint {version} comes from global storage");
    remark(output, &text, "fetching", json!({ "version": version }));
    let (stop, progress) = (AtomicBool::new(false), Progress::default());
    let flow = Flow::new(&*local, &stop, &progress);
    Drain::back(&*global, &*local, config.threads())?.carry(wanted, &flow)?;
    Ok(())
}

/// Newest first; none where there is no store yet.
fn checkpoints(store: &dyn Store) -> Result<Vec<Manifest>> {
    match Inventory::read(store) {
        Ok(inventory) => Ok(inventory.checkpoints),
        Err(Unreadable::NoStore { .. }) => Ok(Vec::new()),
        Err(error) => Err(Failure::from(error)),
    }
}

/// Who begins anew brings the newest, too, where the node has nothing: numbers go on from it.
fn wanted<'a>(from: RestartFrom, near: &[Manifest], far: &'a [Manifest]) -> Option<&'a Manifest> {
    let newest = |all: &[Manifest]| all.iter().map(|manifest| manifest.sequence).max();
    match from {
        RestartFrom::Version(version) => {
            let is_it = |manifest: &&Manifest| manifest.version == Version(version);
            if near.iter().any(|manifest| is_it(&manifest)) {
                return None;
            }
            far.iter().find(is_it)
        }
        RestartFrom::Never if !near.is_empty() => None,
        RestartFrom::Never | RestartFrom::Auto => {
            let best = far.iter().max_by_key(|manifest| manifest.sequence)?;
            newest(near).is_none_or(|near| best.sequence > near).then_some(best)
        }
    }
}
