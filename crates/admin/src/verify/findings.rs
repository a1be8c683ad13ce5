//! Findings: one per damaged object, however many places in it are damaged.

use std::collections::BTreeSet;

use standfast::{Kind, Version};
use standfast_format::name;
use standfast_restart::{Error, Unreadable};
use standfast_write::Error as PackError;

/// A damaged object.
#[derive(Debug)]
pub struct Finding {
    /// Its name in the store.
    pub object: String,
    /// What sort of damage.
    pub kind: Kind,
    /// What is wrong, at the first place found.
    pub what: String,
    /// How many places.
    pub count: usize,
    /// Checkpoints that need what is damaged.
    pub checkpoints: BTreeSet<Version>,
}

impl Finding {
    /// An error of one object.
    pub(super) fn new(
        object: String,
        error: impl Into<Error>,
        checkpoints: BTreeSet<Version>,
    ) -> Self {
        let error = error.into();
        Self { object, kind: error.kind(), what: what(&error), count: 1, checkpoints }
    }
}

/// What is wrong, without the object's name.
fn what(error: &Error) -> String {
    match error {
        Error::Metadata(Unreadable::Object { source, .. }) => source.to_string(),
        Error::Metadata(Unreadable::Mismatch { why, .. }) => (*why).to_owned(),
        Error::Page { slot, .. } => {
            format!("slot {slot}: the page does not have the hash it was stored with")
        }
        Error::Reference { region, page, owner, .. } => format!(
            "region {region:?}, page {page}: where rank {owner} stores it there is a page with another hash"
        ),
        Error::Pack(PackError::Segment { source, .. }) => source.to_string(),
        Error::Pack(PackError::Mismatch { why, .. }) => (*why).to_owned(),
        Error::Pack(PackError::Block { block, why, .. }) => format!("block {block}: {why}"),
        Error::Store(source) | Error::Pack(PackError::Store(source))
            if source.kind() == Kind::Missing =>
        {
            "it is missing".to_owned()
        }
        other => other.to_string(),
    }
}

/// The object that an error of opening an image's references is about, if it is a segment.
pub(super) fn segment_of(error: &Error) -> Option<String> {
    match error {
        Error::Page { segment, .. } => Some(name::segment(*segment)),
        Error::Pack(
            PackError::Segment { id, .. }
            | PackError::Mismatch { id, .. }
            | PackError::Block { id, .. },
        ) => Some(name::segment(*id)),
        _ => None,
    }
}
