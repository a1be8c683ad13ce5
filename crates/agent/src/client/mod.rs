//! The rank's side, and that of commands.

mod control;
mod link;
mod process;
mod sink;
#[cfg(test)]
mod tests;

pub use control::{flush, start, status, stop};
pub use link::{Link, Member};

use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::time::Duration;

use rustix::io::Errno;
use rustix::net::sockopt::{Timeout, set_socket_timeout};
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType};

use self::process::Process;
use crate::error::{Error, Result};
use crate::message::{PROTOCOL, Reply, Request};
use crate::place::Place;
use crate::wire::{self, Inbox, MESSAGE_BYTES_MAX};

/// Longest wait for an agent that says nothing: then it is stopped or hangs, and ranks go on without it.
const SILENCE_MAX: Duration = Duration::from_secs(5);

/// A connection to an agent.
struct Connected {
    stream: Arc<UnixStream>,
    inbox: Inbox,
    process: Process,
}

/// Connects to the agent of a directory and agrees on the protocol.
fn connect(place: &Place) -> Result<Connected> {
    let (stream, process) = call(place, SILENCE_MAX)?;
    let inbox = greet(&stream)?;
    Ok(Connected { stream, inbox, process })
}

/// Connects, without a word. Whoever sends or receives there waits so long at most.
fn call(place: &Place, most: Duration) -> Result<(Arc<UnixStream>, Process)> {
    let none =
        |why: &dyn std::fmt::Display| Error::None { socket: place.socket(), why: why.to_string() };
    let os = |errno: Errno| Error::os("make a socket")(errno);
    let kind = (AddressFamily::UNIX, SocketType::STREAM, SocketFlags::CLOEXEC);
    let socket = rustix::net::socket_with(kind.0, kind.1, kind.2, None).map_err(os)?;
    for side in [Timeout::Send, Timeout::Recv] {
        set_socket_timeout(&socket, side, Some(most)).map_err(os)?;
    }
    let address = SocketAddrUnix::new(place.socket()).map_err(os)?;
    match rustix::net::connect(&socket, &address) {
        Ok(()) => {}
        // So many wait already.
        Err(Errno::AGAIN) => return Err(Error::Silent),
        Err(errno) => return Err(none(&errno)),
    }
    let stream = Arc::new(UnixStream::from(socket));
    let process = Process::of(&stream)?;
    Ok((stream, process))
}

/// Agrees on the protocol.
fn greet(stream: &Arc<UnixStream>) -> Result<Inbox> {
    let mut inbox = Inbox::new(Arc::clone(stream), MESSAGE_BYTES_MAX);
    let said = wire::send(stream, &Request::Hello { protocol: PROTOCOL }, None);
    match (ask(&mut inbox), said) {
        (Ok(Reply::Welcome { protocol: PROTOCOL }), Ok(())) => Ok(inbox),
        (Ok(_), _) => Err(Error::Protocol("it does not welcome this version")),
        // Why it has hung up before it was greeted it may have said.
        (Err(Error::Lost(_)), Err(error)) | (Err(error), _) => Err(error),
    }
}

/// The next reply; beats are skipped.
fn ask(inbox: &mut Inbox) -> Result<Reply> {
    loop {
        match next(inbox)? {
            Reply::Beat => {}
            reply => return Ok(reply),
        }
    }
}

/// The next reply, unless the agent refuses.
fn next(inbox: &mut Inbox) -> Result<Reply> {
    match inbox.receive()? {
        Some(Reply::Refused(failure)) => Err(failure.into_error()),
        Some(reply) => Ok(reply),
        None => Err(Error::lost("it closed the connection")),
    }
}
