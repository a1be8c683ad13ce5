//! A shard as a file: a header, the shard's bytes, a table of checksums.
//!
//! ```text
//! 0        header: a frame (docs/FORMAT.md) with whose shard this is and how long members are
//! h        body: as many bytes as the longest member has; nothing is padded
//! h + b    table: a frame with a checksum of every block of the shard and of all members
//! ```
//! Why checksums of the members too: whoever rebuilds knows whether the result is right, and a
//! member that has changed since is found before it spoils others.
//!
//! Why blocks: damage costs what it touches, and a stream is checked before it is used.
//!
//! Invariants:
//! - The header says how long everything is; nothing is allocated beyond that and its bounds.
//! - A block is used only after its checksum matched.

mod header;
mod table;

pub use header::{BLOCK_BYTES_MAX, BLOCK_BYTES_MIN, HEADER_BYTES_MAX, Header, Stamp};
pub use table::{Table, checksum};

use crate::error::{Error, Result};
use crate::frame::PREFIX_BYTES;
use crate::topology::Piece;

/// A shard whose header and table are whole; its body is checked block by block.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shard {
    /// Whose it is.
    pub header: Header,
    /// The checksums of its blocks.
    pub table: Table,
    /// Where the body starts in the file.
    pub body_at: u64,
}

impl Shard {
    /// Opens a file of so many bytes; `read` fills a slice from an offset.
    pub fn open(
        file_bytes: u64,
        mut read: impl FnMut(u64, &mut [u8]) -> std::result::Result<(), crate::error::Outside>,
    ) -> Result<Self> {
        let mut take = |at: u64, bytes: usize| {
            let end = at.checked_add(bytes as u64);
            if end.is_none_or(|end| end > file_bytes) {
                return Err(Error::Corrupt { what: "shard", why: "it is cut off" });
            }
            let mut buffer = vec![0; bytes];
            let unread = |_| Error::Corrupt { what: "shard", why: "it cannot be read" };
            read(at, &mut buffer).map_err(unread)?;
            Ok(buffer)
        };
        let head_bytes = Header::frame_bytes(&take(0, PREFIX_BYTES)?)?;
        let header = Header::decode(&take(0, head_bytes)?)?;
        let body_at = head_bytes as u64;
        let table_at = body_at
            .checked_add(header.body_bytes())
            .ok_or(Error::Corrupt { what: "shard", why: "its members are longer than a file" })?;
        let table_bytes = file_bytes.checked_sub(table_at);
        if table_bytes != Some(header.table_bytes()) {
            return Err(Error::Corrupt { what: "shard", why: "it has another length" });
        }
        let table = Table::decode(&take(table_at, header.table_bytes() as usize)?, &header)?;
        Ok(Self { header, table, body_at })
    }

    /// Which shard it is.
    pub fn piece(&self) -> Piece {
        self.header.piece()
    }
}

#[cfg(test)]
mod tests;
