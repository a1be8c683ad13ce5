//! What a checkpoint says about a program beside its memory: the region `process`.
//!
//! ```text
//! Header | Mapping * | Piece * | Thread * | OpenFile * | text (paths)
//! ```
//! Records are fixed and plain, for the reader runs before `main`, where nothing may be allocated.
//! The machine that resumes is of the kind that took the checkpoint: numbers are in its order.
//!
//! Invariants:
//! - [`Plan::parse`] has checked every length and every reference into the text.
//! - Pieces lie within mappings, in ascending order.

use zerocopy::{FromBytes, FromZeros, Immutable, IntoBytes, KnownLayout};

use crate::error::{Error, Result};

/// Name of the region.
pub const REGION: &str = "process";
/// What memory regions' names begin with; the address of the first byte follows, in hex.
pub const MEMORY: &str = "memory ";
const MAGIC: [u8; 8] = *b"SFPROC\0\x01";
/// Signals that have an action.
pub const SIGNALS: usize = 64;

/// A path in the text at the end.
#[derive(Clone, Copy, Debug, Default, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct Text {
    /// Where it begins.
    pub at: u32,
    /// Its length.
    pub len: u32,
}

/// The program as a whole.
#[derive(Clone, Copy, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct Header {
    magic: [u8; 8],
    counts: [u32; 4],
    /// Length of the text.
    text_bytes: u64,
    /// Bytes of a page of the system.
    pub page_bytes: u64,
    /// Where the kernel's code page lay.
    pub vdso: u64,
    /// End of the classic heap, 0 if there was none.
    pub brk: u64,
    /// Where the C library keeps a thread's number, from its thread pointer.
    pub tid_offset: u64,
    /// Working directory.
    pub cwd: Text,
    /// What each signal does, as the kernel keeps it.
    pub actions: [[u64; 4]; SIGNALS],
}

/// A stretch of address space.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct Mapping {
    /// First byte.
    pub start: u64,
    /// Behind the last byte.
    pub end: u64,
    /// Where in the file it begins.
    pub offset: u64,
    /// `PROT_*`.
    pub prot: u32,
    /// One of [`ANONYMOUS`], [`FILE`], [`STACK`], [`HEAP`].
    pub kind: u32,
    /// The file; empty if there is none.
    pub path: Text,
    /// Digest of the file's contents.
    pub digest: [u8; 32],
}

/// Memory without a file.
pub const ANONYMOUS: u32 = 0;
/// Memory from a file; pages that were written are pieces.
pub const FILE: u32 = 1;
/// The first thread's stack.
pub const STACK: u32 = 2;
/// The classic heap.
pub const HEAP: u32 = 3;

/// Captured memory.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct Piece {
    /// First byte.
    pub start: u64,
    /// Length.
    pub bytes: u64,
    /// Where its contents begin in the file that is handed to the program.
    pub from: u64,
}

/// A thread, stopped in the library's handler.
#[derive(Clone, Copy, Debug, Default, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct Thread {
    /// Its thread pointer.
    pub pointer: u64,
    /// Address of its saved registers, on its own stack.
    pub context: u64,
    /// Its list of robust locks.
    pub robust: u64,
    /// Length of that list's head.
    pub robust_bytes: u64,
    /// 1 for the first thread of the process.
    pub first: u64,
}

/// An open file.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct OpenFile {
    /// Its descriptor.
    pub fd: u32,
    /// `O_*`.
    pub flags: u32,
    /// Position in it.
    pub position: u64,
    /// Where it lies.
    pub path: Text,
}

/// A parsed description.
#[derive(Clone, Copy)]
pub struct Plan<'a> {
    /// The program as a whole.
    pub header: &'a Header,
    /// Its address space.
    pub mappings: &'a [Mapping],
    /// Its memory.
    pub pieces: &'a [Piece],
    /// Its threads.
    pub threads: &'a [Thread],
    /// Its files.
    pub files: &'a [OpenFile],
    text: &'a [u8],
}

impl<'a> Plan<'a> {
    /// Reads a description; the bytes must be aligned to 8.
    pub fn parse(bytes: &'a [u8]) -> Result<Self> {
        let wrong = |_| Error::Description("it is cut short");
        let (header, rest) = Header::ref_from_prefix(bytes).map_err(|_| wrong(()))?;
        if header.magic != MAGIC {
            return Err(Error::Description("another version of Standfast wrote it"));
        }
        let [mappings, pieces, threads, files] = header.counts.map(|count| count as usize);
        let (mappings, rest) = records(rest, mappings)?;
        let (pieces, rest) = records(rest, pieces)?;
        let (threads, rest) = records(rest, threads)?;
        let (files, rest) = records(rest, files)?;
        let text = usize::try_from(header.text_bytes).ok().and_then(|bytes| rest.get(..bytes));
        let text = text.ok_or(Error::Description("it is cut short"))?;
        let plan = Self { header, mappings, pieces, threads, files, text };
        plan.check().then_some(plan).ok_or(Error::Description("its parts contradict each other"))
    }

    fn check(&self) -> bool {
        let inside = |text: &Text| {
            (text.at as usize)
                .checked_add(text.len as usize)
                .is_some_and(|end| end <= self.text.len())
        };
        let ascending = self.pieces.windows(2).all(|two| two[0].end() <= two[1].start);
        inside(&self.header.cwd)
            && self
                .mappings
                .iter()
                .all(|mapping| inside(&mapping.path) && mapping.start < mapping.end)
            && self.files.iter().all(|file| inside(&file.path))
            && ascending
            && self.threads.iter().filter(|thread| thread.first == 1).count() == 1
            && self.pieces.iter().all(|piece| self.lies_within(piece))
    }

    fn lies_within(&self, piece: &Piece) -> bool {
        let of = |mapping: &&Mapping| mapping.start <= piece.start && piece.start < mapping.end;
        self.mappings.iter().find(of).is_some_and(|mapping| piece.end() <= mapping.end)
    }

    /// A path.
    pub fn text(&self, text: Text) -> &'a [u8] {
        &self.text[text.at as usize..][..text.len as usize]
    }
}

fn records<T: FromBytes + Immutable + KnownLayout>(
    bytes: &[u8],
    count: usize,
) -> Result<(&[T], &[u8])> {
    <[T]>::ref_from_prefix_with_elems(bytes, count)
        .map_err(|_| Error::Description("it is cut short"))
}

impl Piece {
    fn end(&self) -> u64 {
        self.start.saturating_add(self.bytes)
    }
}

/// A description being written.
pub struct Draft {
    /// The program as a whole.
    pub header: Header,
    /// Its address space.
    pub mappings: Vec<Mapping>,
    /// Its memory, in ascending order.
    pub pieces: Vec<Piece>,
    /// Its threads.
    pub threads: Vec<Thread>,
    /// Its files.
    pub files: Vec<OpenFile>,
    text: Vec<u8>,
}

impl Draft {
    /// An empty description.
    pub fn new(page_bytes: u64) -> Self {
        let mut header = Header::new_zeroed();
        header.magic = MAGIC;
        header.page_bytes = page_bytes;
        let (mappings, pieces) = (Vec::new(), Vec::new());
        Self { header, mappings, pieces, threads: Vec::new(), files: Vec::new(), text: Vec::new() }
    }

    /// Copies what was parsed, to change it.
    pub fn of(plan: &Plan<'_>) -> Self {
        Self {
            header: *plan.header,
            mappings: plan.mappings.to_vec(),
            pieces: plan.pieces.to_vec(),
            threads: plan.threads.to_vec(),
            files: plan.files.to_vec(),
            text: plan.text.to_vec(),
        }
    }

    /// Keeps a path.
    pub fn keep(&mut self, path: &[u8]) -> Text {
        let at = self.text.len() as u32;
        self.text.extend_from_slice(path);
        Text { at, len: path.len() as u32 }
    }

    /// The bytes.
    pub fn encode(&self) -> Vec<u8> {
        let mut header = self.header;
        let lengths =
            [self.mappings.len(), self.pieces.len(), self.threads.len(), self.files.len()];
        header.counts = lengths.map(|len| len as u32);
        header.text_bytes = self.text.len() as u64;
        [
            header.as_bytes(),
            self.mappings.as_bytes(),
            self.pieces.as_bytes(),
            self.threads.as_bytes(),
            self.files.as_bytes(),
            &self.text,
        ]
        .concat()
    }
}

#[cfg(test)]
mod tests;
