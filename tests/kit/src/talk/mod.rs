//! Conversations with a node's agent: recorded at a socket in between, and said again by somebody who
//! does not mean well.
//!
//! ```text
//! program <-> Recorder <-> agent        Talk: what the program said, and the pool at each message
//! Talk -> Attack -> agent               out of order, twice, cut, with foreign ids and descriptors
//! ```
//! Messages are a length and that many bytes; nothing else of the protocol is known here, but that the
//! reply with the pool's descriptor ends with the number that later messages of a rank carry.

mod attack;
mod recorder;

pub use attack::{Attack, Attacker, attacks};
pub use recorder::{Recorder, Said, Talk};

use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;

use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, recvmsg, sendmsg,
};

/// Bytes of the number that a rank's messages carry.
const NONCE_BYTES: usize = 16;
/// Longest message that is looked at.
const MESSAGE_BYTES_MAX: usize = 1 << 26;

/// Receives some bytes, and the descriptor that came with them.
fn receive(stream: &UnixStream, buf: &mut [u8]) -> io::Result<(usize, Option<OwnedFd>)> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut beside = RecvAncillaryBuffer::new(&mut space);
    let mut parts = [IoSliceMut::new(buf)];
    let received = recvmsg(stream, &mut parts, &mut beside, RecvFlags::CMSG_CLOEXEC)?;
    let mut fd = None;
    for message in beside.drain() {
        if let RecvAncillaryMessage::ScmRights(fds) = message {
            fd = fds.last();
        }
    }
    Ok((received.bytes, fd))
}

/// Receives a whole message with its length; `None` at the end.
fn receive_message(stream: &UnixStream) -> io::Result<Option<(Vec<u8>, Option<OwnedFd>)>> {
    let (mut bytes, mut wanted, mut fd) = (Vec::new(), 4, None);
    while bytes.len() < wanted {
        let start = bytes.len();
        bytes.resize(wanted, 0);
        let (count, came) = receive(stream, &mut bytes[start..])?;
        if count == 0 {
            return Ok(None);
        }
        bytes.truncate(start + count);
        fd = came.or(fd);
        if bytes.len() == 4 {
            let length = u32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]) as usize;
            if length > MESSAGE_BYTES_MAX {
                return Err(io::ErrorKind::InvalidData.into());
            }
            wanted = 4 + length;
        }
    }
    Ok(Some((bytes, fd)))
}

/// Sends bytes, and a descriptor with the first of them.
fn send(stream: &UnixStream, bytes: &[u8], fd: Option<BorrowedFd<'_>>) -> io::Result<()> {
    let (mut sent, fds) = (0, fd.map(|fd| [fd]));
    while sent < bytes.len() {
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
        let mut beside = SendAncillaryBuffer::new(&mut space);
        if let (0, Some(fds)) = (sent, &fds) {
            beside.push(SendAncillaryMessage::ScmRights(fds));
        }
        let parts = [IoSlice::new(&bytes[sent..])];
        sent += sendmsg(stream, &parts, &mut beside, SendFlags::NOSIGNAL)?;
    }
    Ok(())
}
