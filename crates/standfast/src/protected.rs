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
use standfast_format::Version;
use zerocopy::{FromBytes, Immutable, IntoBytes};

use crate::error::{Error, Result};
use crate::job::{Core, Job, lock};

/// Plain values: every pattern of bytes is one, and none holds a pointer.
pub trait Element: FromBytes + IntoBytes + Immutable + Send + Sync + 'static {}
impl<T: FromBytes + IntoBytes + Immutable + Send + Sync + 'static> Element for T {}

/// Something alive for as long as memory is held.
pub(crate) trait Held {
    /// A restart has filled the memory.
    fn filled(&mut self, _from: Version) -> Result<()> {
        Ok(())
    }
}

impl<T> Held for RwLockReadGuard<'_, Array<T>> {}
impl<T> Held for RwLockWriteGuard<'_, Array<T>> {}

/// What was held, if nobody else has it.
pub(crate) type Hold<'a> = Result<Box<dyn Held + 'a>>;

/// Memory that can be held against its user.
pub(crate) trait Cell: Send + Sync {
    /// For reading: a checkpoint.
    fn hold(&self, name: &str) -> Hold<'_>;
    /// For writing: a restart.
    fn hold_mut(&self, name: &str) -> Hold<'_>;
}

impl<T: Element> Cell for RwLock<Array<T>> {
    fn hold(&self, name: &str) -> Hold<'_> {
        Ok(Box::new(self.try_read().map_err(|_| Error::borrowed(name))?))
    }

    fn hold_mut(&self, name: &str) -> Hold<'_> {
        Ok(Box::new(self.try_write().map_err(|_| Error::borrowed(name))?))
    }
}

/// Holds all cells for reading.
pub(crate) fn hold_all(cells: &[(String, Arc<dyn Cell>)]) -> Result<Vec<Box<dyn Held + '_>>> {
    cells.iter().map(|(name, cell)| cell.hold(name)).collect()
}

/// Holds all cells for writing.
pub(crate) fn hold_all_mut(cells: &[(String, Arc<dyn Cell>)]) -> Result<Vec<Box<dyn Held + '_>>> {
    cells.iter().map(|(name, cell)| cell.hold_mut(name)).collect()
}

/// Ends the protection of a region when it is dropped, before the memory goes.
pub(crate) struct Protection {
    pub(crate) name: String,
    core: Weak<Mutex<Core>>,
}

impl Drop for Protection {
    fn drop(&mut self) {
        if let Some(core) = self.core.upgrade() {
            // It may have been unprotected by name already.
            let _ = lock(&core).unprotect(&self.name);
        }
    }
}

/// A protected array, on pages of its own. Dropping it ends the protection.
#[must_use = "dropping it ends the protection"]
pub struct Protected<T: Element> {
    protection: Protection,
    memory: Arc<RwLock<Array<T>>>,
}

impl Job {
    /// A protected array of zeros.
    ///
    /// ```
    /// use standfast::{Job, Level};
    ///
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let store = dir.path().to_str().unwrap();
    /// let job = Job::builder().store(store).job("doc").open()?;
    /// let field = job.alloc::<f64>("field", 1000)?;
    /// field.write()[0] = 1.5;
    /// let version = job.checkpoint(None)?;
    /// job.wait(version, Level::Local)?;
    ///
    /// field.write()[0] = 0.0;
    /// job.restart()?;
    /// assert_eq!(field.read()[0], 1.5);
    /// # Ok::<(), standfast::Error>(())
    /// ```
    pub fn alloc<T: Element>(&self, name: &str, len: usize) -> Result<Protected<T>> {
        let memory = Array::<T>::zeros(len)?;
        let (start, bytes) = (memory.memory.start(), memory.memory.bytes());
        let elem = u8::try_from(size_of::<T>()).ok().filter(|size| [1, 2, 4, 8, 16].contains(size));
        let memory = Arc::new(RwLock::new(memory));
        let cell = Arc::clone(&memory) as Arc<dyn Cell>;
        // SAFETY: the array keeps the memory until `Protected` is dropped, which unprotects first;
        // the cell keeps writers away while a checkpoint or restart uses it.
        let protection =
            unsafe { self.protect_cell(name, (start, bytes), elem.unwrap_or(0), cell) }?;
        Ok(Protected { protection, memory })
    }

    /// Protects the memory of a cell.
    ///
    /// # Safety
    /// The memory lives at least as long as the protection, and holding the cell keeps its users away.
    pub(crate) unsafe fn protect_cell(
        &self,
        name: &str,
        (start, bytes): (*mut u8, usize),
        elem: u8,
        cell: Arc<dyn Cell>,
    ) -> Result<Protection> {
        let mut core = self.core();
        // SAFETY: the caller vouches for the memory.
        unsafe { core.regions.protect(name, start, bytes, elem) }?;
        core.warm();
        core.cells.push((name.into(), cell));
        Ok(Protection { name: name.into(), core: Arc::downgrade(&self.core) })
    }
}

/// An array on pages of its own.
pub(crate) struct Array<T> {
    pub(crate) memory: Memory,
    len: usize,
    elements: PhantomData<T>,
}

impl<T: Element> Array<T> {
    pub(crate) fn zeros(len: usize) -> Result<Self> {
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
    /// Fails while a guard is alive.
    pub fn resize(&self, len: usize) -> Result<()> {
        let core = self.protection.core.upgrade();
        let mut core = core.as_deref().map(lock);
        if let Some(core) = &mut core {
            core.wait_taken();
        }
        let borrowed = || Error::borrowed(self.name());
        let mut memory = self.memory.try_write().map_err(|_| borrowed())?;
        let mut fresh = Array::<T>::zeros(len)?;
        let kept = len.min(memory.len());
        fresh.as_mut_bytes()[..kept * size_of::<T>()]
            .copy_from_slice(&memory.as_bytes()[..kept * size_of::<T>()]);
        if let Some(core) = core.as_mut().filter(|core| core.regions.get(self.name()).is_some()) {
            let (start, bytes) = (fresh.memory.start(), fresh.memory.bytes());
            // SAFETY: as in `alloc`; the old memory goes when nothing names it any more.
            unsafe { core.regions.replace(self.name(), start, bytes)? };
        }
        *memory = fresh;
        Ok(())
    }

    /// The region's name.
    pub fn name(&self) -> &str {
        &self.protection.name
    }
}

impl<T: Element> fmt::Debug for Protected<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Protected").field("name", &self.name()).finish_non_exhaustive()
    }
}

/// Lends an array for reading.
#[must_use = "dropping it gives the array back"]
pub struct ReadGuard<'a, T>(RwLockReadGuard<'a, Array<T>>);

/// Lends an array for writing.
#[must_use = "dropping it gives the array back"]
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
