//! The agent's process, as ranks and commands see it: to end it where it does not answer.
//!
//! Why ranks may: they belong to the same user, and what was handed to an agent that is stopped would be
//! committed when it goes on, behind the back of ranks that have gone on without it. A process that has
//! ended writes nothing more.

use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, Signal, getpid, pidfd_open, pidfd_send_signal};

use crate::error::{Error, Result};
use crate::wire;

/// How long a process that was killed may take to end.
const END_MAX: Duration = Duration::from_secs(1);

/// The process at the other end of a connection.
pub(super) struct Process {
    pid: Pid,
    /// `None` where the kernel does not have such descriptors, or hides the process.
    fd: Option<OwnedFd>,
}

impl Process {
    /// The process that listens there, which must be this user's.
    pub(super) fn of(stream: &UnixStream) -> Result<Self> {
        let peer = wire::peer(stream)?;
        if peer.uid != rustix::process::geteuid() {
            return Err(Error::Protocol("the agent is another user's"));
        }
        Ok(Self { pid: peer.pid, fd: pidfd_open(peer.pid, PidfdFlags::empty()).ok() })
    }

    /// Kills it and waits until it is gone. One in this very process only tests have; it is let be.
    pub(super) fn end(&self) -> Result<()> {
        if self.pid == getpid() {
            return Ok(());
        }
        let stuck = Error::Stuck(self.pid.as_raw_nonzero().get());
        let Some(fd) = &self.fd else { return Err(stuck) };
        let _ = pidfd_send_signal(fd, Signal::KILL);
        let most = Timespec { tv_sec: END_MAX.as_secs() as i64, tv_nsec: 0 };
        match poll(&mut [PollFd::new(fd, PollFlags::IN)], Some(&most)) {
            Ok(1..) => Ok(()),
            _ => Err(stuck),
        }
    }
}
