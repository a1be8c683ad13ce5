//! The rank's side, and that of commands.

mod control;
mod link;
mod sink;
#[cfg(test)]
mod tests;

pub use control::{flush, start, status, stop};
pub use link::{Link, Member};

use std::os::unix::net::UnixStream;
use std::time::Duration;

use crate::error::{Error, Result};
use crate::message::{PROTOCOL, Reply, Request};
use crate::place::Place;
use crate::wire::{self, Inbox};

/// An agent that does not welcome anybody for so long is stopped or hangs: as good as none.
const WELCOME_MAX: Duration = Duration::from_secs(20);

/// Connects to the agent of a directory and agrees on the protocol.
fn connect(place: &Place) -> Result<(UnixStream, Inbox)> {
    connect_within(place, WELCOME_MAX)
}

fn connect_within(place: &Place, most: Duration) -> Result<(UnixStream, Inbox)> {
    let none =
        |why: &dyn std::fmt::Display| Error::None { socket: place.socket(), why: why.to_string() };
    let stream = UnixStream::connect(place.socket()).map_err(|error| none(&error))?;
    if wire::peer(&stream)?.uid != rustix::process::geteuid() {
        return Err(Error::Protocol { why: "the agent is another user's" });
    }
    let reader = stream.try_clone().map_err(Error::os("share the connection"))?;
    let mut inbox = Inbox::new(reader);
    wait_at_most(&stream, Some(most))?;
    wire::send(&stream, &Request::Hello { protocol: PROTOCOL }, None)?;
    match ask(&mut inbox) {
        Ok(Reply::Welcome { protocol: PROTOCOL }) => {}
        Ok(_) => return Err(Error::Protocol { why: "it does not welcome this version" }),
        Err(Error::Silent) => return Err(none(&format!("it is silent for {most:?}"))),
        Err(error) => return Err(error),
    }
    wait_at_most(&stream, None)?;
    Ok((stream, inbox))
}

/// Lets whoever waits for an answer wait so long, or for ever.
fn wait_at_most(stream: &UnixStream, most: Option<Duration>) -> Result<()> {
    stream.set_read_timeout(most).map_err(Error::os("limit a connection"))
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
