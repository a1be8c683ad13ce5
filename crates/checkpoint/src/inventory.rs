//! The inventory: which checkpoints a store holds, from its manifests alone.
//!
//! Data: store header and `manifests/` -> [`Inventory`], newest first, with the manifests that
//! could not be read beside it. Images are loaded when one is asked for.
//!
//! The newest manifest tells which others are *abandoned*: a run went back to an older one and went
//! on from there. The rest is the *line*, from which restarts choose and which `keep` counts.
//!
//! Invariants:
//! - A damaged manifest hides only its own checkpoint; it is reported, never skipped silently.
//! - One that cannot be read for another reason may be the newest ([`Inventory::unread`]).
//! - No manifest is written over another ([`Inventory::object_of`]).
//! - Every manifest and image in use carries the store's own id and the name it was found under.

use standfast_format::{
    DRAINS_BYTES_MAX, Digest, Drains, FRAME_BYTES, Image, Kind, Manifest, Rank, StoreHeader,
    Version,
    name::{self, ManifestName},
};
use standfast_store::{ObjectMeta, Store, prove_absent};

use crate::header::{check_listed, read_header};
use crate::unreadable::Unreadable;

type Result<T> = std::result::Result<T, Unreadable>;

/// Largest manifest or image a reader takes into memory: an image of 256 GiB of 4 KiB pages in
/// the worst order stays below.
const METADATA_BYTES_MAX: u64 = 1 << 30;

/// A manifest that could not be used.
#[derive(Debug)]
pub struct Damaged {
    /// The object's name.
    pub object: String,
    /// What is wrong with it.
    pub error: Unreadable,
}

impl Damaged {
    /// The version that its name tells.
    pub fn version(&self) -> Option<Version> {
        name::parse_manifest(&self.object).map(|name| name.version)
    }

    /// Whether it is proven to be damaged. Otherwise nobody knows what it holds.
    pub fn is_proven(&self) -> bool {
        self.error.kind().is_proof()
    }
}

/// The checkpoints of one store.
#[derive(Debug)]
pub struct Inventory {
    /// Identity and key of the store.
    pub header: StoreHeader,
    /// Checkpoints that were committed, newest first.
    pub checkpoints: Vec<Manifest>,
    /// Manifests that cannot be read.
    pub damaged: Vec<Damaged>,
}

/// What drains have told in a local store; `None` if nothing that can be read.
pub fn read_drains(store: &dyn Store) -> Option<Drains> {
    Drains::decode(&store.get(name::DRAINS, DRAINS_BYTES_MAX).ok()?).ok()
}

impl Inventory {
    /// Reads the header and every manifest of a store.
    pub fn read(store: &dyn Store) -> Result<Self> {
        let header = read_header(store)?;
        let listed = store.list(name::MANIFESTS)?;
        check_listed(store, &listed)?;
        Self::of(store, header, listed)
    }

    /// Reads every manifest of a store that has, or shall have, this header. That it has lost its manifests
    /// is for the caller to find out.
    pub fn survey(store: &dyn Store, header: StoreHeader) -> Result<Self> {
        Self::of(store, header, store.list(name::MANIFESTS)?)
    }

    fn of(store: &dyn Store, header: StoreHeader, listed: Vec<ObjectMeta>) -> Result<Self> {
        let mut checkpoints = Vec::new();
        let mut damaged = Vec::new();
        for object in listed {
            let Some(name) = name::parse_manifest(&object.name) else { continue };
            match read_manifest(store, &header, name) {
                Ok(manifest) => checkpoints.push(manifest),
                // Removed between listing and reading: pruned, not damaged.
                Err(error) if error.kind() == Kind::Missing => {}
                Err(error) => damaged.push(Damaged { object: object.name, error }),
            }
        }
        // Equal sequences happen when a manifest could not be read while the next was written.
        checkpoints
            .sort_by_key(|manifest| std::cmp::Reverse((manifest.sequence, manifest.taken_ns)));
        Ok(Self { header, checkpoints, damaged })
    }

    /// Whether a checkpoint is abandoned.
    pub fn is_abandoned(&self, manifest: &Manifest) -> bool {
        self.checkpoints.first().is_some_and(|newest| newest.abandons(manifest.sequence))
    }

    /// The checkpoints of the line that goes on, newest first.
    pub fn line(&self) -> impl Iterator<Item = &Manifest> {
        self.checkpoints.iter().filter(|manifest| !self.is_abandoned(manifest))
    }

    /// A manifest that may hold any checkpoint, also the newest: it could not be read, and is not
    /// proven to be damaged.
    pub fn unread(&self) -> Option<&Damaged> {
        self.damaged.iter().find(|damaged| !damaged.is_proven())
    }

    /// The name under which a manifest is to be written: with the attempt where another one, readable
    /// or not, may have the name of the version alone. One of the same line goes with the next prune.
    pub fn object_of(&self, manifest: &Manifest) -> String {
        let Manifest { version, attempt, level, .. } = *manifest;
        let plain = name::manifest(version, level);
        let other = |other: &Manifest| other.version == version && other.attempt != attempt;
        let is_taken = self.checkpoints.iter().any(other)
            || self.damaged.iter().any(|damaged| damaged.object == plain);
        if is_taken { name::manifest_of(version, attempt, level) } else { plain }
    }

    /// Whether only one checkpoint has this version.
    pub fn has_one(&self, version: Version) -> bool {
        self.checkpoints.iter().filter(|manifest| manifest.version == version).count() == 1
    }

    /// The checkpoint with this version, of the line if it has one, or why it cannot be used.
    pub fn checkpoint(&self, version: Version) -> Result<&Manifest> {
        let is_wanted = |manifest: &&Manifest| manifest.version == version;
        let found = self.line().find(is_wanted);
        found.or_else(|| self.checkpoints.iter().find(is_wanted)).ok_or_else(|| {
            let damaged = self.damaged.iter().find(|damaged| damaged.version() == Some(version));
            damaged.map_or(Unreadable::NoCheckpoint(version), |damaged| damaged.error.clone())
        })
    }

    /// The largest version there is, readable or not.
    pub fn version_max(&self) -> Option<Version> {
        let readable = self.checkpoints.iter().map(|manifest| manifest.version);
        readable.chain(self.damaged.iter().filter_map(Damaged::version)).max()
    }
}

fn read_manifest(store: &dyn Store, header: &StoreHeader, name: ManifestName) -> Result<Manifest> {
    let object = name.object();
    let bytes = get(store, &object, METADATA_BYTES_MAX)?;
    let manifest = Manifest::decode(&bytes)
        .map_err(|source| Unreadable::Object { object: object.clone(), source })?;
    if manifest.job != header.id {
        return Err(Unreadable::Mismatch { object, why: "it belongs to another store" });
    }
    if !name.is_of(&manifest) {
        return Err(Unreadable::Mismatch {
            object,
            why: "it holds the manifest of another checkpoint",
        });
    }
    Ok(manifest)
}

/// Reads a whole object; that it is missing is proven.
fn get(store: &dyn Store, object: &str, bytes_max: u64) -> Result<Vec<u8>> {
    Ok(store.get(object, bytes_max).map_err(|error| prove_absent(store, object, error))?)
}

/// Reads a rank's image and checks that it is the one the manifest names.
pub fn read_image(store: &dyn Store, manifest: &Manifest, rank: Rank) -> Result<Image> {
    let version = manifest.version;
    let wanted = manifest.image(rank).ok_or(Unreadable::NoRank { version, rank })?;
    let object = name::image(version, manifest.attempt, rank);
    let bytes = get(store, &object, wanted.file_bytes.min(METADATA_BYTES_MAX))?;
    decode_image(&bytes, manifest, rank)
}

/// Checks that these bytes, from wherever they came, are the image that the manifest names.
pub fn decode_image(bytes: &[u8], manifest: &Manifest, rank: Rank) -> Result<Image> {
    let version = manifest.version;
    let wanted = manifest.image(rank).ok_or(Unreadable::NoRank { version, rank })?;
    let object = name::image(version, manifest.attempt, rank);
    // The digest is the last part of the frame: compare it before anything is decoded.
    let digest_at = bytes.len().saturating_sub(size_of::<Digest>());
    if bytes.len() < FRAME_BYTES || bytes[digest_at..] != wanted.digest.0 {
        return Err(Unreadable::Mismatch { object, why: "it is not the image that was committed" });
    }
    let (image, _) = Image::decode(bytes)
        .map_err(|source| Unreadable::Object { object: object.clone(), source })?;
    if image.job != manifest.job || image.version != version || image.rank != rank {
        return Err(Unreadable::Mismatch {
            object,
            why: "it is the image of another checkpoint or rank",
        });
    }
    Ok(image)
}
