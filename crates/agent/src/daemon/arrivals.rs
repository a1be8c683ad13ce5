//! Connections that have not said yet what they are for, or whose session is being opened.
//!
//! Such a one may hold a job's writer lock: it was sent along, and lies in the socket until it is read.
//! If its process dies then, no session tells of it. So who flushes a store waits for those as well.
//!
//! Invariant: a connection is entered before any later one is accepted, and leaves when its session can
//! be seen by others, when it is here for something else, or with its end.

use std::collections::HashMap;
use std::os::unix::net::UnixStream;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rustix::event::{PollFd, PollFlags, Timespec, poll};

/// All of them, by number.
#[derive(Default)]
pub(super) struct Arrivals(Mutex<Entered>);

#[derive(Default)]
struct Entered {
    next: u64,
    streams: HashMap<u64, Arc<UnixStream>>,
}

/// One of them; it leaves when this is dropped.
pub(super) struct Arrival {
    arrivals: Arc<Arrivals>,
    number: u64,
}

impl Arrivals {
    fn entered(&self) -> MutexGuard<'_, Entered> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn enter(self: &Arc<Self>, stream: &Arc<UnixStream>) -> Arrival {
        let mut entered = self.entered();
        let number = entered.next;
        entered.next += 1;
        entered.streams.insert(number, Arc::clone(stream));
        Arrival { arrivals: Arc::clone(self), number }
    }

    /// Whether the other end of some is gone.
    pub(super) fn have_dead(&self) -> bool {
        self.entered().streams.values().any(|stream| is_hung_up(stream))
    }
}

impl Drop for Arrival {
    fn drop(&mut self) {
        self.arrivals.entered().streams.remove(&self.number);
    }
}

fn is_hung_up(stream: &UnixStream) -> bool {
    let mut polled = [PollFd::new(stream, PollFlags::RDHUP)];
    let now = Timespec { tv_sec: 0, tv_nsec: 0 };
    matches!(poll(&mut polled, Some(&now)), Ok(1..))
}
