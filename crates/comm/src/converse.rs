//! A conversation of all ranks in which a panic of one is heard by all.
//!
//! Whoever panicked sends nothing more, and the others would wait for it. So every collective call of
//! a conversation begins with a word of all ranks, and so does its end: a rank that has panicked says
//! so where the others come next, and they leave the conversation there.
//!
//! Invariant: all ranks leave a conversation at the same word, with the same outcome, unless one of
//! them cannot be reached.

use std::panic::{AssertUnwindSafe, catch_unwind};

use crate::collective::all_reduce;
use crate::error::{Error, Result};
use crate::{Around, Call, Comm};

/// Lets all ranks talk. Where one panics, all get [`Error::Panicked`], and may go on talking.
pub fn converse<T>(comm: &dyn Comm, talk: impl FnOnce(&dyn Comm) -> Result<T>) -> Result<T> {
    let spoken = Spoken { comm };
    match catch_unwind(AssertUnwindSafe(|| talk(&spoken))) {
        Ok(said) => {
            let said = said?;
            spoken.word(None)?;
            Ok(said)
        }
        Err(_) => Err(spoken
            .word(Some(comm.rank()))
            .err()
            .unwrap_or(Error::Panicked { rank: comm.rank() })),
    }
}

/// A communicator whose collective calls begin with a word of all ranks.
struct Spoken<'a> {
    comm: &'a dyn Comm,
}

impl Spoken<'_> {
    /// Fails if a rank says that it has panicked.
    fn word(&self, panicked: Option<usize>) -> Result<()> {
        if self.comm.size() == 1 {
            return panicked.map_or(Ok(()), |rank| Err(Error::Panicked { rank }));
        }
        let own = panicked.map_or(u64::MAX, |rank| rank as u64).to_le_bytes();
        let lowest = all_reduce(self.comm, own.to_vec(), |lower, upper| {
            Ok(self.number(lower)?.min(self.number(upper)?).to_le_bytes().to_vec())
        })?;
        match self.number(&lowest)? {
            u64::MAX => Ok(()),
            rank => Err(Error::Panicked { rank: rank as usize }),
        }
    }

    fn number(&self, bytes: &[u8]) -> Result<u64> {
        let (rank, why) = (self.comm.rank(), "a word of a conversation has 8 bytes");
        let bytes = bytes.try_into().map_err(|_| Error::Message { rank, from: rank, why })?;
        Ok(u64::from_le_bytes(bytes))
    }
}

impl Around for Spoken<'_> {
    fn inner(&self) -> &dyn Comm {
        self.comm
    }

    fn before(&self, call: Call) -> Result<()> {
        if let Call::Message(_) = call { Ok(()) } else { self.word(None) }
    }
}
