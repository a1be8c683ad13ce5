//! A userfaultfd: page faults told to user space, or noted by the kernel.
//!
//! One handle serves one purpose: a mapping can be registered with one handle only, and whether
//! writes are noted (asynchronous) or held up (synchronous) is chosen when the handle is opened.

use std::io;
use std::ops::Range;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

use linux_raw_sys::general::{
    UFFD_API, UFFD_EVENT_PAGEFAULT, UFFD_EVENT_REMOVE, UFFD_FEATURE_EVENT_REMOVE,
    UFFD_FEATURE_WP_ASYNC, UFFD_FEATURE_WP_UNPOPULATED, UFFD_USER_MODE_ONLY,
    UFFDIO_REGISTER_MODE_MISSING, UFFDIO_REGISTER_MODE_WP, uffd_msg, uffdio_api, uffdio_copy,
    uffdio_range, uffdio_register, uffdio_writeprotect, uffdio_zeropage,
};
use linux_raw_sys::ioctl::{
    UFFDIO_API, UFFDIO_COPY, UFFDIO_REGISTER, UFFDIO_UNREGISTER, UFFDIO_WAKE, UFFDIO_WRITEPROTECT,
    UFFDIO_ZEROPAGE,
};

/// `UFFDIO_WRITEPROTECT_MODE_WP` of the kernel's header.
const WRITEPROTECT_MODE_WP: u64 = 1;
/// Protected in steps: other threads' page faults wait no longer than one step takes.
const STEP: usize = 64 << 20;
/// Events read by one call.
const EVENTS: usize = 64;

/// What a handle tells.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Event {
    /// Somebody is held up at this address.
    Fault(usize),
    /// The program is about to give the contents of this range back. It waits until this is read.
    Removed(Range<usize>),
}

/// What a handle is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// First writes are noted by the kernel; nobody waits.
    NoteWrites,
    /// First writes wait until they are let through.
    HoldWrites,
    /// First touches of pages that are not there wait until the page is brought.
    Missing,
}

/// An open userfaultfd.
pub(crate) struct Userfault(OwnedFd);

impl Userfault {
    /// Opens a handle; `None` where the kernel has none or forbids it.
    ///
    /// Whoever is held up must be held up in system calls too: a handle that only knows faults of
    /// user code would make `read(2)` into such memory fail. So those purposes need a handle that
    /// privileges, `vm.unprivileged_userfaultfd` or access to `/dev/userfaultfd` give.
    pub(crate) fn open(purpose: Purpose) -> Option<Self> {
        let flags = libc::O_CLOEXEC | libc::O_NONBLOCK;
        let handle = match purpose {
            Purpose::NoteWrites => by_call(flags | UFFD_USER_MODE_ONLY as i32)?,
            _ => by_call(flags).or_else(|| by_device(flags))?,
        };
        let features = match purpose {
            Purpose::NoteWrites => UFFD_FEATURE_WP_ASYNC | UFFD_FEATURE_WP_UNPOPULATED,
            Purpose::HoldWrites => UFFD_FEATURE_WP_UNPOPULATED | UFFD_FEATURE_EVENT_REMOVE,
            Purpose::Missing => 0,
        };
        let mut api = uffdio_api { api: u64::from(UFFD_API), features: features.into(), ioctls: 0 };
        // SAFETY: the structure is the one this call reads and writes.
        unsafe { control(&handle, UFFDIO_API, &mut api) }.ok()?;
        Some(Self(handle))
    }

    /// Registers a range of whole pages for first writes.
    pub(crate) fn register_writes(&self, range: &Range<usize>) -> io::Result<()> {
        self.register(range, UFFDIO_REGISTER_MODE_WP)
    }

    /// Registers a range of whole pages for pages that are not there.
    pub(crate) fn register_missing(&self, range: &Range<usize>) -> io::Result<()> {
        self.register(range, UFFDIO_REGISTER_MODE_MISSING)
    }

    fn register(&self, range: &Range<usize>, mode: u32) -> io::Result<()> {
        let mut register =
            uffdio_register { range: kernel_range(range), mode: mode.into(), ioctls: 0 };
        // SAFETY: the structure is the one this call reads and writes.
        unsafe { control(&self.0, UFFDIO_REGISTER, &mut register) }
    }

    /// Ends the registration: everything is let through. Memory that is gone has none.
    pub(crate) fn unregister(&self, range: &Range<usize>) {
        let mut whole = kernel_range(range);
        // SAFETY: the structure is the one this call reads.
        let _ = unsafe { control(&self.0, UFFDIO_UNREGISTER, &mut whole) };
        // The kernel lets held-up writes through but wakes nobody.
        self.wake(range);
    }

    /// Protects a range of whole registered pages against writes.
    pub(crate) fn protect(&self, range: &Range<usize>) -> io::Result<()> {
        steps(range).try_for_each(|step| again(|| self.write_protect(&step, WRITEPROTECT_MODE_WP)))
    }

    /// Lets writes to a range through, and wakes who waits for that. `EAGAIN` while the program
    /// changes its mappings and waits for that to be read.
    pub(crate) fn release(&self, range: &Range<usize>) -> io::Result<()> {
        self.write_protect(range, 0)
    }

    fn write_protect(&self, range: &Range<usize>, mode: u64) -> io::Result<()> {
        let mut protect = uffdio_writeprotect { range: kernel_range(range), mode };
        // SAFETY: the structure is the one this call reads.
        unsafe { control(&self.0, UFFDIO_WRITEPROTECT, &mut protect) }
    }

    /// Brings missing pages from `source` and wakes who waits; false if one of them is there.
    pub(crate) fn bring(&self, range: &Range<usize>, source: &[u8]) -> io::Result<bool> {
        assert!(source.len() >= range.len(), "as many bytes as are brought");
        let mut copy = uffdio_copy {
            dst: range.start as u64,
            src: source.as_ptr() as u64,
            len: range.len() as u64,
            mode: 0,
            copy: 0,
        };
        // SAFETY: the structure is the one this call uses, and the source is long enough.
        brought(again(|| unsafe { control(&self.0, UFFDIO_COPY, &mut copy) }))
    }

    /// Brings pages of zeros and wakes who waits; false if one of them is there.
    pub(crate) fn bring_zeros(&self, range: &Range<usize>) -> io::Result<bool> {
        let mut zero = uffdio_zeropage { range: kernel_range(range), mode: 0, zeropage: 0 };
        // SAFETY: the structure is the one this call uses.
        brought(again(|| unsafe { control(&self.0, UFFDIO_ZEROPAGE, &mut zero) }))
    }

    /// Wakes who waits for a range: the fault happens again if it must.
    pub(crate) fn wake(&self, range: &Range<usize>) {
        let mut range = kernel_range(range);
        // SAFETY: the structure is the one this call reads.
        let _ = unsafe { control(&self.0, UFFDIO_WAKE, &mut range) };
    }

    /// What waits to be told; nothing if there is nothing now.
    pub(crate) fn events(&self, mut each: impl FnMut(Event)) {
        // SAFETY: a message is plain numbers, for which zeros are valid.
        let mut messages: [uffd_msg; EVENTS] = unsafe { std::mem::zeroed() };
        let room = size_of_val(&messages);
        // SAFETY: the array has this room, and the kernel writes whole messages.
        let got = unsafe { libc::read(self.0.as_raw_fd(), messages.as_mut_ptr().cast(), room) };
        let got = usize::try_from(got).unwrap_or(0) / size_of::<uffd_msg>();
        for message in &messages[..got] {
            match u32::from(message.event) {
                UFFD_EVENT_PAGEFAULT => {
                    // SAFETY: the event says which member is meant.
                    each(Event::Fault(unsafe { message.arg.pagefault.address } as usize));
                }
                UFFD_EVENT_REMOVE => {
                    // SAFETY: as above.
                    let gone = unsafe { message.arg.remove };
                    each(Event::Removed(gone.start as usize..gone.end as usize));
                }
                _ => {}
            }
        }
    }
}

/// Cuts a range into steps, where huge pages stay whole.
pub(crate) fn steps(range: &Range<usize>) -> impl Iterator<Item = Range<usize>> + use<> {
    let Range { start, end } = range.clone();
    (start / STEP..end.div_ceil(STEP))
        .map(move |at| (at * STEP).max(start)..((at + 1) * STEP).min(end))
}

impl AsFd for Userfault {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

fn by_call(flags: i32) -> Option<OwnedFd> {
    // SAFETY: takes a flag word and returns a new descriptor or an error.
    let fd = unsafe { libc::syscall(libc::SYS_userfaultfd, flags) };
    let fd = i32::try_from(fd).ok().filter(|fd| *fd >= 0)?;
    // SAFETY: the descriptor was just returned and belongs to nobody else.
    Some(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// `_IO(0xAA, 0)`: a new handle from the device, whose permissions an administrator sets.
const USERFAULTFD_IOC_NEW: libc::c_ulong = 0xaa00;

fn by_device(flags: i32) -> Option<OwnedFd> {
    let device = std::fs::File::open("/dev/userfaultfd").ok()?;
    // SAFETY: takes a flag word and returns a new descriptor or an error.
    let fd = unsafe { libc::ioctl(device.as_raw_fd(), USERFAULTFD_IOC_NEW, flags) };
    // SAFETY: the descriptor was just returned and belongs to nobody else.
    (fd >= 0).then(|| unsafe { OwnedFd::from_raw_fd(fd) })
}

fn kernel_range(range: &Range<usize>) -> uffdio_range {
    uffdio_range { start: range.start as u64, len: range.len() as u64 }
}

/// The kernel asks to be asked again while mappings change.
fn again(mut call: impl FnMut() -> io::Result<()>) -> io::Result<()> {
    loop {
        match call() {
            Err(error) if error.raw_os_error() == Some(libc::EAGAIN) => std::thread::yield_now(),
            done => return done,
        }
    }
}

fn brought(done: io::Result<()>) -> io::Result<bool> {
    match done {
        Ok(()) => Ok(true),
        Err(error) if error.raw_os_error() == Some(libc::EEXIST) => Ok(false),
        Err(error) => Err(error),
    }
}

/// # Safety
/// `argument` must be what the request expects.
unsafe fn control<T>(fd: &OwnedFd, request: u32, argument: &mut T) -> io::Result<()> {
    // SAFETY: the caller vouches for the argument's type.
    match unsafe { libc::ioctl(fd.as_raw_fd(), libc::c_ulong::from(request), argument) } {
        0.. => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}
