//! Reading and writing the history of a job in one of its stores.

use standfast_format::{HISTORY_BYTES_MAX, History, Kind, StoreHeader, name};
use standfast_store::Store;

use crate::unreadable::Unreadable;

/// What a store says of the job's starts; `None` where it says nothing.
pub fn read(store: &dyn Store, header: &StoreHeader) -> Result<Option<History>, Unreadable> {
    let object = name::HISTORY.to_owned();
    let bytes = match store.get(name::HISTORY, HISTORY_BYTES_MAX) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == Kind::Missing => return Ok(None),
        Err(error) => return Err(error.into()),
    };
    match History::decode(&bytes) {
        Ok(history) if history.job == header.id => Ok(Some(history)),
        Ok(_) => Err(Unreadable::Mismatch { object, why: "it belongs to another store" }),
        Err(source) => Err(Unreadable::Object { object, source }),
    }
}

/// Writes it, durable when this returns.
pub fn write(store: &dyn Store, history: &History) -> standfast_store::Result<()> {
    store.put(name::HISTORY, &history.encode())
}

/// Brings a store up to date: what it has is replaced if it is older, or cannot be read.
pub fn update(
    store: &dyn Store,
    header: &StoreHeader,
    history: &History,
) -> standfast_store::Result<()> {
    match read(store, header) {
        Ok(Some(own)) if own.revision >= history.revision => Ok(()),
        _ => write(store, history),
    }
}
