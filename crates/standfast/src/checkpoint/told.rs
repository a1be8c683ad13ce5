//! What the first rank tells the others about a checkpoint and about what the store holds now.

use standfast_comm::Failure;
use standfast_format::{Manifest, SegmentId};
use standfast_restart::{Damaged, Inventory};

use crate::error::Error;

/// The checkpoints of a store, on their way to other ranks.
#[derive(serde::Serialize, serde::Deserialize)]
pub(crate) struct Holdings {
    manifests: Vec<Vec<u8>>,
    damaged: Vec<(String, String)>,
}

impl Holdings {
    pub(crate) fn of(inventory: &Inventory) -> Self {
        let damaged = inventory.damaged.iter();
        Self {
            manifests: inventory.checkpoints.iter().map(Manifest::encode).collect(),
            damaged: damaged
                .map(|damaged| (damaged.object.clone(), damaged.error.to_string()))
                .collect(),
        }
    }

    /// Those that somebody else has told.
    pub(crate) fn told(manifests: Vec<Vec<u8>>, damaged: Vec<(String, String)>) -> Self {
        Self { manifests, damaged }
    }

    /// Replaces what a rank believed to be there.
    pub(crate) fn take_in(&self, inventory: &mut Inventory) {
        let mut checkpoints = Vec::with_capacity(self.manifests.len());
        let mut damaged = Vec::new();
        for bytes in &self.manifests {
            match Manifest::decode(bytes) {
                Ok(manifest) => checkpoints.push(manifest),
                Err(source) => {
                    let object = "a manifest told by the first rank".to_owned();
                    let error =
                        standfast_checkpoint::Unreadable::Object { object: object.clone(), source };
                    damaged.push(Damaged { object, error });
                }
            }
        }
        damaged.extend(self.damaged.iter().map(|(object, why)| Damaged {
            object: object.clone(),
            error: standfast_checkpoint::Unreadable::Told { why: why.clone() },
        }));
        inventory.checkpoints = checkpoints;
        inventory.damaged = damaged;
    }
}

/// What became of a checkpoint.
#[derive(serde::Serialize, serde::Deserialize)]
pub(crate) struct Told {
    pub(crate) outcome: std::result::Result<(), Failure>,
    /// It failed, and yet its manifest may exist: what it names must stay.
    pub(crate) files_stay: bool,
    /// Segments that are gone, or may be.
    pub(crate) removed: Vec<SegmentId>,
    pub(crate) notes: Vec<String>,
    holdings: Holdings,
}

impl Told {
    pub(crate) fn failed(error: &Error, files_stay: bool, inventory: &Inventory) -> Self {
        Self {
            outcome: Err(Failure::of(0, error)),
            files_stay,
            removed: Vec::new(),
            notes: Vec::new(),
            holdings: Holdings::of(inventory),
        }
    }

    pub(crate) fn committed(
        removed: Vec<SegmentId>,
        notes: Vec<String>,
        inventory: &Inventory,
    ) -> Self {
        let holdings = Holdings::of(inventory);
        Self { outcome: Ok(()), files_stay: false, removed, notes, holdings }
    }

    pub(crate) fn take_in(&self, inventory: &mut Inventory) {
        self.holdings.take_in(inventory);
    }
}
