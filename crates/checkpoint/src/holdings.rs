//! The checkpoints of a store, on their way to another process.

use standfast_format::{Kind, Manifest};

use crate::inventory::{Damaged, Inventory};
use crate::unreadable::Unreadable;

/// What an inventory has, as bytes and words.
#[derive(Clone, Debug, Default, serde::Serialize, serde::Deserialize)]
pub struct Holdings {
    /// All manifests, newest first.
    manifests: Vec<Vec<u8>>,
    /// Manifests that cannot be read, the exit code of the kind of failure, and why.
    damaged: Vec<(String, i32, String)>,
}

impl Holdings {
    /// What an inventory has.
    pub fn of(inventory: &Inventory) -> Self {
        let why = |Damaged { object, error }: &Damaged| {
            (object.clone(), error.kind().exit_code(), error.to_string())
        };
        Self {
            manifests: inventory.checkpoints.iter().map(Manifest::encode).collect(),
            damaged: inventory.damaged.iter().map(why).collect(),
        }
    }

    /// Whether there is no checkpoint that can be read.
    pub fn is_empty(&self) -> bool {
        self.manifests.is_empty()
    }

    /// Replaces what a process believed to be there.
    pub fn take_in(&self, inventory: &mut Inventory) {
        let mut checkpoints = Vec::with_capacity(self.manifests.len());
        let mut damaged = Vec::new();
        for bytes in &self.manifests {
            match Manifest::decode(bytes) {
                Ok(manifest) => checkpoints.push(manifest),
                Err(source) => {
                    let object = "a manifest told by the first rank".to_owned();
                    let error = Unreadable::Object { object: object.clone(), source };
                    damaged.push(Damaged { object, error });
                }
            }
        }
        damaged.extend(self.damaged.iter().map(|(object, code, why)| {
            let kind = Kind::from_exit_code(*code).unwrap_or(Kind::Bug);
            Damaged { object: object.clone(), error: Unreadable::Told { kind, why: why.clone() } }
        }));
        inventory.checkpoints = checkpoints;
        inventory.damaged = damaged;
    }
}
