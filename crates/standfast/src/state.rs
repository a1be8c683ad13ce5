//! Small state of any shape: whatever serde can write, next to the arrays.
//!
//! ```text
//! 0   length of what follows, u64, little-endian
//! 8   the value, by postcard
//!     zeros to the end of the region
//! ```
//! Data: value -> bytes when a checkpoint begins -> a region like any other -> value when a restart
//! has filled it.
//!
//! Why a region of one size: a restart fits regions by their length, and the value's may change with
//! every checkpoint. The rest of it is zero, and pages of zeros are not stored.
//!
//! Invariants:
//! - A value that cannot be written fails the checkpoint, on all ranks.
//! - Bytes that are no such value fail the restart; the value stays as it was.

use std::fmt;
use std::ops::{Deref, DerefMut};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use serde::{Serialize, de::DeserializeOwned};
use standfast_format::Version;

use crate::error::{Cause, Error, Result};
use crate::job::Job;
use crate::protected::{Array, Cell, Held, Hold, Protection};

/// Length of the region of every state.
const REGION_BYTES: usize = 1 << 20;
/// What the length before the value takes.
const PREFIX_BYTES: usize = 8;

/// A small value of any type that serde can write and read. Dropping it ends the protection.
///
/// ```
/// use standfast::Job;
///
/// #[derive(serde::Serialize, serde::Deserialize)]
/// struct Solver {
///     step: u64,
///     residuals: Vec<f64>,
/// }
///
/// # let dir = tempfile::tempdir().unwrap();
/// # let store = dir.path().to_str().unwrap();
/// let job = Job::builder().store(store).open()?;
/// let solver = job.state("solver", Solver { step: 0, residuals: vec![] })?;
/// solver.write().residuals.push(0.5);
/// job.checkpoint(None)?;
/// solver.write().residuals.clear();
/// job.restart()?;
/// assert_eq!(solver.read().residuals, [0.5]);
/// # Ok::<(), standfast::Error>(())
/// ```
#[must_use = "dropping it ends the protection"]
pub struct State<T> {
    protection: Protection,
    cell: Arc<StateCell<T>>,
}

impl Job {
    /// A protected value of at most a mebibyte, written by serde with every checkpoint. Its size may
    /// change; arrays belong into [`Job::alloc`], where unchanged pages cost nothing.
    ///
    /// A restart fails ([`Kind::Invalid`](crate::Kind::Invalid)) where the checkpoint has a value of
    /// another type under this name.
    pub fn state<T>(&self, name: &str, initial: T) -> Result<State<T>>
    where
        T: Serialize + DeserializeOwned + Send + Sync + 'static,
    {
        let bytes = Array::<u8>::zeros(REGION_BYTES)?;
        let memory = (bytes.memory.start(), bytes.memory.bytes());
        let cell = Arc::new(StateCell { value: RwLock::new(initial), bytes: Mutex::new(bytes) });
        // SAFETY: the cell keeps the memory until `State` is dropped, which unprotects first. Only
        // holding the cell writes to it, at the beginning of a checkpoint.
        let protection = unsafe { self.protect_cell(name, memory, 0, Arc::clone(&cell) as _) }?;
        Ok(State { protection, cell })
    }
}

impl<T> State<T> {
    /// The value, to be read. Waits for writers.
    pub fn read(&self) -> impl Deref<Target = T> + '_ {
        self.cell.value.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// The value, to be changed. Waits for other users.
    pub fn write(&self) -> impl DerefMut<Target = T> + '_ {
        self.cell.value.write().unwrap_or_else(PoisonError::into_inner)
    }

    /// The region's name.
    pub fn name(&self) -> &str {
        &self.protection.name
    }
}

impl<T> fmt::Debug for State<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("State").field("name", &self.name()).finish_non_exhaustive()
    }
}

struct StateCell<T> {
    value: RwLock<T>,
    bytes: Mutex<Array<u8>>,
}

impl<T: Serialize + DeserializeOwned + Send + Sync> Cell for StateCell<T> {
    fn hold(&self, name: &str) -> Hold<'_> {
        let value = self.value.try_read().map_err(|_| Error::borrowed(name))?;
        let mut bytes = self.bytes.lock().unwrap_or_else(PoisonError::into_inner);
        encode(&*value, &mut bytes).map_err(|why| Cause::State { region: name.into(), why })?;
        Ok(Box::new(Saved(value)))
    }

    fn hold_mut(&self, name: &str) -> Hold<'_> {
        let value = self.value.try_write().map_err(|_| Error::borrowed(name))?;
        let bytes = self.bytes.lock().unwrap_or_else(PoisonError::into_inner);
        Ok(Box::new(Loading { name: name.into(), value, bytes }))
    }
}

/// A value that is being saved.
struct Saved<'a, T>(#[expect(dead_code, reason = "it is held")] RwLockReadGuard<'a, T>);

impl<T> Held for Saved<'_, T> {}

/// A value that a restart will load.
struct Loading<'a, T> {
    name: String,
    value: RwLockWriteGuard<'a, T>,
    bytes: MutexGuard<'a, Array<u8>>,
}

impl<T: DeserializeOwned> Held for Loading<'_, T> {
    fn filled(&mut self, version: Version) -> Result<()> {
        *self.value = decode(&self.bytes).map_err(|why| {
            let (name, type_name) = (&self.name, std::any::type_name::<T>());
            let why = format!("its state {name:?} is no {type_name}: {why}");
            Cause::Unfit { version, why }
        })?;
        Ok(())
    }
}

fn encode<T: Serialize>(value: &T, bytes: &mut [u8]) -> std::result::Result<(), String> {
    let (prefix, rest) = bytes.split_at_mut(PREFIX_BYTES);
    let length = match postcard::to_slice(value, rest) {
        Ok(written) => written.len(),
        Err(postcard::Error::SerializeBufferFull) => {
            return Err("it takes more than a mebibyte; keep arrays in Job::alloc".into());
        }
        Err(error) => return Err(error.to_string()),
    };
    prefix.copy_from_slice(&(length as u64).to_le_bytes());
    rest[length..].fill(0);
    Ok(())
}

fn decode<T: DeserializeOwned>(bytes: &[u8]) -> std::result::Result<T, String> {
    let (prefix, rest) = bytes.split_first_chunk::<PREFIX_BYTES>().ok_or("it is too short")?;
    let length = usize::try_from(u64::from_le_bytes(*prefix)).ok();
    let value = length.and_then(|length| rest.get(..length)).ok_or("its length is wrong")?;
    match postcard::take_from_bytes(value) {
        Ok((value, [])) => Ok(value),
        Ok((_, left)) => Err(format!("{} bytes are left over", left.len())),
        Err(error) => Err(error.to_string()),
    }
}

#[cfg(test)]
mod tests;
