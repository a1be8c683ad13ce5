//! Marks that lazy restarts have left ([`mark`]), in the light of what was found: a checkpoint that is
//! whole again loses its mark.

use serde_json::json;
use standfast::{Manifest, mark};
use standfast_format::name;
use standfast_restart::Inventory;

use super::check::Checked;
use crate::escape;
use crate::failure::Result;
use crate::output::{FAINT, Output, TITLE, WARN};
use crate::place::OpenJob;

/// Tells of marked checkpoints among those that were checked. `read`: their pages were read.
pub(super) fn settle(
    job: &OpenJob,
    inventory: &Inventory,
    checked: &Checked,
    read: bool,
    output: &Output,
) -> Result<()> {
    let marked = mark::attempts(&job.store.list(name::MARKS)?);
    for manifest in &inventory.checkpoints {
        let Manifest { version, attempt, .. } = *manifest;
        let sound = checked.sound.contains(&version);
        if !marked.contains(&attempt) || !(sound || checked.damaged.contains(&version)) {
            continue;
        }
        let why = mark::find(&*job.store, version, attempt).unwrap_or_default();
        let (cleared, what) = match (sound, read) {
            (false, _) => (false, "it is damaged: a restart passes it over".into()),
            (true, false) => {
                (false, "verify without --quick clears the mark if it is whole".into())
            }
            (true, true) => clear(job, manifest),
        };
        output.record("mark", json!({ "version": version, "what": why, "cleared": cleared }))?;
        output.line(format_args!(
            "{}   {}\n         {}\n         {}",
            output.paint(WARN, "marked"),
            output.paint(TITLE, format_args!("checkpoint {version}")),
            escape::name(&why),
            output.paint(FAINT, escape::name(&what)),
        ))?;
    }
    Ok(())
}

/// Clears a mark wherever it lies.
fn clear(job: &OpenJob, manifest: &Manifest) -> (bool, String) {
    for part in &job.parts {
        if let Err(error) = mark::clear(&**part, manifest.version, manifest.attempt) {
            return (false, format!("it is whole, but its mark stays: {error}"));
        }
    }
    (true, "it is whole: its mark is cleared".into())
}
