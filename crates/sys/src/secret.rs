//! A secret in memory: a page of its own that core dumps and checkpoints leave out, that stays out of
//! swap where the system allows it, and that is wiped when it is dropped.

use std::fmt;
use std::ops::{Deref, DerefMut};

use rustix::mm::{Advice, madvise, mlock};

use crate::aligned::{ALIGN, AlignedBuf};

/// A page of memory that nobody else shall see, zero at first.
pub struct Secret {
    page: AlignedBuf,
}

impl Secret {
    /// An empty one.
    pub fn new() -> Self {
        let page = AlignedBuf::with_len(ALIGN);
        let start = page.as_ptr().cast_mut().cast();
        // Where the system refuses, the secret is as visible as any other memory.
        // SAFETY: advice about a page of our own mapping, which nobody else uses.
        let _ = unsafe { madvise(start, ALIGN, Advice::LinuxDontDump) };
        // SAFETY: as above; locking changes nothing of its contents.
        let _ = unsafe { mlock(start, ALIGN) };
        Self { page }
    }

    /// Overwrites some of it with zeros, also where nobody reads them any more.
    pub fn wipe(&mut self, from: usize) {
        for byte in &mut self.page[from..] {
            // SAFETY: a byte that we borrow; volatile, so that the compiler leaves the write in.
            unsafe { std::ptr::write_volatile(byte, 0) };
        }
    }
}

impl Default for Secret {
    fn default() -> Self {
        Self::new()
    }
}

impl Drop for Secret {
    fn drop(&mut self) {
        self.wipe(0);
    }
}

impl Deref for Secret {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.page
    }
}

impl DerefMut for Secret {
    fn deref_mut(&mut self) -> &mut [u8] {
        &mut self.page
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret")
    }
}

#[cfg(test)]
mod tests;
