//! The inventory: which checkpoints a store holds, from its manifests alone.
//!
//! Data: store header and `manifests/` -> [`Inventory`], newest first, with the manifests that
//! could not be read beside it. Images are loaded when one is asked for.
//!
//! Invariants:
//! - A damaged manifest hides only its own checkpoint; it is reported, never skipped silently.
//! - Every manifest and image in use carries the store's own id and the name it was found under.

use standfast_format::{
    DRAINS_BYTES_MAX, Digest, Drains, FRAME_BYTES, Image, Kind, Level, Manifest, Rank,
    STORE_HEADER_BYTES_MAX, StoreHeader, Version, name,
};
use standfast_store::Store;

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
        name::parse_manifest(&self.object).map(|(version, _)| version)
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

/// Reads the header that makes a place a store.
pub fn read_header(store: &dyn Store) -> Result<StoreHeader> {
    let bytes = match store.get(name::STORE, STORE_HEADER_BYTES_MAX) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == Kind::Missing => {
            return Err(Unreadable::NoStore { place: store.describe() });
        }
        Err(error) => return Err(error.into()),
    };
    StoreHeader::decode(&bytes)
        .map_err(|source| Unreadable::Object { object: name::STORE.into(), source })
}

/// What drains have told in a local store; `None` if nothing that can be read.
pub fn read_drains(store: &dyn Store) -> Option<Drains> {
    Drains::decode(&store.get(name::DRAINS, DRAINS_BYTES_MAX).ok()?).ok()
}

impl Inventory {
    /// Reads the header and every manifest of a store.
    pub fn read(store: &dyn Store) -> Result<Self> {
        let header = read_header(store)?;
        let mut checkpoints = Vec::new();
        let mut damaged = Vec::new();
        for object in store.list(name::MANIFESTS)? {
            let Some((version, level)) = name::parse_manifest(&object.name) else { continue };
            match read_manifest(store, &header, version, level) {
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

    /// The checkpoint with this version, or why it cannot be used.
    pub fn checkpoint(&self, version: Version) -> Result<&Manifest> {
        let found = self.checkpoints.iter().find(|manifest| manifest.version == version);
        found.ok_or_else(|| {
            let damaged = self.damaged.iter().find(|damaged| damaged.version() == Some(version));
            damaged.map_or(Unreadable::NoCheckpoint { version }, |damaged| damaged.error.clone())
        })
    }

    /// The largest version there is, readable or not.
    pub fn version_max(&self) -> Option<Version> {
        let readable = self.checkpoints.iter().map(|manifest| manifest.version);
        readable.chain(self.damaged.iter().filter_map(Damaged::version)).max()
    }
}

fn read_manifest(
    store: &dyn Store,
    header: &StoreHeader,
    version: Version,
    level: Level,
) -> Result<Manifest> {
    let object = name::manifest(version, level);
    let bytes = store.get(&object, METADATA_BYTES_MAX)?;
    let manifest = Manifest::decode(&bytes)
        .map_err(|source| Unreadable::Object { object: object.clone(), source })?;
    if manifest.job != header.id {
        return Err(Unreadable::Mismatch { object, why: "it belongs to another store" });
    }
    if manifest.version != version || manifest.level != level {
        return Err(Unreadable::Mismatch {
            object,
            why: "it holds the manifest of another checkpoint",
        });
    }
    Ok(manifest)
}

/// Reads a rank's image and checks that it is the one the manifest names.
pub fn read_image(store: &dyn Store, manifest: &Manifest, rank: Rank) -> Result<Image> {
    let version = manifest.version;
    let wanted = manifest.image(rank).ok_or(Unreadable::NoRank { version, rank })?;
    let object = name::image(version, manifest.attempt, rank);
    let bytes = store.get(&object, wanted.file_bytes.min(METADATA_BYTES_MAX))?;
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
