//! What somebody of the same user can do to an agent with a recorded conversation.

use std::fmt;
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::FileExt;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use super::{NONCE_BYTES, Said, Talk, receive, receive_message, send};
use crate::command::Random;

/// An agent must have answered, refused or hung up within this.
const ANSWER_MAX: Duration = Duration::from_secs(20);

/// What is done to the message with this number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Trick {
    /// Nothing: the old conversation, word for word.
    Again,
    /// It comes after the next one.
    Late,
    /// It comes twice.
    Twice,
    /// It does not come.
    LeftOut,
    /// Half of it comes, then nothing.
    Cut,
    /// It claims to be longer than the agent may take.
    Endless,
    /// It claims to end early.
    Short,
    /// Some bytes are others.
    Flipped(u64),
    /// Another descriptor, or none, comes with it.
    Descriptor(usize),
}

/// A way of saying a conversation again.
#[derive(Clone, Copy, Debug)]
pub struct Attack {
    at: usize,
    trick: Trick,
    /// Whether the attacker reads what the agent says to it, and calls its attempts by new names: what
    /// is left of the old conversation are pages and the names of segments.
    knowing: bool,
}

impl fmt::Display for Attack {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let who = if self.knowing { "knowing" } else { "blind" };
        write!(f, "message {} {:?}, {who}", self.at, self.trick)
    }
}

/// All of them for a conversation, with so many flips.
pub fn attacks(talk: &Talk, descriptors: usize, flips: u64) -> Vec<Attack> {
    let tricks =
        [Trick::Late, Trick::Twice, Trick::LeftOut, Trick::Cut, Trick::Endless, Trick::Short];
    let mut all = Vec::new();
    for knowing in [false, true] {
        all.push(Attack { at: 0, trick: Trick::Again, knowing });
        for at in 0..talk.said.len() {
            all.extend(tricks.map(|trick| Attack { at, trick, knowing }));
        }
        let begin = talk.said.iter().position(|said| said.has_fd).unwrap_or(0);
        let other = (0..descriptors).map(Trick::Descriptor);
        all.extend(other.map(|trick| Attack { at: begin, trick, knowing }));
        let mut random = Random::new(1 + u64::from(knowing));
        for _ in 0..flips {
            let at = random.next_u64() as usize % talk.said.len();
            all.push(Attack { at, trick: Trick::Flipped(random.next_u64()), knowing });
        }
    }
    all
}

/// Somebody who talks to an agent.
pub struct Attacker<'a> {
    /// Where it listens.
    pub socket: PathBuf,
    /// What was said once.
    pub talk: &'a Talk,
    /// The lock of the store that it was about, held.
    pub lock: BorrowedFd<'a>,
    /// Other descriptors; `None` for none at all.
    pub descriptors: Vec<Option<OwnedFd>>,
    /// Bytes in the conversation that are replaced by the knowing: names of attempts.
    pub attempts: Vec<Vec<u8>>,
}

impl Attacker<'_> {
    /// Says everything; returns how long the agent took until it had hung up or had nothing more to say.
    /// An error if that was too long.
    pub fn run(&self, attack: &Attack) -> io::Result<Duration> {
        let began = Instant::now();
        let stream = UnixStream::connect(&self.socket)?;
        stream.set_read_timeout(Some(ANSWER_MAX))?;
        stream.set_write_timeout(Some(ANSWER_MAX))?;
        let (mut nonce, mut pool) = (self.talk.nonce, None);
        for said in self.script(attack) {
            if let Some(pool) = pool.as_ref().filter(|_| !said.pool.is_empty()) {
                let _ = File::write_all_at(pool, &said.pool, 0);
            }
            let bytes = if attack.knowing { self.rename(said.bytes, &nonce) } else { said.bytes };
            let fd = said.has_fd.then_some(self.lock);
            let fd = match attack.trick {
                Trick::Descriptor(number) if said.has_fd => {
                    self.descriptors[number].as_ref().map(AsFd::as_fd)
                }
                _ => fd,
            };
            if send(&stream, &bytes, fd).is_err() {
                break;
            }
            // Where it is let in it learns what it needs for the rest.
            if said.has_fd && attack.knowing && !hear(&stream, &mut nonce, &mut pool)? {
                break;
            }
        }
        // Whoever has said all that it has to say waits for the end.
        let _ = stream.shutdown(std::net::Shutdown::Write);
        let mut rest = [0; 4096];
        while matches!(receive(&stream, &mut rest), Ok((1.., _))) {}
        match began.elapsed() {
            took if took < ANSWER_MAX => Ok(took),
            _ => Err(io::Error::new(io::ErrorKind::TimedOut, "the agent does not hang up")),
        }
    }

    fn script(&self, attack: &Attack) -> Vec<Said> {
        let mut said = self.talk.said.clone();
        let at = attack.at;
        match attack.trick {
            Trick::Again | Trick::Descriptor(_) => {}
            Trick::Late if at + 1 < said.len() => said.swap(at, at + 1),
            Trick::Late | Trick::LeftOut => drop(said.remove(at)),
            Trick::Twice => said.insert(at, said[at].clone()),
            Trick::Cut => {
                said.truncate(at + 1);
                let half = said[at].bytes.len() / 2;
                said[at].bytes.truncate(half.max(1));
            }
            Trick::Endless => said[at].bytes[..4].copy_from_slice(&u32::MAX.to_le_bytes()),
            Trick::Short => {
                let length = (said[at].bytes.len() as u32 - 4) / 2;
                said[at].bytes[..4].copy_from_slice(&length.to_le_bytes());
            }
            Trick::Flipped(seed) => {
                let mut random = Random::new(seed);
                let bytes = &mut said[at].bytes;
                for _ in 0..1 + random.next_u64() % 4 {
                    let place = random.next_u64() as usize % bytes.len();
                    bytes[place] ^= 1 << (random.next_u64() % 8);
                }
            }
        }
        said
    }

    /// The same message with the new number, and new names for the attempts.
    fn rename(&self, mut bytes: Vec<u8>, nonce: &[u8; NONCE_BYTES]) -> Vec<u8> {
        replace(&mut bytes, &self.talk.nonce, nonce);
        for attempt in &self.attempts {
            let new: Vec<u8> = attempt.iter().map(|byte| !byte).collect();
            replace(&mut bytes, attempt, &new);
        }
        bytes
    }
}

fn replace(bytes: &mut [u8], old: &[u8], new: &[u8]) {
    let mut at = 0;
    while at + old.len() <= bytes.len() {
        if &bytes[at..at + old.len()] == old {
            bytes[at..at + old.len()].copy_from_slice(new);
        }
        at += 1;
    }
}

/// Takes what the agent says until it lets somebody in; false when it hangs up instead.
fn hear(
    stream: &UnixStream,
    nonce: &mut [u8; NONCE_BYTES],
    pool: &mut Option<File>,
) -> io::Result<bool> {
    while let Ok(Some((bytes, fd))) = receive_message(stream) {
        if let Some(fd) = fd {
            *nonce = bytes.last_chunk().copied().unwrap_or_default();
            *pool = Some(File::from(fd));
            return Ok(true);
        }
    }
    Ok(false)
}
