//! The rank's side, and that of commands.

mod batch;
mod control;
mod link;
#[cfg(test)]
mod tests;

pub use batch::{Batch, Handed};
pub use control::{flush, start, status, stop};
pub use link::{Link, Member};

use std::os::unix::net::UnixStream;

use crate::error::{Error, Result};
use crate::message::{PROTOCOL, Reply, Request};
use crate::place::Place;
use crate::wire::{self, Inbox};

/// Connects to the agent of a directory and agrees on the protocol.
fn connect(place: &Place) -> Result<(UnixStream, Inbox)> {
    let none =
        |error: std::io::Error| Error::None { socket: place.socket(), why: error.to_string() };
    let stream = UnixStream::connect(place.socket()).map_err(none)?;
    if wire::peer(&stream)?.uid != rustix::process::geteuid() {
        return Err(Error::Protocol { why: "the agent is another user's" });
    }
    let reader = stream.try_clone().map_err(Error::os("share the connection"))?;
    let mut inbox = Inbox::new(reader);
    wire::send(&stream, &Request::Hello { protocol: PROTOCOL }, None)?;
    match ask(&mut inbox)? {
        Reply::Welcome { protocol: PROTOCOL } => Ok((stream, inbox)),
        _ => Err(Error::Protocol { why: "it does not welcome this version" }),
    }
}

/// The next reply; beats are passed over.
fn ask(inbox: &mut Inbox) -> Result<Reply> {
    loop {
        match inbox.receive()? {
            Some(Reply::Beat) => {}
            Some(Reply::Refused(failure)) => return Err(failure.into_error()),
            Some(reply) => return Ok(reply),
            None => return Err(Error::lost("it closed the connection")),
        }
    }
}
