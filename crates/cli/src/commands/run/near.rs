//! What a whole program goes on from comes near first.
//!
//! Data: global storage, where it has something newer than the node -> the local store, as `fetch`
//! brings it -> the launcher reads it there.
//!
//! Why a copy: the twins that take the next checkpoints see the local store only, where they find
//! the pages that they need not store again and the number that they have to go on from.

use serde_json::json;
use standfast::config::{Config, RestartFrom};
use standfast::{Manifest, Version};
use standfast_admin::drain::Near;

use super::remark;
use crate::failure::{Failure, Result};
use crate::output::Output;

/// Brings what the node lacks: the checkpoint that is asked for, or the newest.
pub(super) fn bring(config: &Config, from: RestartFrom, output: &Output) -> Result<()> {
    let Some(both) = Near::look(config)? else { return Ok(()) };
    let far = match both.there() {
        Ok(far) => far,
        // What is newest nobody knows then: going on from what is here might be a step back.
        Err(error) if both.here.is_empty() || from == RestartFrom::Auto => {
            return Err(Failure::from(error).advise(match both.here.first() {
                Some(own) => {
                    format!("try again, or go on from what is here: --restart {}", own.version)
                }
                None => "try again".into(),
            }));
        }
        Err(error) => {
            let (kind, message) = Failure::from(error).summary();
            let text = format!("global storage was not asked: {message}");
            remark(output, &text, "not_asked", json!({ "kind": kind, "message": message }));
            return Ok(());
        }
    };
    let Some(wanted) = wanted(from, &both.here, &far) else { return Ok(()) };
    let version = wanted.version;
    let text = format!("checkpoint {version} comes from global storage");
    remark(output, &text, "fetching", json!({ "version": version }));
    Ok(both.bring(wanted)?)
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
        _ => {
            let best = far.iter().max_by_key(|manifest| manifest.sequence)?;
            newest(near).is_none_or(|near| best.sequence > near).then_some(best)
        }
    }
}
