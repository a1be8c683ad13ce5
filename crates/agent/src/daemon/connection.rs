//! One connection: a rank, or somebody who asks a question.
//!
//! Data: requests in the order they were sent -> the session -> replies. What a rank sent before it
//! died is still there to be read, so a part that was handed over counts, however it ended.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, pidfd_open};
use serde_json::json;
use standfast_format::Kind;

use super::Shared;
use super::arrivals::Arrival;
use super::session::{Session, refused};
use crate::error::{Error, Result};
use crate::message::{Failure, Nonce, PROTOCOL, Reply, Request};
use crate::wire::{self, Inbox};

/// A peer that takes no bytes for so long is given up: others wait behind it.
const SEND_TIMEOUT: Duration = Duration::from_secs(5);
/// One that has not joined, and says nothing for so long, is sent away.
const GREETING_MAX: Duration = Duration::from_secs(10);
/// How often whoever waits for a flush hears that the agent lives.
const FLUSH_BEAT: Duration = Duration::from_secs(1);
/// How often a flush looks whether it is over.
const FLUSH_TICK: Duration = Duration::from_millis(20);

/// The sending end of a connection, shared by all threads.
pub(super) struct Outbox {
    stream: Arc<UnixStream>,
    /// Held while a message is sent.
    sending: Mutex<()>,
    /// Tells when the process at the other end has ended, where the kernel has that.
    process: Option<OwnedFd>,
}

impl Outbox {
    pub(super) fn new(stream: &Arc<UnixStream>, pid: Option<Pid>) -> Result<Self> {
        stream.set_write_timeout(Some(SEND_TIMEOUT)).map_err(Error::os("limit a connection"))?;
        let process = pid.and_then(|pid| pidfd_open(pid, PidfdFlags::empty()).ok());
        Ok(Self { stream: Arc::clone(stream), sending: Mutex::default(), process })
    }

    pub(super) fn send(&self, reply: &Reply) -> Result<()> {
        self.send_with(reply, None)
    }

    fn send_with(&self, reply: &Reply, fd: Option<BorrowedFd<'_>>) -> Result<()> {
        let _sending = self.sending.lock().unwrap_or_else(PoisonError::into_inner);
        wire::send(&self.stream, reply, fd).inspect_err(|_| {
            // Its reader ends too, and with it the rank's session.
            let _ = self.stream.shutdown(std::net::Shutdown::Both);
        })
    }

    /// Tells that the agent lives, unless the connection is busy anyway.
    pub(super) fn beat(&self) {
        if let Ok(_sending) = self.sending.try_lock() {
            wire::send_if_room(&self.stream, &Reply::Beat);
        }
    }

    /// Takes nothing more from the other end.
    pub(super) fn hang_up(&self) {
        let _ = self.stream.shutdown(std::net::Shutdown::Read);
    }

    /// Whether the process at the other end lives, as far as anybody knows.
    pub(super) fn peer_lives(&self) -> bool {
        let Some(process) = &self.process else { return true };
        let mut polled = [PollFd::new(process, PollFlags::IN)];
        let now = Timespec { tv_sec: 0, tv_nsec: 0 };
        !matches!(poll(&mut polled, Some(&now)), Ok(1..))
    }
}

/// What a connection has become. The rank leaves its session when this is dropped, however that comes.
struct Member {
    session: Arc<Session>,
    rank: u32,
    nonce: Nonce,
    willingly: bool,
}

impl Drop for Member {
    fn drop(&mut self) {
        self.session.leave(self.rank, self.willingly);
    }
}

/// Serves a connection to its end.
pub(super) fn serve(shared: &Arc<Shared>, stream: Arc<UnixStream>, arrival: Arrival) {
    let own = rustix::process::geteuid();
    let peer = match wire::peer(&stream) {
        Ok(peer) if peer.uid == own => peer,
        Ok(peer) => {
            shared.log.event("stranger", json!({ "uid": peer.uid.as_raw() }));
            return;
        }
        Err(_) => return,
    };
    if stream.set_read_timeout(Some(GREETING_MAX)).is_err() {
        return;
    }
    let Ok(outbox) = Outbox::new(&stream, Some(peer.pid)) else { return };
    let outbox = Arc::new(outbox);
    let mut member = None;
    let mut inbox = Inbox::new(stream, wire::GREETING_BYTES_MAX);
    let ended = converse(shared, &outbox, (&mut inbox, Some(arrival)), &mut member);
    if let Err(error) = ended {
        shared.log.event("connection", json!({ "why": error.to_string() }));
        let _ = outbox.send(&Reply::Refused(Failure::new(error.kind(), &error)));
    }
    let Some(member) = member else { return };
    let (session, willingly) = (Arc::clone(&member.session), member.willingly);
    drop(member);
    // The connection must outlive a commit: its end tells the rank that nothing more comes.
    while session.is_committing() {
        session.wait_change(FLUSH_TICK);
    }
    shared.sweep();
    if willingly {
        let _ = outbox.send(&Reply::Left);
    }
}

fn converse(
    shared: &Arc<Shared>,
    outbox: &Arc<Outbox>,
    (inbox, mut arrival): (&mut Inbox, Option<Arrival>),
    member: &mut Option<Member>,
) -> Result<()> {
    while let Some(request) = inbox.receive()? {
        if !matches!(request, Request::Hello { .. } | Request::Begin(_)) {
            drop(arrival.take());
        }
        match (request, &mut *member) {
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
                flush(shared, &store, outbox)?;
                outbox.send(&Reply::Flushed)?;
            }
            (Request::Begin(begin), None) => {
                let lock = inbox.take_fd();
                let lock = lock.ok_or(Error::Protocol("a session without its lock"))?;
                let session = shared.begin(*begin, lock)?;
                let first = session.begin.ranks[0];
                *member = Some(join(outbox, inbox, session, first)?);
                drop(arrival.take());
            }
            (Request::Join { token, rank }, None) => {
                *member = Some(join(outbox, inbox, shared.find(token)?, rank)?);
            }
            (Request::Leave, Some(member)) => {
                member.willingly = true;
                return Ok(());
            }
            (request, Some(member)) => take(member, request)?,
            _ => return Err(Error::Protocol("a request out of turn")),
        }
    }
    Ok(())
}

fn join(
    outbox: &Arc<Outbox>,
    inbox: &mut Inbox,
    session: Arc<Session>,
    rank: u32,
) -> Result<Member> {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes).map_err(Error::os("make a number that nobody knows"))?;
    inbox.trust()?;
    session.join(rank, outbox)?;
    let member = Member { session, rank, nonce: Nonce(bytes), willingly: false };
    let (pool, nonce) = (member.session.pool(), member.nonce);
    let reply = Reply::Joined { units: pool.units(), unit_bytes: pool.unit_bytes(), nonce };
    outbox.send_with(&reply, Some(pool.fd().as_fd()))?;
    Ok(member)
}

fn take(Member { session, rank, nonce, .. }: &Member, request: Request) -> Result<()> {
    match request {
        Request::Lease { count } => session.pool().ask(*rank, count),
        Request::Return { units } => session.pool().give_back(*rank, &units),
        Request::Blocks(told, _) | Request::HandOver(told, _) if told != *nonce => {
            Err(Error::Protocol("a message of another conversation"))
        }
        Request::Blocks(_, blocks) => {
            blocks.into_iter().try_for_each(|block| session.block(*rank, block))
        }
        Request::HandOver(_, part) => session.hand_over(*rank, *part),
        Request::Abort { attempt } => {
            session.abort(attempt);
            Ok(())
        }
        _ => Err(Error::Protocol("a request out of turn")),
    }
}

/// Waits until dead ranks' work for a store is done; whoever asks hears meanwhile that the agent lives,
/// and is not waited for when it is gone.
fn flush(shared: &Shared, store: &str, outbox: &Outbox) -> Result<()> {
    let mut told = Instant::now();
    loop {
        shared.sweep();
        if told.elapsed() >= FLUSH_BEAT {
            outbox.send(&Reply::Beat)?;
            told = Instant::now();
        }
        // First: what has left them is a session by now.
        if shared.arrivals.have_dead() {
            std::thread::sleep(FLUSH_TICK);
            continue;
        }
        let sessions = shared.of_store(store);
        let Some(waiting) = sessions.iter().find(|session| !session.is_alive()) else {
            return Ok(());
        };
        waiting.wait_change(FLUSH_TICK);
    }
}
