//! Waiting for space, requests of `standfast run`, and this node's name.

use standfast_format::name;

use super::LabKey;
use crate::config::text::{Words, word, word_of};

/// What a checkpoint does for which a bounded local store has no room.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WhenFull {
    /// It fails, before anything of the program is touched.
    Error,
    /// It waits for whoever holds what could go.
    Wait,
}

const WHEN_FULLS: Words<WhenFull> = &[("error", WhenFull::Error), ("wait", WhenFull::Wait)];

pub(super) const NODE: LabKey = LabKey {
    name: "node",
    values: "NAME, host",
    help: "Name of this node; host: the host's own",
    default: "host",
    set: |config, text| {
        name::check_job(text).map_err(|error| error.to_string())?;
        config.node = text.into();
        Ok(())
    },
    show: |config| config.node.clone(),
};

pub(super) const WHEN_FULL: LabKey = LabKey {
    name: "when_full",
    values: "error, wait",
    help: "When the size in keep is reached and nothing can be freed: error, wait (for a drain or a reader)",
    default: "error",
    set: |config, text| word(&mut config.when_full, WHEN_FULLS, text),
    show: |config| word_of(config.when_full, WHEN_FULLS).into(),
};

pub(super) const RUN_REQUEST: LabKey = LabKey {
    name: "run_request",
    values: "FILE",
    help: "File by which 'standfast run' requests a checkpoint at the next point(); set by it",
    default: "",
    set: |config, text| {
        config.ask = text.into();
        Ok(())
    },
    show: |config| config.ask.clone(),
};
