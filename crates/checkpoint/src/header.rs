//! The store header and its copies: reading whichever is intact, writing those that are missing.
//!
//! Invariants:
//! - A store that holds a manifest, an image or a segment is never taken for an empty one. Where its header
//!   or its manifests are gone, that is an error: beginning anew would remove what is left.
//! - A new store has all copies before it has anything else. So one with files of checkpoints that has
//!   neither a manifest nor the copy among them has lost its manifests. Version 0.1 made no copies: there
//!   it may also be a first checkpoint, or a first drain, that died.

use standfast_format::encrypted::EncryptedTail;
use standfast_format::{Kind, STORE_HEADER_BYTES_MAX, StoreHeader, name};
use standfast_store::{ObjectMeta, Store};

use crate::inventory::Damaged;
use crate::unreadable::Unreadable;

type Result<T> = std::result::Result<T, Unreadable>;

/// Reads the header that makes a place a store, from the first of its copies that is intact.
pub fn read_header(store: &dyn Store) -> Result<StoreHeader> {
    let mut damaged = None;
    for object in name::HEADERS {
        match read_copy(store, object) {
            Ok(Some(header)) => return Ok(header),
            Ok(None) => {}
            Err(error) if error.kind() == Kind::Corrupt => drop(damaged.get_or_insert(error)),
            Err(error) => return Err(error),
        }
    }
    let place = store.describe();
    match damaged {
        Some(error) => Err(error),
        None if !store.list(name::MANIFESTS)?.is_empty() || has_files(store)? => {
            Err(Unreadable::NoHeader(place))
        }
        None => Err(Unreadable::NoStore(place)),
    }
}

/// Writes the header and its copies where they are missing or damaged.
pub fn complete_header(store: &dyn Store, header: &StoreHeader) -> Result<()> {
    for object in name::HEADERS {
        match read_copy(store, object) {
            Ok(Some(found)) if found == *header => {}
            Ok(None) => store.put_new(object, &header.encode())?,
            Ok(Some(_)) => store.put(object, &header.encode())?,
            Err(error) if error.kind() == Kind::Corrupt => store.put(object, &header.encode())?,
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Copies of the header that are damaged. One that is missing is written when the job is next opened.
pub fn damaged_headers(store: &dyn Store) -> Vec<Damaged> {
    let damaged = |object: &str| {
        let error = read_copy(store, object).err()?;
        Some(Damaged { object: object.into(), error })
    };
    name::HEADERS.into_iter().filter_map(damaged).collect()
}

fn read_copy(store: &dyn Store, object: &str) -> Result<Option<StoreHeader>> {
    let bytes = match store.get(object, STORE_HEADER_BYTES_MAX) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == Kind::Missing => return Ok(None),
        Err(error) => return Err(error.into()),
    };
    let header = StoreHeader::decode(&bytes);
    header.map(Some).map_err(|source| match EncryptedTail::decode(&bytes) {
        Ok(tail) => {
            Unreadable::Encrypted { place: store.describe(), fingerprint: tail.fingerprint }
        }
        Err(_) => Unreadable::Object { object: object.into(), source },
    })
}

/// Fails where a store has lost its manifests.
pub fn check_manifests(store: &dyn Store) -> Result<()> {
    check_listed(store, &store.list(name::MANIFESTS)?)
}

/// Fails where a store may have lost its manifests: for who removes what no manifest names.
pub fn check_manifests_strictly(store: &dyn Store) -> Result<()> {
    match store.list(name::MANIFESTS)?.is_empty() && has_files(store)? {
        true => Err(Unreadable::NoManifests(store.describe())),
        false => Ok(()),
    }
}

/// As [`check_manifests`], where what is below `manifests/` is listed already.
pub(crate) fn check_listed(store: &dyn Store, manifests: &[ObjectMeta]) -> Result<()> {
    match manifests.is_empty() && !store.list(name::COPIES)?.is_empty() {
        true => check_manifests_strictly(store),
        false => Ok(()),
    }
}

/// Whether there are images or segments.
fn has_files(store: &dyn Store) -> Result<bool> {
    let is_image = |object: ObjectMeta| name::parse_image(&object.name).is_some();
    let is_segment = |object: ObjectMeta| name::parse_segment(&object.name).is_some();
    Ok(store.list(name::IMAGES)?.into_iter().any(is_image)
        || store.list(name::SEGMENTS)?.into_iter().any(is_segment))
}

#[cfg(test)]
mod tests;
