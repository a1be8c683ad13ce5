//! The kernel's table of mappings, read without allocating.

use crate::system;

/// A line of `/proc/self/maps`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Line<'a> {
    pub(crate) start: usize,
    pub(crate) end: usize,
    /// `PROT_*`.
    pub(crate) prot: i32,
    pub(crate) shared: bool,
    pub(crate) offset: u64,
    /// What the kernel says of it: a path, a name in brackets, or nothing.
    pub(crate) name: &'a [u8],
}

impl Line<'_> {
    /// Whether a file is behind it.
    pub(crate) fn has_file(&self) -> bool {
        self.name.first() == Some(&b'/')
    }

    /// Whether it is the kernel's own.
    pub(crate) fn is_kernel(&self) -> bool {
        self.name.starts_with(b"[v") || self.name.starts_with(b"[uprobes")
    }
}

/// Reads the table into a buffer; `None` if it does not fit.
pub(crate) fn read(buf: &mut [u8]) -> Option<&[u8]> {
    let fd = system::open(c"/proc/self/maps", libc::O_RDONLY)?;
    let mut len = 0;
    loop {
        let got = system::read(fd, &mut buf[len..]);
        len += got;
        if got == 0 {
            break;
        }
    }
    system::close(fd);
    (len > 0 && len < buf.len()).then(|| &buf[..len])
}

/// The lines of the table.
pub(crate) fn lines(table: &[u8]) -> impl Iterator<Item = Line<'_>> {
    table.split(|byte| *byte == b'\n').filter_map(parse)
}

fn parse(line: &[u8]) -> Option<Line<'_>> {
    let mut rest = line;
    let mut field = || {
        let end = rest.iter().position(|byte| *byte == b' ').unwrap_or(rest.len());
        let (field, after) = rest.split_at(end);
        rest = after.trim_ascii_start();
        field
    };
    let (range, flags, offset) = (field(), field(), field());
    let (_device, _inode) = (field(), field());
    let dash = range.iter().position(|byte| *byte == b'-')?;
    let (start, end) = (hex(&range[..dash])?, hex(&range[dash + 1..])?);
    let bit = |at: usize, letter: u8, prot: i32| {
        if flags.get(at) == Some(&letter) { prot } else { 0 }
    };
    let prot = bit(0, b'r', libc::PROT_READ)
        | bit(1, b'w', libc::PROT_WRITE)
        | bit(2, b'x', libc::PROT_EXEC);
    let shared = flags.get(3) == Some(&b's');
    Some(Line { start, end, prot, shared, offset: hex(offset)? as u64, name: rest })
}

fn hex(text: &[u8]) -> Option<usize> {
    usize::from_str_radix(std::str::from_utf8(text).ok()?, 16).ok()
}
