//! Absence, proven: who goes on without an object must know that it is not there.

use standfast_format::Kind;

use crate::contract::Store;
use crate::error::{Error, Object};

/// What a failure to find an object means: that it is missing only counts if a listing of its
/// directory does not have it either.
pub fn prove_absent(store: &dyn Store, name: &str, error: Error) -> Error {
    if error.kind() != Kind::Missing {
        return error;
    }
    let directory = name.rsplit_once('/').map_or("", |(directory, _)| directory);
    match store.list(directory) {
        Ok(listed) if listed.iter().any(|object| object.name == name) => {
            Error::Contradiction(Object::new(name, store.describe()))
        }
        Ok(_) => error,
        Err(unknown) => unknown,
    }
}
