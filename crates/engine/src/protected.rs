//! Memory that is protected from the start and used safely.
//!
//! [`Protected`] owns an array and lends it by guards, like a lock. A checkpoint holds every
//! array for reading and a restart holds it for writing, so no safe code can write to memory that
//! is being captured. A guard that is still alive makes the call fail with its region's name,
//! instead of blocking for ever.

use std::ops::{Deref, DerefMut};
use std::sync::{Arc, Mutex, RwLock, RwLockReadGuard, RwLockWriteGuard, Weak};

use zerocopy::{FromBytes, FromZeros, Immutable, IntoBytes};

use crate::error::{Error, Result};
use crate::job::{Core, Job, lock};

/// Plain values: every pattern of bytes is one, and none holds a pointer.
pub trait Element: FromBytes + IntoBytes + Immutable + Send + Sync + 'static {}
impl<T: FromBytes + IntoBytes + Immutable + Send + Sync + 'static> Element for T {}

/// Something alive for as long as memory is held.
pub(crate) trait Held {}
impl<T> Held for T {}

/// Memory that can be held against its user.
pub(crate) trait Cell: Send + Sync {
    fn hold(&self) -> Option<Box<dyn Held + '_>>;
    fn hold_mut(&self) -> Option<Box<dyn Held + '_>>;
}

impl<T: Element> Cell for RwLock<Box<[T]>> {
    fn hold(&self) -> Option<Box<dyn Held + '_>> {
        Some(Box::new(self.try_read().ok()?))
    }

    fn hold_mut(&self) -> Option<Box<dyn Held + '_>> {
        Some(Box::new(self.try_write().ok()?))
    }
}

/// Holds all cells for reading.
pub(crate) fn hold_all(cells: &[(String, Arc<dyn Cell>)]) -> Result<Vec<Box<dyn Held + '_>>> {
    hold_each(cells, |cell| cell.hold())
}

/// Holds all cells for writing.
pub(crate) fn hold_all_mut(cells: &[(String, Arc<dyn Cell>)]) -> Result<Vec<Box<dyn Held + '_>>> {
    hold_each(cells, |cell| cell.hold_mut())
}

fn hold_each<'a>(
    cells: &'a [(String, Arc<dyn Cell>)],
    hold: impl Fn(&'a dyn Cell) -> Option<Box<dyn Held + 'a>>,
) -> Result<Vec<Box<dyn Held + 'a>>> {
    cells
        .iter()
        .map(|(name, cell)| hold(&**cell).ok_or_else(|| Error::Borrowed { region: name.clone() }))
        .collect()
}

/// A protected array. Dropping it ends the protection.
pub struct Protected<T: Element> {
    memory: Arc<RwLock<Box<[T]>>>,
    name: String,
    core: Weak<Mutex<Core>>,
}

impl Job {
    /// A protected array of zeros.
    ///
    /// ```
    /// use standfast::{Job, Level};
    ///
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let store = dir.path().to_str().unwrap();
    /// let job = Job::open(&[("store", store), ("job", "doc")])?;
    /// let field = job.alloc::<f64>("field", 1000)?;
    /// field.write()[0] = 1.5;
    /// let version = job.checkpoint(None)?;
    /// job.wait(version, Level::Local)?;
    ///
    /// field.write()[0] = 0.0;
    /// job.restart(None)?;
    /// assert_eq!(field.read()[0], 1.5);
    /// # Ok::<(), standfast::Error>(())
    /// ```
    pub fn alloc<T: Element>(&self, name: &str, len: usize) -> Result<Protected<T>> {
        let mut memory = zeros::<T>(len);
        let bytes = memory.as_mut_bytes();
        let (start, bytes) = (bytes.as_mut_ptr(), bytes.len());
        let elem = u8::try_from(size_of::<T>()).ok().filter(|size| [1, 2, 4, 8, 16].contains(size));
        let memory = Arc::new(RwLock::new(memory));
        let mut core = self.core();
        // SAFETY: the box keeps the memory until `Protected` is dropped, which unprotects first;
        // the cell keeps writers away while a checkpoint or restart uses it.
        unsafe { core.regions.protect(name, start, bytes, elem.unwrap_or(0))? };
        core.cells.push((name.into(), Arc::clone(&memory) as Arc<dyn Cell>));
        drop(core);
        Ok(Protected { memory, name: name.into(), core: Arc::downgrade(&self.core) })
    }
}

fn zeros<T: FromZeros>(len: usize) -> Box<[T]> {
    let mut memory = Vec::with_capacity(len);
    memory.resize_with(len, T::new_zeroed);
    memory.into_boxed_slice()
}

impl<T: Element> Protected<T> {
    /// The array, to be read. Waits for writers.
    pub fn read(&self) -> ReadGuard<'_, T> {
        ReadGuard(self.memory.read().unwrap_or_else(std::sync::PoisonError::into_inner))
    }

    /// The array, to be changed. Waits for other users.
    pub fn write(&self) -> WriteGuard<'_, T> {
        WriteGuard(self.memory.write().unwrap_or_else(std::sync::PoisonError::into_inner))
    }

    /// The region's name.
    pub fn name(&self) -> &str {
        &self.name
    }
}

impl<T: Element> Drop for Protected<T> {
    fn drop(&mut self) {
        if let Some(core) = self.core.upgrade() {
            // It may have been unprotected by name already.
            let _ = lock(&core).unprotect(&self.name);
        }
    }
}

/// Lends an array for reading.
pub struct ReadGuard<'a, T>(RwLockReadGuard<'a, Box<[T]>>);

/// Lends an array for writing.
pub struct WriteGuard<'a, T>(RwLockWriteGuard<'a, Box<[T]>>);

impl<T> Deref for ReadGuard<'_, T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        &self.0
    }
}

impl<T> Deref for WriteGuard<'_, T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        &self.0
    }
}

impl<T> DerefMut for WriteGuard<'_, T> {
    fn deref_mut(&mut self) -> &mut [T] {
        &mut self.0
    }
}
