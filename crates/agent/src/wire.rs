//! Messages on a Unix socket: a length, then that many bytes of postcard; descriptors beside them.
//!
//! Invariants:
//! - A length beyond what the receiver allows ends the conversation; memory is taken as bytes arrive,
//!   not as they are announced.
//! - Descriptors that nobody asked for are closed.

use std::io::{IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::sync::Arc;

use rustix::io::Errno;
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, recvmsg, sendmsg,
};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::error::{Error, Result};

/// Longest message: the image of a rank, which readers bound alike.
pub(crate) const MESSAGE_BYTES_MAX: usize = 1 << 30;
/// Longest message of somebody who has not joined: the ranks of a large job.
pub(crate) const GREETING_BYTES_MAX: usize = 8 << 20;
/// Memory is taken in steps of this while a message arrives.
const STEP_BYTES: usize = 1 << 20;

/// Sends a message, and a descriptor with it. One thread at a time.
pub(crate) fn send(
    stream: &UnixStream,
    message: &impl Serialize,
    fd: Option<BorrowedFd<'_>>,
) -> Result<()> {
    let body = postcard::to_allocvec(message).expect("plain values can be encoded");
    assert!(body.len() <= MESSAGE_BYTES_MAX, "a message is bounded by what it describes");
    let head = (body.len() as u32).to_le_bytes();
    let total = head.len() + body.len();
    let mut sent = 0;
    while sent < total {
        let parts = match sent < head.len() {
            true => [IoSlice::new(&head[sent..]), IoSlice::new(&body)],
            false => [IoSlice::new(&body[sent - head.len()..]), IoSlice::new(&[])],
        };
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
        let mut beside = SendAncillaryBuffer::new(&mut space);
        let fds = fd.map(|fd| [fd]);
        if let (0, Some(fds)) = (sent, &fds) {
            assert!(beside.push(SendAncillaryMessage::ScmRights(fds)), "one descriptor fits");
        }
        match sendmsg(stream, &parts, &mut beside, SendFlags::NOSIGNAL) {
            Ok(bytes) => sent += bytes,
            Err(Errno::INTR) => {}
            // Only where whoever sends has said for how long.
            Err(Errno::AGAIN) => return Err(Error::Silent),
            Err(errno) => return Err(Error::lost(errno)),
        }
    }
    Ok(())
}

/// Sends a short message if it can be sent at once; otherwise nothing.
pub(crate) fn send_if_room(stream: &UnixStream, message: &impl Serialize) {
    let body = postcard::to_allocvec(message).expect("plain values can be encoded");
    let bytes = [&(body.len() as u32).to_le_bytes()[..], &body].concat();
    let flags = SendFlags::NOSIGNAL | SendFlags::DONTWAIT;
    if let Ok(sent) = rustix::net::send(stream, &bytes, flags)
        && sent < bytes.len()
    {
        // Half a message cannot be taken back.
        let _ = stream.shutdown(std::net::Shutdown::Both);
    }
}

/// The receiving end of a conversation.
pub(crate) struct Inbox {
    stream: Arc<UnixStream>,
    bytes_max: usize,
    /// The descriptor that came last, until somebody takes it.
    fd: Option<OwnedFd>,
}

impl Inbox {
    /// Takes messages of up to so many bytes.
    pub(crate) fn new(stream: Arc<UnixStream>, bytes_max: usize) -> Self {
        Self { stream, bytes_max, fd: None }
    }

    /// Takes messages of any length that the protocol has, from somebody who has joined, and waits for
    /// them as long as the connection stands.
    pub(crate) fn trust(&mut self) -> Result<()> {
        self.bytes_max = MESSAGE_BYTES_MAX;
        self.stream.set_read_timeout(None).map_err(Error::os("limit a connection"))
    }

    /// The next message; `None` when the other end has closed between two.
    pub(crate) fn receive<T: DeserializeOwned>(&mut self) -> Result<Option<T>> {
        let mut head = [0; 4];
        if !self.fill(&mut head, true)? {
            return Ok(None);
        }
        let bytes = u32::from_le_bytes(head) as usize;
        if bytes > self.bytes_max {
            return Err(Error::Protocol("a message is too long"));
        }
        let mut body = Vec::new();
        while body.len() < bytes {
            let start = body.len();
            body.resize(bytes.min(start + STEP_BYTES), 0);
            self.fill(&mut body[start..], false)?;
        }
        let message = postcard::from_bytes(&body);
        message.map(Some).map_err(|_| Error::Protocol("a message has not the agreed form"))
    }

    /// The descriptor that came with the last message.
    pub(crate) fn take_fd(&mut self) -> Option<OwnedFd> {
        self.fd.take()
    }

    /// Fills a buffer; false if the other end has closed before its first byte, which only
    /// `may_end` allows.
    fn fill(&mut self, buf: &mut [u8], may_end: bool) -> Result<bool> {
        let mut filled = 0;
        while filled < buf.len() {
            let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
            let mut beside = RecvAncillaryBuffer::new(&mut space);
            let mut parts = [IoSliceMut::new(&mut buf[filled..])];
            let flags = RecvFlags::CMSG_CLOEXEC;
            let received = match recvmsg(self.stream.as_fd(), &mut parts, &mut beside, flags) {
                Ok(received) => received,
                Err(Errno::INTR) => continue,
                // Only where whoever waits has said for how long.
                Err(Errno::AGAIN) => return Err(Error::Silent),
                Err(errno) => return Err(Error::lost(errno)),
            };
            for message in beside.drain() {
                if let RecvAncillaryMessage::ScmRights(fds) = message {
                    self.fd = fds.last().or(self.fd.take());
                }
            }
            match received.bytes {
                0 if filled == 0 && may_end => return Ok(false),
                0 => return Err(Error::lost("it closed in the middle of a message")),
                bytes => filled += bytes,
            }
        }
        Ok(true)
    }
}

/// The process at the other end.
pub(crate) fn peer(stream: &UnixStream) -> Result<rustix::net::UCred> {
    rustix::net::sockopt::socket_peercred(stream).map_err(Error::os("ask who is connected"))
}

#[cfg(test)]
mod tests;
