//! The table of C functions by which ranks talk. Its comments are those of `standfast.h`.

use std::ffi::{c_char, c_int, c_void};

/// What is known of a communicator, for `describe` of `sf_comm_table`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct CommFacts {
    /// `sizeof(sf_comm_facts)` of the library, which sets it: a later version may ask for more.
    pub struct_bytes: usize,
    /// This rank's number, from 0.
    pub rank: c_int,
    /// How many ranks there are.
    pub size: c_int,
    /// 1 if every thread may use communicators at any time, 0 if only the thread that calls the
    /// library may, inside those calls.
    pub any_thread: c_int,
    /// The longest message that `start_send` takes, in bytes: at least 16. Longer ones are sent
    /// in pieces.
    pub piece_bytes: c_int,
}

/// How the ranks of a job talk to each other: functions that the program brings along.
///
/// `standfast_mpi.c` has them for MPI. Programs that use it call `sf_init_comm` and never see this
/// table; it is here for other transports.
///
/// Every function takes a communicator as the program knows it, and returns 0 or a code for
/// `describe_error`. Communicators must give errors instead of ending the program. Tags are from 0
/// to 65535. Between two ranks, messages with one tag arrive in the order in which they were sent.
/// `all_to_all_lengths`, `all_to_all`, `split`, `duplicate` and `release` are called by all ranks of
/// a communicator, in the same order, and all but `release` right after a barrier of messages: they
/// may wait in whatever way is fastest. `end_send` and `probe` may have to wait for long.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct CommTable {
    /// `sizeof(sf_comm_table)`: the library refuses a table that is older than it needs.
    pub struct_bytes: usize,
    /// Tells about a communicator; fails if it cannot be used.
    pub describe: Option<unsafe extern "C" fn(comm: *mut c_void, facts: *mut CommFacts) -> c_int>,
    /// Starts to send a message. The bytes stay as they are until `end_send`, which every started
    /// send gets exactly once with what was put into `sending`.
    pub start_send: Option<
        unsafe extern "C" fn(
            comm: *mut c_void,
            to: c_int,
            tag: c_int,
            bytes: *const c_void,
            length: c_int,
            sending: *mut usize,
        ) -> c_int,
    >,
    /// Waits until the bytes of a started send are no longer needed.
    pub end_send: Option<unsafe extern "C" fn(comm: *mut c_void, sending: usize) -> c_int>,
    /// Waits for the next message of a rank with a tag, and tells its length. The message is then
    /// this thread's: `receive` gets what was put into `message`, exactly once.
    pub probe: Option<
        unsafe extern "C" fn(
            comm: *mut c_void,
            from: c_int,
            tag: c_int,
            message: *mut usize,
            length: *mut c_int,
        ) -> c_int,
    >,
    /// Receives a message that `probe` has found.
    pub receive: Option<
        unsafe extern "C" fn(
            comm: *mut c_void,
            message: usize,
            bytes: *mut c_void,
            length: c_int,
        ) -> c_int,
    >,
    /// Gives every rank the number at its place in `outgoing`, and collects one from every rank.
    pub all_to_all_lengths: Option<
        unsafe extern "C" fn(comm: *mut c_void, outgoing: *const u64, incoming: *mut u64) -> c_int,
    >,
    /// Gives every rank its bytes, and collects some from every rank. The bytes for and from the
    /// ranks lie one behind the other, in the order of ranks; the lengths are known to both sides.
    pub all_to_all: Option<
        unsafe extern "C" fn(
            comm: *mut c_void,
            outgoing: *const c_void,
            outgoing_lengths: *const c_int,
            incoming: *mut c_void,
            incoming_lengths: *const c_int,
        ) -> c_int,
    >,
    /// Makes a communicator of the ranks with the same colour, ordered by key (also negative ones),
    /// then by rank. A rank with colour -1 belongs to none: NULL goes into `part`.
    pub split: Option<
        unsafe extern "C" fn(
            comm: *mut c_void,
            colour: c_int,
            key: c_int,
            part: *mut *mut c_void,
        ) -> c_int,
    >,
    /// Makes a communicator of the same ranks. The one that `sf_init_transport` was given is only used
    /// for this and for `describe`.
    pub duplicate: Option<unsafe extern "C" fn(comm: *mut c_void, copy: *mut *mut c_void) -> c_int>,
    /// Lets go of a communicator that `split` or `duplicate` has made.
    pub release: Option<unsafe extern "C" fn(comm: *mut c_void)>,
    /// Writes the text for a code, ended with 0, into a buffer.
    pub describe_error:
        Option<unsafe extern "C" fn(code: c_int, text: *mut c_char, capacity: usize)>,
}
