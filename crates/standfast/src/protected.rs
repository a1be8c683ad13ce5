//! Memory that is protected from the start and used safely.
//!
//! [`Protected`] owns an array and lends it by guards, like a lock. A checkpoint holds every
//! array for reading and a restart holds it for writing, so no safe code can write to memory that
//! is being captured. A guard that is still alive makes the call fail with its region's name,
//! instead of blocking for ever.

use std::fmt;
use std::marker::PhantomData;
use std::ops::{Deref, DerefMut};
use std::sync::{Arc, Mutex, RwLock, RwLockReadGuard, RwLockWriteGuard, Weak};

use standfast_capture::Memory;
use zerocopy::{FromBytes, Immutable, IntoBytes};

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

impl<T: Element> Cell for RwLock<Array<T>> {
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

/// A protected array, on pages of its own. Dropping it ends the protection.
#[must_use = "dropping it ends the protection"]
pub struct Protected<T: Element> {
    memory: Arc<RwLock<Array<T>>>,
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
        let memory = Array::<T>::zeros(len)?;
        let (start, bytes) = (memory.memory.start(), memory.memory.bytes());
        let elem = u8::try_from(size_of::<T>()).ok().filter(|size| [1, 2, 4, 8, 16].contains(size));
        let memory = Arc::new(RwLock::new(memory));
        let mut core = self.core();
        // SAFETY: the array keeps the memory until `Protected` is dropped, which unprotects first;
        // the cell keeps writers away while a checkpoint or restart uses it.
        unsafe { core.regions.protect(name, start, bytes, elem.unwrap_or(0))? };
        core.warm();
        core.cells.push((name.into(), Arc::clone(&memory) as Arc<dyn Cell>));
        drop(core);
        Ok(Protected { memory, name: name.into(), core: Arc::downgrade(&self.core) })
    }
}

/// An array on pages of its own.
pub(crate) struct Array<T> {
    memory: Memory,
    len: usize,
    elements: PhantomData<T>,
}

impl<T: Element> Array<T> {
    fn zeros(len: usize) -> Result<Self> {
        let bytes = len.checked_mul(size_of::<T>());
        let none = standfast_capture::Error::NoMemory { bytes: usize::MAX };
        let memory = Memory::new(bytes.ok_or(none)?, align_of::<T>())?;
        Ok(Self { memory, len, elements: PhantomData })
    }
}

impl<T> Deref for Array<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        // SAFETY: aligned, so many elements long, and every pattern of bytes is an element.
        unsafe { std::slice::from_raw_parts(self.memory.start().cast(), self.len) }
    }
}

impl<T> DerefMut for Array<T> {
    fn deref_mut(&mut self) -> &mut [T] {
        // SAFETY: as above, and borrowed exclusively.
        unsafe { std::slice::from_raw_parts_mut(self.memory.start().cast(), self.len) }
    }
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

    /// Gives the array another length: elements are kept as far as it reaches, new ones are zero.
    /// The next checkpoint has the new length; a restart to an older one needs the older length.
    /// Fails with [`Error::Borrowed`] while a guard is alive.
    pub fn resize(&self, len: usize) -> Result<()> {
        let core = self.core.upgrade();
        let mut core = core.as_deref().map(lock);
        if let Some(core) = &mut core {
            core.wait_taken();
        }
        let borrowed = || Error::Borrowed { region: self.name.clone() };
        let mut memory = self.memory.try_write().map_err(|_| borrowed())?;
        let mut fresh = Array::<T>::zeros(len)?;
        let kept = len.min(memory.len());
        fresh.as_mut_bytes()[..kept * size_of::<T>()]
            .copy_from_slice(&memory.as_bytes()[..kept * size_of::<T>()]);
        if let Some(core) = core.as_mut().filter(|core| core.regions.get(&self.name).is_some()) {
            let (start, bytes) = (fresh.memory.start(), fresh.memory.bytes());
            // SAFETY: as in `alloc`; the old memory goes when nothing names it any more.
            unsafe { core.regions.replace(&self.name, start, bytes)? };
        }
        *memory = fresh;
        Ok(())
    }

    /// The region's name.
    pub fn name(&self) -> &str {
        &self.name
    }
}

impl<T: Element> fmt::Debug for Protected<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Protected").field("name", &self.name).finish_non_exhaustive()
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
pub struct ReadGuard<'a, T>(RwLockReadGuard<'a, Array<T>>);

/// Lends an array for writing.
pub struct WriteGuard<'a, T>(RwLockWriteGuard<'a, Array<T>>);

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

impl<T: fmt::Debug> fmt::Debug for ReadGuard<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}

impl<T: fmt::Debug> fmt::Debug for WriteGuard<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}
