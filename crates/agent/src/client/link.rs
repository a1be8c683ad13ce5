//! A rank's connection to the agent: units in stock, and news.
//!
//! ```text
//! rank's thread   take_unit, send blocks, hand over        committer's thread   wait for Settled
//! reader thread   Granted -> stock, Settled -> news, end or silence -> lost
//! ```
//! Invariants:
//! - Once lost, always lost; every later call says why.
//! - Whoever waits and hears nothing for [`QUIET_MAX`] ticks ends the agent ([`super::process`]): what it
//!   was handed cannot be committed later, behind the rank's back.
//! - The agent closes the connection only after what it does for this job is done, or by dying: a
//!   rank that finds it closed can look at the store.

use std::collections::VecDeque;
use std::os::fd::BorrowedFd;
use std::os::unix::net::UnixStream;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use standfast_checkpoint::failpoint;
use standfast_format::AttemptId;
use standfast_reduce::PageHasher;
use standfast_sys::keep_signals_away;
use standfast_write::{Lender, Unit};

use super::process::Process;
use super::{Connected, SILENCE_MAX, ask, connect};
use crate::error::{Error, Result};
use crate::memory::Memory;
use crate::message::{Begin, Block, HandOver, Nonce, Reply, Request, Settled, Token};
use crate::place::Place;
use crate::wire::{self, Inbox};

/// Units that a rank asks for at once.
const UNITS_ASKED: u32 = 32;
/// With fewer in stock it asks for more, while it goes on.
const UNITS_LOW: usize = 12;
/// What is ready is made ready again where it is less than needed by one part of so many.
const WARM_AGAIN_SHARE: usize = 4;
/// How long whoever waits sleeps at once; the agent says as often that it lives.
const TICK: Duration = Duration::from_secs(1);
/// An agent that says nothing for so many of them is as good as none. They are counted, and no clock is
/// read: a rank that was stopped itself must not take that for the agent's silence.
const QUIET_MAX: u32 = (SILENCE_MAX.as_secs() / TICK.as_secs()) as u32;

/// What a rank joins a session with.
pub struct Member {
    /// Its rank.
    pub rank: u32,
    /// How pages are hashed.
    pub hasher: PageHasher,
    /// Size of pages.
    pub page_bytes: usize,
}

/// A rank's end of a session.
pub struct Link {
    shared: Arc<Shared>,
    pub(super) member: Member,
}

struct Shared {
    memory: Memory,
    stream: Arc<UnixStream>,
    /// Held while a message is sent.
    sending: Mutex<()>,
    /// The agent.
    process: Process,
    /// What pages and images are sent with.
    nonce: Nonce,
    news: Mutex<News>,
    changed: Condvar,
}

struct News {
    stock: Vec<u32>,
    asked: bool,
    /// Whether a checkpoint is being captured; units that come later go back at once.
    capturing: bool,
    /// So many units are to be in stock once, before any checkpoint, and go back then.
    warming: usize,
    /// So many were, or are to be.
    warmed: usize,
    settled: VecDeque<Settled>,
    lost: Option<Error>,
    left: bool,
    /// Counts what the agent says.
    heard: u64,
}

/// How long somebody has waited and heard nothing.
struct Quiet {
    heard: u64,
    ticks: u32,
}

impl Quiet {
    fn since(news: &News) -> Self {
        Self { heard: news.heard, ticks: 0 }
    }
}

impl Shared {
    fn news(&self) -> MutexGuard<'_, News> {
        self.news.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for news. An agent that is silent for too long is ended; then it is lost.
    fn wait<'a>(
        &self,
        news: MutexGuard<'a, News>,
        quiet: &mut Quiet,
    ) -> Result<MutexGuard<'a, News>> {
        let waited = self.changed.wait_timeout(news, TICK).unwrap_or_else(PoisonError::into_inner);
        let (mut news, waited) = waited;
        match news.heard == quiet.heard {
            true => quiet.ticks += u32::from(waited.timed_out()),
            false => *quiet = Quiet::since(&news),
        }
        if quiet.ticks >= QUIET_MAX && news.lost.is_none() {
            *quiet = Quiet::since(&news);
            self.end_agent(&mut news)?;
        }
        Ok(news)
    }

    /// Ends an agent that does not answer.
    fn end_agent(&self, news: &mut News) -> Result<()> {
        if news.lost.is_none() {
            self.process.end()?;
            let why = format!("it was silent for {} s and was ended", SILENCE_MAX.as_secs());
            news.lost = Some(Error::lost(why));
        }
        self.changed.notify_all();
        let _ = self.stream.shutdown(std::net::Shutdown::Both);
        Ok(())
    }

    fn send(&self, request: &Request) -> Result<()> {
        let sending = self.sending.lock().unwrap_or_else(PoisonError::into_inner);
        let sent = wire::send(&self.stream, request, None);
        drop(sending);
        match sent {
            // It takes no bytes. Half a message may be there: nothing more can be said.
            Err(Error::Silent) => {
                let mut news = self.news();
                self.end_agent(&mut news)?;
                Err(news.lost.clone().unwrap_or(Error::Silent))
            }
            sent => sent.inspect_err(|error| self.lose(error.clone())),
        }
    }

    fn lose(&self, error: Error) {
        self.news().lost.get_or_insert(error);
        self.changed.notify_all();
    }
}

impl Lender for Shared {
    /// A unit that was not used.
    fn take_back(&self, number: u32) {
        self.news().stock.push(number);
    }
}

impl Link {
    /// Begins a session as its first rank; `lock`: the store's writer lock.
    pub fn begin(
        place: &Place,
        begin: Begin,
        lock: BorrowedFd<'_>,
        member: Member,
    ) -> Result<Self> {
        Self::open(place, &Request::Begin(Box::new(begin)), Some(lock), member)
    }

    /// Joins a session that the first rank has begun.
    pub fn join(place: &Place, token: Token, member: Member) -> Result<Self> {
        Self::open(place, &Request::Join { token, rank: member.rank }, None, member)
    }

    fn open(
        place: &Place,
        request: &Request,
        lock: Option<BorrowedFd<'_>>,
        member: Member,
    ) -> Result<Self> {
        let Connected { stream, mut inbox, process } = connect(place)?;
        failpoint::pass("agent.begin");
        wire::send(&stream, request, lock)?;
        let Reply::Joined { units, unit_bytes, nonce } = ask(&mut inbox)? else {
            return Err(Error::Protocol("it does not let this rank join"));
        };
        let fd = inbox.take_fd().ok_or(Error::Protocol("it hands no pool over"))?;
        let (units, unit_bytes) = (units as usize, unit_bytes as usize);
        if unit_bytes < member.page_bytes || !unit_bytes.is_multiple_of(member.page_bytes) {
            return Err(Error::Protocol("the pool's units hold no pages of this job"));
        }
        let memory = Memory::open(&fd, units, unit_bytes)?;
        inbox.trust()?;
        let news = News {
            stock: Vec::new(),
            asked: false,
            capturing: false,
            warming: 0,
            warmed: 0,
            settled: VecDeque::new(),
            lost: None,
            left: false,
            heard: 0,
        };
        let (sending, news, changed) = (Mutex::default(), Mutex::new(news), Condvar::new());
        let shared = Shared { memory, stream, sending, process, nonce, news, changed };
        let shared = Arc::new(shared);
        let for_reader = Arc::clone(&shared);
        std::thread::Builder::new()
            .name("sf-agent-news".into())
            .spawn(move || {
                keep_signals_away();
                read_news(&for_reader, inbox, Mapped::new(units));
            })
            .map_err(Error::os("start a thread"))?;
        Ok(Self { shared, member })
    }

    /// Has units for so many bytes mapped in this process before a checkpoint needs them; it gets the
    /// same ones later as long as they are free. `ranks`: those of the node, which share the pool.
    pub fn warm(&self, bytes: usize, ranks: usize) {
        let memory = &self.shared.memory;
        let share = memory.units() / ranks.max(1);
        let wanted = bytes.div_ceil(memory.unit_bytes()).min(share);
        let mut news = self.shared.news();
        let is_more = match news.warming {
            0 => wanted > news.warmed + news.warmed / WARM_AGAIN_SHARE,
            under_way => wanted > under_way,
        };
        if news.capturing || !is_more {
            return;
        }
        (news.warming, news.warmed) = (wanted, wanted);
        let asks = !std::mem::replace(&mut news.asked, true);
        drop(news);
        if asks {
            // One that is lost tells so when a checkpoint is taken.
            let _ = self.send(&Request::Lease { count: UNITS_ASKED });
        }
    }

    /// Why the agent is of no more use, if that is so.
    pub fn lost(&self) -> Option<Error> {
        self.shared.news().lost.clone()
    }

    /// Hands this rank's part over. A failure shows when its fate is asked for.
    pub fn hand_over(&self, part: HandOver) {
        failpoint::pass("agent.hand_over");
        let _ = self.send(&Request::HandOver(self.shared.nonce, Box::new(part)));
    }

    /// Gives an attempt up: what was sent of it is discarded.
    pub fn abort(&self, attempt: AttemptId) {
        let _ = self.send(&Request::Abort { attempt });
    }

    /// Waits for the fate of an attempt that was handed over.
    pub fn settled(&self, attempt: AttemptId) -> Result<Settled> {
        let mut news = self.shared.news();
        let mut quiet = Quiet::since(&news);
        loop {
            while let Some(settled) = news.settled.pop_front() {
                if settled.attempt == attempt {
                    return Ok(settled);
                }
            }
            if let Some(error) = &news.lost {
                return Err(error.clone());
            }
            news = self.shared.wait(news, &mut quiet)?;
        }
    }

    /// Ends this rank's part of the session.
    pub fn leave(&self) {
        if self.lost().is_some() || self.send(&Request::Leave).is_err() {
            return;
        }
        let mut news = self.shared.news();
        let mut quiet = Quiet::since(&news);
        while !news.left && news.lost.is_none() {
            let Ok(waited) = self.shared.wait(news, &mut quiet) else { return };
            news = waited;
        }
    }

    /// A unit to fill, if one is here. More are asked for in time.
    pub(super) fn unit_in_stock(&self) -> Result<Option<Unit>> {
        let mut news = self.shared.news();
        if let Some(error) = &news.lost {
            return Err(error.clone());
        }
        (news.capturing, news.warming) = (true, 0);
        let unit = news.stock.pop();
        let ask = news.stock.len() < UNITS_LOW && !std::mem::replace(&mut news.asked, true);
        drop(news);
        if ask {
            failpoint::pass("agent.units");
            self.send(&Request::Lease { count: UNITS_ASKED })?;
        }
        Ok(unit.map(|number| self.unit(number)))
    }

    /// A unit that was taken from the stock.
    fn unit(&self, number: u32) -> Unit {
        let memory = &self.shared.memory;
        let lender = Arc::clone(&self.shared) as Arc<dyn Lender>;
        // SAFETY: inside of the mapping, which the lender keeps; the unit is leased to this rank, and
        // whoever takes its number from the stock has it alone.
        unsafe { Unit::new(memory.unit(number), memory.unit_bytes(), number, lender) }
    }

    /// A unit to fill; waits until the agent has one.
    pub(super) fn take_unit(&self) -> Result<Unit> {
        let mut quiet = Quiet::since(&self.shared.news());
        loop {
            if let Some(unit) = self.unit_in_stock()? {
                return Ok(unit);
            }
            let news = self.shared.news();
            if news.stock.is_empty() && news.lost.is_none() {
                drop(self.shared.wait(news, &mut quiet)?);
            }
        }
    }

    /// The capture is over: what is in stock goes back, for others may need it.
    pub(super) fn return_stock(&self) {
        let mut news = self.shared.news();
        news.capturing = false;
        let units = std::mem::take(&mut news.stock);
        drop(news);
        if !units.is_empty() {
            let _ = self.send(&Request::Return { units });
        }
    }

    /// Sends filled units.
    pub(super) fn send_blocks(&self, blocks: Vec<Block>) -> Result<()> {
        failpoint::pass("agent.blocks");
        self.send(&Request::Blocks(self.shared.nonce, blocks))
    }

    fn send(&self, request: &Request) -> Result<()> {
        self.shared.send(request)
    }
}

impl Drop for Link {
    fn drop(&mut self) {
        self.leave();
        let _ = self.shared.stream.shutdown(std::net::Shutdown::Both);
    }
}

/// Which units this rank has had before.
struct Mapped {
    is_in: Vec<bool>,
}

impl Mapped {
    fn new(units: usize) -> Self {
        Self { is_in: vec![false; units] }
    }

    /// Whether all these units exist. Those that are new here are faulted in, before the program's
    /// thread takes them.
    fn check_in(&mut self, memory: &Memory, units: &[u32]) -> bool {
        for unit in units {
            match self.is_in.get_mut(*unit as usize) {
                None => return false,
                Some(true) => {}
                Some(is_in) => {
                    *is_in = true;
                    memory.populate(*unit);
                }
            }
        }
        true
    }
}

fn read_news(shared: &Shared, mut inbox: Inbox, mut mapped: Mapped) {
    loop {
        let reply = inbox.receive();
        let granted = match &reply {
            Ok(Some(Reply::Granted { units })) => mapped.check_in(&shared.memory, units),
            _ => false,
        };
        let mut news = shared.news();
        news.heard += 1;
        let (mut late, mut asks) = (None, false);
        match reply {
            Ok(Some(Reply::Beat)) => {}
            Ok(Some(Reply::Granted { units })) if granted => {
                news.stock.extend(units);
                asks = !news.capturing && news.stock.len() < news.warming;
                news.asked = asks;
                if !news.capturing && !asks {
                    news.warming = 0;
                    late = Some(std::mem::take(&mut news.stock));
                }
            }
            Ok(Some(Reply::Settled(settled))) => news.settled.push_back(*settled),
            Ok(Some(Reply::Left)) => news.left = true,
            Ok(Some(Reply::Refused(failure))) => {
                news.lost.get_or_insert(failure.into_error());
            }
            Ok(Some(_)) => {
                news.lost.get_or_insert(Error::Protocol("an answer to no question"));
            }
            Ok(None) => {
                news.lost.get_or_insert(Error::lost("its connection is closed"));
            }
            Err(error) => {
                news.lost.get_or_insert(error);
            }
        }
        let over = news.lost.is_some();
        drop(news);
        shared.changed.notify_all();
        if let Some(units) = late {
            let _ = shared.send(&Request::Return { units });
        }
        if asks {
            let _ = shared.send(&Request::Lease { count: UNITS_ASKED });
        }
        if over {
            return;
        }
    }
}
