//! What the running process knows of its checkpoints, at an address of its own.
//!
//! Why not static variables: those are captured and restored with everything else. A resumed
//! program must keep the settings, the process number and the threads of the process it is in.

use std::sync::atomic::{AtomicI32, AtomicU32, Ordering};

use standfast_launch::plan::{SIGNALS, Thread};

use crate::{system, zone};

/// Most threads of a program.
pub(crate) const THREADS_MAX: usize = 4096;
/// Most open files that are followed.
pub(crate) const FILES_MAX: usize = 1024;
/// Room for the settings.
pub(crate) const SETTINGS_MAX: usize = 32 << 10;

/// A thread that is asked to stop.
#[repr(C)]
pub(crate) struct Slot {
    /// Whose it is; 0: free.
    pub(crate) tid: AtomicI32,
    /// 1 once it stands still.
    pub(crate) stopped: AtomicU32,
    pub(crate) thread: Thread,
}

/// A descriptor and where it stood.
#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct FileAt {
    pub(crate) fd: u32,
    pub(crate) flags: u32,
    pub(crate) position: u64,
}

/// The page. All zero is its first state.
#[repr(C)]
pub(crate) struct Control {
    /// The process that it belongs to; a forked child inherits the page and must leave it alone.
    pub(crate) process: AtomicI32,
    /// 1 while a checkpoint is being taken.
    busy: AtomicU32,
    /// Counts checkpoints; threads stand still until it changes.
    pub(crate) round: AtomicU32,
    /// The twin that is at work; 0: none.
    pub(crate) twin: AtomicI32,
    /// How the last twin failed: its exit code, or less than 0 if it was killed.
    pub(crate) failed: AtomicI32,
    /// Where the C library keeps a thread's number, from its pointer.
    pub(crate) tid_offset: usize,
    /// Where a thread's restartable-sequence area lies from its pointer, and whether there is one.
    pub(crate) rseq: Option<isize>,
    pub(crate) settings_len: usize,
    pub(crate) settings: [u8; SETTINGS_MAX],
    pub(crate) actions: [[u64; 4]; SIGNALS],
    pub(crate) files_len: usize,
    pub(crate) files: [FileAt; FILES_MAX],
    pub(crate) slots_len: usize,
    pub(crate) slots: [Slot; THREADS_MAX],
}

impl Control {
    /// Makes the page for this process; the caller fills in the rest.
    pub(crate) fn create() -> Option<&'static mut Self> {
        let page = system::map(zone::CONTROL, size_of::<Self>())?;
        // SAFETY: fresh memory of the right size and alignment, and zero is a valid state.
        Some(unsafe { &mut *page.cast::<Self>() })
    }

    /// The page, if this process is the one that is protected.
    ///
    /// # Safety
    /// [`Control::create`] has succeeded in this process or in the one it was forked from.
    pub(crate) unsafe fn get() -> Option<&'static Self> {
        // SAFETY: the caller vouches for the page, which is never unmapped.
        let control = unsafe { &*(zone::CONTROL as *const Self) };
        (control.process.load(Ordering::Acquire) == system::pid()).then_some(control)
    }

    /// The page, to write what only the taker of a checkpoint writes.
    pub(crate) fn as_ptr(&self) -> *mut Self {
        zone::CONTROL as *mut Self
    }

    /// Begins a checkpoint; false while another one is being taken.
    pub(crate) fn claim(&self) -> bool {
        self.busy.compare_exchange(0, 1, Ordering::AcqRel, Ordering::Relaxed).is_ok()
    }

    /// Ends taking a checkpoint.
    pub(crate) fn release(&self) {
        self.busy.store(0, Ordering::Release);
    }

    /// The settings of this run.
    pub(crate) fn settings(&self) -> &[u8] {
        &self.settings[..self.settings_len]
    }
}
