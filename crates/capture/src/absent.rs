//! Absent memory: pages that are brought when somebody touches them.
//!
//! ```text
//! touch -> held up -> [thread: asks whoever serves] -> zero? brought at once
//!                                                    -> on its way: the touch waits for it
//! bring -> page is there -> the touch happens again
//! ```
//! Needs a userfaultfd that holds system calls up too, as snapshots do.
//!
//! Invariants:
//! - A page that nobody has brought cannot be read: no stale or half-made page is ever seen.
//! - When this is dropped, what was not brought is zero.

use std::io;
use std::ops::Range;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::thread::JoinHandle;

use rustix::event::{EventfdFlags, PollFd, PollFlags, eventfd, poll};
use rustix::mm::{Advice, madvise};

use crate::kernel::maps::Maps;
use crate::kernel::system_page;
use crate::kernel::userfault::{Event, Purpose, Userfault};

/// What is done about a touched page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Served {
    /// It is zero: let it be.
    Zero,
    /// It will be brought.
    Coming,
}

/// Size of the system's pages: what can be absent.
pub fn system_page_bytes() -> usize {
    system_page()
}

/// Ends the process as the kernel does where a page cannot be had.
pub fn end_by_bus_error() -> ! {
    // SAFETY: a complete structure; the signal then has its default action, which ends the process.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = libc::SIG_DFL;
        libc::sigaction(libc::SIGBUS, &action, std::ptr::null_mut());
        libc::raise(libc::SIGBUS);
    }
    std::process::abort()
}

/// Ranges of memory whose pages are brought one by one.
pub struct Absent {
    handle: Arc<Userfault>,
    ranges: Vec<Range<usize>>,
    stop: Arc<OwnedFd>,
    handler: Option<JoinHandle<()>>,
}

impl Absent {
    /// Makes ranges of whole pages absent, whatever they held. `touched` is asked about every
    /// address that somebody waits for, from a thread of its own. `None` where that is not
    /// possible: the memory is as it was, or zero.
    ///
    /// # Safety
    /// The ranges are mapped, belong to the caller, and stay mapped until this is dropped.
    pub unsafe fn new(
        ranges: Vec<Range<usize>>,
        touched: impl Fn(usize) -> Served + Send + 'static,
    ) -> Option<Self> {
        let handle = Arc::new(Userfault::open(Purpose::Missing)?);
        let stop = Arc::new(eventfd(0, EventfdFlags::CLOEXEC).ok()?);
        let maps = Maps::read();
        if !ranges.iter().all(|range| maps.is_private_anonymous(range)) {
            return None;
        }
        let (own, end) = (Arc::clone(&handle), Arc::clone(&stop));
        let handler = std::thread::Builder::new()
            .name("sf-lazy".into())
            .spawn(move || serve(&own, &end, touched))
            .ok()?;
        let absent = Self { handle, ranges, stop, handler: Some(handler) };
        let made = absent.ranges.iter().all(|range| {
            absent.handle.register_missing(range).is_ok()
                // SAFETY: the caller gives the contents up.
                && unsafe {
                    madvise(range.start as *mut _, range.len(), Advice::LinuxDontNeed).is_ok()
                }
        });
        made.then_some(absent)
    }

    /// Brings whole pages from this address on.
    pub fn bring(&self, address: usize, pages: &[u8]) -> io::Result<()> {
        let range = address..address + pages.len();
        if self.handle.bring(&range, pages)? {
            return Ok(());
        }
        // One of them is there: the program gave memory back, or brought zeros by itself.
        let size = system_page();
        for (at, page) in (address..).step_by(size).zip(pages.chunks_exact(size)) {
            self.handle.bring(&(at..at + size), page)?;
        }
        Ok(())
    }
}

impl Drop for Absent {
    fn drop(&mut self) {
        self.ranges.iter().for_each(|range| self.handle.unregister(range));
        // Eight bytes always fit: nobody else writes to it.
        let _ = rustix::io::write(&*self.stop, &1u64.to_ne_bytes());
        if let Some(handler) = self.handler.take() {
            // A handler that panicked has reported it on stderr.
            let _ = handler.join();
        }
    }
}

fn serve(handle: &Userfault, stop: &OwnedFd, touched: impl Fn(usize) -> Served) {
    standfast_sys::keep_signals_away();
    let size = system_page();
    loop {
        let mut watched = [PollFd::new(handle, PollFlags::IN), PollFd::new(stop, PollFlags::IN)];
        // Interrupted calls are made again.
        if poll(&mut watched, None).is_err() {
            continue;
        }
        let over = !watched[1].revents().is_empty();
        handle.events(|event| {
            let Event::Fault(address) = event else { return };
            let page = address / size * size;
            let page = page..page + size;
            match touched(address) {
                // One that is there by now only needs its waiters woken.
                Served::Zero => match handle.bring_zeros(&page) {
                    Ok(true) => {}
                    _ => handle.wake(&page),
                },
                Served::Coming => {}
            }
        });
        if over {
            return;
        }
    }
}
