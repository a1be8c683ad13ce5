//! A program of one rank: every message is to itself.

use std::collections::{HashMap, VecDeque};
use std::sync::{Mutex, PoisonError};

use crate::error::{Error, Result};
use crate::{Comm, Concurrency, Tag};

/// The communicator of a program that has no other ranks.
#[derive(Debug, Default)]
pub struct Solo {
    waiting: Mutex<HashMap<Tag, VecDeque<Vec<u8>>>>,
}

impl Solo {
    fn check(&self, peer: usize) -> Result<()> {
        if peer == 0 { Ok(()) } else { Err(Error::NoRank { peer, size: 1 }) }
    }
}

impl Comm for Solo {
    fn rank(&self) -> usize {
        0
    }

    fn size(&self) -> usize {
        1
    }

    fn concurrency(&self) -> Concurrency {
        Concurrency::AnyThread
    }

    fn send(&self, to: usize, tag: Tag, bytes: &[u8]) -> Result<()> {
        self.check(to)?;
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        waiting.entry(tag).or_default().push_back(bytes.to_vec());
        Ok(())
    }

    fn receive(&self, from: usize, tag: Tag) -> Result<Vec<u8>> {
        self.check(from)?;
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        let message = waiting.get_mut(&tag).and_then(VecDeque::pop_front);
        // Nobody else could ever send it.
        message.ok_or(Error::Transport {
            rank: 0,
            op: "receive a message",
            why: "a single rank waits for what it has not sent".into(),
        })
    }

    fn exchange(&self, to: usize, bytes: &[u8], from: usize, tag: Tag) -> Result<Vec<u8>> {
        self.check(from)?;
        self.send(to, tag, bytes)?;
        self.receive(from, tag)
    }

    fn all_to_all(&self, outgoing: Vec<Vec<u8>>) -> Result<Vec<Vec<u8>>> {
        assert_eq!(outgoing.len(), 1, "one message for each rank");
        Ok(outgoing)
    }

    fn split(&self, colour: Option<u32>, _key: u32) -> Result<Option<Box<dyn Comm>>> {
        Ok(colour.map(|_| Box::new(Self::default()) as Box<dyn Comm>))
    }
}
