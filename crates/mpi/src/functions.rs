//! The table with all its functions present, and their calls as Rust sees them.
//!
//! Data: a [`CommTable`] from C -> checked and copied ([`Functions`]) -> one method for each
//! function, with slices in place of pointers and texts in place of codes.

use std::ffi::{CStr, c_int, c_void};
use std::mem::{MaybeUninit, size_of};

use crate::error::{Error, Result};
use crate::table::{CommFacts, CommTable};

/// A communicator as the adapter knows it.
///
/// Neither this nor [`Functions`] says who may use it: [`crate::Mpi`] does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Raw(pub(crate) *mut c_void);

/// A code that a function of the table has returned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Code(c_int);

type Outcome<T = ()> = std::result::Result<T, Code>;

/// A send that has been started: it must be given to [`Functions::end_send`].
#[must_use]
pub(crate) struct Sending(usize);

/// A message that has been found: it must be given to [`Functions::receive`].
#[must_use]
pub(crate) struct Message {
    token: usize,
    length: c_int,
}

impl Message {
    /// Its length, if it is one.
    pub(crate) fn length(&self) -> Option<usize> {
        usize::try_from(self.length).ok()
    }
}

/// The functions of a table, none missing.
#[derive(Clone, Copy)]
pub(crate) struct Functions(CommTable);

/// For functions of the table: `Functions::of` has looked at all of them.
const CHECKED: &str = "no function is missing";

fn outcome(code: c_int) -> Outcome {
    if code == 0 { Ok(()) } else { Err(Code(code)) }
}

/// The name of a function that is not there.
fn missing(table: &CommTable) -> Option<&'static str> {
    let functions = [
        ("describe", table.describe.is_some()),
        ("start_send", table.start_send.is_some()),
        ("end_send", table.end_send.is_some()),
        ("probe", table.probe.is_some()),
        ("receive", table.receive.is_some()),
        ("all_to_all_lengths", table.all_to_all_lengths.is_some()),
        ("all_to_all", table.all_to_all.is_some()),
        ("split", table.split.is_some()),
        ("duplicate", table.duplicate.is_some()),
        ("release", table.release.is_some()),
        ("describe_error", table.describe_error.is_some()),
    ];
    functions.into_iter().find(|(_, is_there)| !is_there).map(|(name, _)| name)
}

impl Functions {
    /// # Safety
    /// `table` is null or points to so many bytes as its first field says; its functions do what
    /// the comments at [`CommTable`] say, as long as the program runs.
    pub(crate) unsafe fn of(table: *const CommTable) -> Result<Self> {
        let wrong = |why: String| Error::Table { why };
        if table.is_null() || !table.is_aligned() {
            return Err(wrong("is NULL or misplaced".into()));
        }
        // SAFETY: not null; the caller vouches for it. Only the first field is read.
        let bytes = unsafe { (&raw const (*table).struct_bytes).read() };
        if bytes < size_of::<CommTable>() {
            let needed = size_of::<CommTable>();
            return Err(wrong(format!("has {bytes} bytes, {needed} are needed: it is too old")));
        }
        // SAFETY: the table is long enough.
        let table = unsafe { table.read() };
        match missing(&table) {
            Some(name) => Err(wrong(format!("has no {name}"))),
            None => Ok(Self(table)),
        }
    }

    /// The text for a code.
    pub(crate) fn text_of(&self, code: Code) -> String {
        let mut text = [0_u8; 1024];
        // SAFETY: the buffer has room for so many bytes.
        unsafe {
            self.0.describe_error.expect(CHECKED)(code.0, text.as_mut_ptr().cast(), text.len())
        };
        match CStr::from_bytes_until_nul(&text) {
            Ok(text) if !text.is_empty() => text.to_string_lossy().trim_end().to_owned(),
            _ => format!("error {} without a text", code.0),
        }
    }

    pub(crate) fn describe(&self, comm: Raw) -> Outcome<CommFacts> {
        let mut facts = CommFacts { struct_bytes: size_of::<CommFacts>(), ..CommFacts::default() };
        // SAFETY: whoever made this vouched for the functions, whoever made `comm` for it.
        outcome(unsafe { self.0.describe.expect(CHECKED)(comm.0, &mut facts) })?;
        Ok(facts)
    }

    /// # Safety
    /// The bytes stay as they are until `end_send`.
    pub(crate) unsafe fn start_send(
        &self,
        comm: Raw,
        to: c_int,
        tag: u16,
        bytes: &[u8],
    ) -> Outcome<Sending> {
        let length = c_int::try_from(bytes.len()).expect("a piece is no longer than an int");
        let (start, mut sending) = (bytes.as_ptr().cast(), 0);
        // SAFETY: as for `describe`; the caller vouches for the bytes.
        let code = unsafe {
            self.0.start_send.expect(CHECKED)(comm.0, to, tag.into(), start, length, &mut sending)
        };
        outcome(code)?;
        Ok(Sending(sending))
    }

    pub(crate) fn end_send(&self, comm: Raw, sending: Sending) -> Outcome {
        // SAFETY: as for `describe`; there is one end for every start.
        outcome(unsafe { self.0.end_send.expect(CHECKED)(comm.0, sending.0) })
    }

    pub(crate) fn probe(&self, comm: Raw, from: c_int, tag: u16) -> Outcome<Message> {
        let mut message = Message { token: 0, length: -1 };
        let Message { token, length } = &mut message;
        // SAFETY: as for `describe`.
        outcome(unsafe { self.0.probe.expect(CHECKED)(comm.0, from, tag.into(), token, length) })?;
        Ok(message)
    }

    /// Receives into room that is exactly as long as the message.
    pub(crate) fn receive(
        &self,
        comm: Raw,
        message: Message,
        room: &mut [MaybeUninit<u8>],
    ) -> Outcome {
        assert_eq!(message.length(), Some(room.len()), "the room has the length of the message");
        let start = room.as_mut_ptr().cast();
        // SAFETY: as for `describe`; so many bytes may be written.
        outcome(unsafe {
            self.0.receive.expect(CHECKED)(comm.0, message.token, start, message.length)
        })
    }

    /// One length for every rank of the communicator.
    pub(crate) fn all_to_all_lengths(&self, comm: Raw, outgoing: &[u64]) -> Outcome<Vec<u64>> {
        let mut incoming = vec![0; outgoing.len()];
        // SAFETY: as for `describe`; both have a place for every rank.
        outcome(unsafe {
            self.0.all_to_all_lengths.expect(CHECKED)(
                comm.0,
                outgoing.as_ptr(),
                incoming.as_mut_ptr(),
            )
        })?;
        Ok(incoming)
    }

    /// One length for every rank of the communicator, and bytes for their sum.
    pub(crate) fn all_to_all(
        &self,
        comm: Raw,
        (outgoing, outgoing_lengths): (&[u8], &[c_int]),
        (incoming, incoming_lengths): (&mut [u8], &[c_int]),
    ) -> Outcome {
        let sum = |lengths: &[c_int]| lengths.iter().map(|length| *length as usize).sum::<usize>();
        assert_eq!(sum(outgoing_lengths), outgoing.len(), "lengths fit what goes out");
        assert_eq!(sum(incoming_lengths), incoming.len(), "lengths fit what comes in");
        // SAFETY: as for `describe`; the lengths are those of the bytes.
        outcome(unsafe {
            self.0.all_to_all.expect(CHECKED)(
                comm.0,
                outgoing.as_ptr().cast(),
                outgoing_lengths.as_ptr(),
                incoming.as_mut_ptr().cast(),
                incoming_lengths.as_ptr(),
            )
        })
    }

    /// Colour -1 belongs to nothing.
    pub(crate) fn split(&self, comm: Raw, colour: c_int, key: c_int) -> Outcome<Option<Raw>> {
        let mut part = std::ptr::null_mut();
        // SAFETY: as for `describe`.
        outcome(unsafe { self.0.split.expect(CHECKED)(comm.0, colour, key, &mut part) })?;
        Ok((!part.is_null()).then_some(Raw(part)))
    }

    /// `None` breaks the table's word.
    pub(crate) fn duplicate(&self, comm: Raw) -> Outcome<Option<Raw>> {
        let mut copy = std::ptr::null_mut();
        // SAFETY: as for `describe`.
        outcome(unsafe { self.0.duplicate.expect(CHECKED)(comm.0, &mut copy) })?;
        Ok((!copy.is_null()).then_some(Raw(copy)))
    }

    /// # Safety
    /// `split` or `duplicate` has made it, and nobody uses it any more.
    pub(crate) unsafe fn release(&self, comm: Raw) {
        // SAFETY: as for `describe`.
        unsafe { self.0.release.expect(CHECKED)(comm.0) }
    }
}
