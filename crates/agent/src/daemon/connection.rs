//! One connection: a rank, or somebody who asks a question.
//!
//! Data: requests in the order they were sent -> the session -> replies. What a rank sent before it
//! died is still there to be read, so a part that was handed over counts, however it ended.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, pidfd_open};
use serde_json::json;
use standfast_format::Kind;

use super::Shared;
use super::arrivals::Arrival;
use super::session::{Session, refused};
use crate::error::{Error, Result};
use crate::message::{Failure, PROTOCOL, Reply, Request};
use crate::wire::{self, Inbox};

/// A peer that takes no bytes for so long is given up: others wait behind it.
const SEND_TIMEOUT: Duration = Duration::from_secs(30);
/// How often a flush looks whether it is over.
const FLUSH_TICK: Duration = Duration::from_millis(20);

/// The sending end of a connection, shared by all threads.
pub(super) struct Outbox {
    stream: Mutex<UnixStream>,
    /// Tells when the process at the other end has ended, where the kernel has that.
    process: Option<OwnedFd>,
}

impl Outbox {
    fn new(stream: &UnixStream, pid: Option<Pid>) -> Result<Self> {
        let stream = stream.try_clone().map_err(Error::os("share a connection"))?;
        stream.set_write_timeout(Some(SEND_TIMEOUT)).map_err(Error::os("limit a connection"))?;
        let process = pid.and_then(|pid| pidfd_open(pid, PidfdFlags::empty()).ok());
        Ok(Self { stream: Mutex::new(stream), process })
    }

    pub(super) fn send(&self, reply: &Reply) -> Result<()> {
        self.send_with(reply, None)
    }

    fn send_with(&self, reply: &Reply, fd: Option<BorrowedFd<'_>>) -> Result<()> {
        let stream = self.stream.lock().unwrap_or_else(PoisonError::into_inner);
        wire::send(&stream, reply, fd).inspect_err(|_| {
            // Its reader ends too, and with it the rank's session.
            let _ = stream.shutdown(std::net::Shutdown::Both);
        })
    }

    /// Tells that the agent lives, unless the connection is busy anyway.
    pub(super) fn beat(&self) {
        if let Ok(stream) = self.stream.try_lock() {
            wire::send_if_room(&stream, &Reply::Beat);
        }
    }

    /// Takes nothing more from the other end.
    pub(super) fn hang_up(&self) {
        let stream = self.stream.lock().unwrap_or_else(PoisonError::into_inner);
        let _ = stream.shutdown(std::net::Shutdown::Read);
    }

    /// Whether the process at the other end lives, as far as anybody knows.
    pub(super) fn peer_lives(&self) -> bool {
        let Some(process) = &self.process else { return true };
        let mut polled = [PollFd::new(process, PollFlags::IN)];
        let now = Timespec { tv_sec: 0, tv_nsec: 0 };
        !matches!(poll(&mut polled, Some(&now)), Ok(1..))
    }
}

/// What a connection has become.
struct Member {
    session: Arc<Session>,
    rank: u32,
}

/// Serves a connection to its end.
pub(super) fn serve(shared: &Arc<Shared>, stream: UnixStream, arrival: Option<Arrival>) {
    let own = rustix::process::geteuid();
    let peer = match wire::peer(&stream) {
        Ok(peer) if peer.uid == own => peer,
        Ok(peer) => {
            shared.log.event("stranger", json!({ "uid": peer.uid.as_raw() }));
            return;
        }
        Err(_) => return,
    };
    let Ok(outbox) = Outbox::new(&stream, Some(peer.pid)) else { return };
    let outbox = Arc::new(outbox);
    let mut member = None;
    let mut willingly = false;
    let mut inbox = Inbox::new(stream);
    let ended = converse(shared, &outbox, (&mut inbox, arrival), &mut member, &mut willingly);
    if let Err(error) = ended {
        shared.log.event("connection", json!({ "why": error.to_string() }));
        let _ = outbox.send(&Reply::Refused(Failure::new(error.kind(), &error)));
    }
    if let Some(Member { session, rank }) = member {
        session.leave(rank, willingly);
        // The connection must outlive a commit: its end tells the rank that nothing more comes.
        while session.is_committing() {
            session.wait_change(FLUSH_TICK);
        }
        shared.sweep();
    }
    if willingly {
        let _ = outbox.send(&Reply::Left);
    }
}

fn converse(
    shared: &Arc<Shared>,
    outbox: &Arc<Outbox>,
    (inbox, mut arrival): (&mut Inbox, Option<Arrival>),
    member: &mut Option<Member>,
    willingly: &mut bool,
) -> Result<()> {
    while let Some(request) = inbox.receive()? {
        if !matches!(request, Request::Hello { .. } | Request::Begin(_)) {
            drop(arrival.take());
        }
        match (request, &*member) {
            (Request::Hello { protocol }, None) if protocol == PROTOCOL => {
                outbox.send(&Reply::Welcome { protocol: PROTOCOL })?;
            }
            (Request::Hello { .. }, None) => {
                let why = "the agent is of another version; `standfast agent stop` ends it";
                return Err(refused(Kind::Unsupported, &why));
            }
            (Request::Status, _) => outbox.send(&Reply::Status(Box::new(shared.status())))?,
            (Request::Stop { now }, _) => outbox.send(&shared.stop(now))?,
            (Request::Flush { store }, None) => {
                flush(shared, &store);
                outbox.send(&Reply::Flushed)?;
            }
            (Request::Begin(begin), None) => {
                let lock = inbox.take_fd();
                let lock = lock.ok_or(Error::Protocol { why: "a session without its lock" })?;
                let session = shared.begin(*begin, lock)?;
                let first = session.begin.ranks[0];
                *member = Some(join(outbox, session, first)?);
                drop(arrival.take());
            }
            (Request::Join { token, rank }, None) => {
                *member = Some(join(outbox, shared.find(token)?, rank)?);
            }
            (Request::Leave, Some(_)) => {
                *willingly = true;
                return Ok(());
            }
            (request, Some(Member { session, rank })) => take(session, *rank, request)?,
            _ => return Err(Error::Protocol { why: "a request out of turn" }),
        }
    }
    Ok(())
}

fn join(outbox: &Arc<Outbox>, session: Arc<Session>, rank: u32) -> Result<Member> {
    session.join(rank, outbox)?;
    let pool = session.pool();
    let reply = Reply::Joined { units: pool.units(), unit_bytes: pool.unit_bytes() };
    match outbox.send_with(&reply, Some(pool.fd().as_fd())) {
        Ok(()) => Ok(Member { session, rank }),
        Err(error) => {
            session.leave(rank, false);
            Err(error)
        }
    }
}

fn take(session: &Arc<Session>, rank: u32, request: Request) -> Result<()> {
    match request {
        Request::Lease { count } => session.pool().ask(rank, count),
        Request::Return { units } => session.pool().give_back(rank, &units),
        Request::Blocks(blocks) => {
            blocks.into_iter().try_for_each(|block| session.block(rank, block))
        }
        Request::HandOver(part) => session.hand_over(rank, *part),
        Request::Abort { attempt } => {
            session.abort(attempt);
            Ok(())
        }
        _ => Err(Error::Protocol { why: "a request out of turn" }),
    }
}

/// Waits until dead ranks' work for a store is done.
fn flush(shared: &Shared, store: &str) {
    loop {
        shared.sweep();
        // First: what has left them is a session by now.
        if shared.arrivals.have_dead() {
            std::thread::sleep(FLUSH_TICK);
            continue;
        }
        let sessions = shared.of_store(store);
        let Some(waiting) = sessions.iter().find(|session| !session.is_alive()) else { return };
        waiting.wait_change(FLUSH_TICK);
    }
}
