//! The table's user against a table that is no MPI: functions over virtual ranks, with pieces of
//! any length, and with faults.

use std::ffi::{c_char, c_int, c_void};
use std::ptr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use standfast_comm::{Comm, Concurrency, Tag};
use standfast_conformance::comm as conformance;
use standfast_format::Kind;
use standfast_testkit::{Threads, run_threads};

use crate::Mpi;
use crate::table::{CommFacts, CommTable};

/// What a function of the table does wrong.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Fault {
    None,
    Describe,
    StartSend,
    EndSend,
    Probe,
    NegativeLength,
    LongPiece,
    Receive,
    Split,
    NullDuplicate,
    NoSuchRank,
    UselessPieces,
}

/// What the library takes for a communicator of an MPI.
struct Fake {
    comm: Box<dyn Comm>,
    piece_bytes: c_int,
    any_thread: c_int,
    /// Shared with everything made from it.
    fault: Arc<Mutex<Fault>>,
    /// Made and not yet released.
    alive: Arc<AtomicUsize>,
    /// Sends that were started and not ended.
    sending: Arc<AtomicUsize>,
}

const CODE: c_int = 71;

impl Fake {
    fn new(comm: Threads, piece_bytes: c_int) -> Self {
        Self {
            comm: Box::new(comm),
            piece_bytes,
            any_thread: 1,
            fault: Arc::new(Mutex::new(Fault::None)),
            alive: Arc::default(),
            sending: Arc::default(),
        }
    }

    fn set(&self, fault: Fault) {
        *self.fault.lock().unwrap() = fault;
    }

    fn has(&self, fault: Fault) -> bool {
        *self.fault.lock().unwrap() == fault
    }

    fn child(&self, comm: Box<dyn Comm>) -> *mut c_void {
        self.alive.fetch_add(1, Ordering::SeqCst);
        let (fault, alive) = (Arc::clone(&self.fault), Arc::clone(&self.alive));
        let sending = Arc::clone(&self.sending);
        Box::into_raw(Box::new(Self { comm, fault, alive, sending, ..*self })).cast()
    }

    /// The duplicate that the library makes of it.
    fn open(&mut self) -> crate::Result<Mpi> {
        // SAFETY: the table keeps to its comments, and this outlives the call.
        unsafe { Mpi::duplicate_of(&TABLE, ptr::from_mut(self).cast()) }
    }
}

/// # Safety
/// The library passes on what it was given.
unsafe fn fake<'a>(comm: *mut c_void) -> &'a Fake {
    // SAFETY: the caller vouches for it.
    unsafe { &*comm.cast::<Fake>() }
}

fn code(failed: bool) -> c_int {
    if failed { CODE } else { 0 }
}

unsafe extern "C" fn describe(comm: *mut c_void, facts: *mut CommFacts) -> c_int {
    // SAFETY: as for every function here: the library calls them as the table says.
    let fake = unsafe { fake(comm) };
    let rank = if fake.has(Fault::NoSuchRank) { -1 } else { fake.comm.rank() as c_int };
    let piece_bytes = if fake.has(Fault::UselessPieces) { -5 } else { fake.piece_bytes };
    let told = CommFacts {
        struct_bytes: size_of::<CommFacts>(),
        rank,
        size: fake.comm.size() as c_int,
        any_thread: fake.any_thread,
        piece_bytes,
    };
    // SAFETY: as above.
    unsafe { facts.write(told) };
    code(fake.has(Fault::Describe))
}

unsafe extern "C" fn start_send(
    comm: *mut c_void,
    to: c_int,
    tag: c_int,
    bytes: *const c_void,
    length: c_int,
    sending: *mut usize,
) -> c_int {
    // SAFETY: as above.
    let (fake, bytes) =
        unsafe { (fake(comm), std::slice::from_raw_parts(bytes.cast::<u8>(), length as usize)) };
    if fake.has(Fault::StartSend) {
        return CODE;
    }
    assert!(length <= fake.piece_bytes, "no piece is longer than what was said");
    fake.sending.fetch_add(1, Ordering::SeqCst);
    // SAFETY: as above.
    unsafe { sending.write(0x5e9d) };
    fake.comm.send(to as usize, Tag(tag as u16), bytes).map_or(CODE, |()| 0)
}

unsafe extern "C" fn end_send(comm: *mut c_void, sending: usize) -> c_int {
    // SAFETY: as above.
    let fake = unsafe { fake(comm) };
    assert_eq!(sending, 0x5e9d);
    fake.sending.fetch_sub(1, Ordering::SeqCst);
    code(fake.has(Fault::EndSend))
}

unsafe extern "C" fn probe(
    comm: *mut c_void,
    from: c_int,
    tag: c_int,
    message: *mut usize,
    length: *mut c_int,
) -> c_int {
    // SAFETY: as above.
    let fake = unsafe { fake(comm) };
    if fake.has(Fault::Probe) {
        return CODE;
    }
    let Ok(found) = fake.comm.receive(from as usize, Tag(tag as u16)) else { return CODE };
    let told = match () {
        () if fake.has(Fault::NegativeLength) => -1,
        () if fake.has(Fault::LongPiece) => c_int::MAX,
        () => found.len() as c_int,
    };
    // SAFETY: as above.
    unsafe {
        message.write(Box::into_raw(Box::new(found)).expose_provenance());
        length.write(told);
    }
    0
}

unsafe extern "C" fn receive(
    comm: *mut c_void,
    message: usize,
    bytes: *mut c_void,
    length: c_int,
) -> c_int {
    // SAFETY: `probe` has made it of a box.
    let found = unsafe { Box::from_raw(ptr::with_exposed_provenance_mut::<Vec<u8>>(message)) };
    assert_eq!(found.len(), length as usize);
    // SAFETY: as above.
    unsafe { ptr::copy_nonoverlapping(found.as_ptr(), bytes.cast(), found.len()) };
    // SAFETY: as above.
    code(unsafe { fake(comm) }.has(Fault::Receive))
}

unsafe extern "C" fn all_to_all_lengths(
    comm: *mut c_void,
    outgoing: *const u64,
    incoming: *mut u64,
) -> c_int {
    // SAFETY: as above.
    let comm = &*unsafe { fake(comm) }.comm;
    // SAFETY: as above.
    let outgoing = unsafe { std::slice::from_raw_parts(outgoing, comm.size()) };
    let outgoing = outgoing.iter().map(|length| length.to_le_bytes().to_vec()).collect();
    let Ok(told) = comm.all_to_all(outgoing) else { return CODE };
    for (at, bytes) in told.into_iter().enumerate() {
        // SAFETY: as above.
        unsafe { incoming.add(at).write(u64::from_le_bytes(bytes.try_into().unwrap())) };
    }
    0
}

unsafe extern "C" fn all_to_all(
    comm: *mut c_void,
    mut outgoing: *const c_void,
    outgoing_lengths: *const c_int,
    mut incoming: *mut c_void,
    incoming_lengths: *const c_int,
) -> c_int {
    // SAFETY: as above.
    let comm = &*unsafe { fake(comm) }.comm;
    let mut messages = Vec::new();
    for to in 0..comm.size() {
        // SAFETY: as above; there is a length for every rank, and bytes for every length.
        unsafe {
            let length = *outgoing_lengths.add(to) as usize;
            messages.push(std::slice::from_raw_parts(outgoing.cast::<u8>(), length).to_vec());
            outgoing = outgoing.byte_add(length);
        }
    }
    let Ok(received) = comm.all_to_all(messages) else { return CODE };
    for (from, message) in received.iter().enumerate() {
        // SAFETY: as above.
        unsafe {
            assert_eq!(*incoming_lengths.add(from) as usize, message.len());
            ptr::copy_nonoverlapping(message.as_ptr(), incoming.cast(), message.len());
            incoming = incoming.byte_add(message.len());
        }
    }
    0
}

unsafe extern "C" fn split(
    comm: *mut c_void,
    colour: c_int,
    key: c_int,
    part: *mut *mut c_void,
) -> c_int {
    // SAFETY: as above.
    let fake = unsafe { fake(comm) };
    assert!(colour >= -1, "colours of MPI have no sign");
    let colour = (colour >= 0).then_some(colour as u32);
    let made = fake.comm.split(colour, key as u32 ^ (1 << 31)).unwrap();
    // SAFETY: as above.
    unsafe { part.write(made.map_or(ptr::null_mut(), |made| fake.child(made))) };
    code(fake.has(Fault::Split))
}

unsafe extern "C" fn duplicate(comm: *mut c_void, copy: *mut *mut c_void) -> c_int {
    // SAFETY: as above.
    let fake = unsafe { fake(comm) };
    if !fake.has(Fault::NullDuplicate) {
        // SAFETY: as above.
        unsafe { copy.write(fake.child(fake.comm.duplicate().unwrap())) };
    }
    0
}

unsafe extern "C" fn release(comm: *mut c_void) {
    // SAFETY: `child` has made it of a box.
    let fake = unsafe { Box::from_raw(comm.cast::<Fake>()) };
    fake.alive.fetch_sub(1, Ordering::SeqCst);
}

unsafe extern "C" fn describe_error(code: c_int, text: *mut c_char, capacity: usize) {
    let told = format!("code {code} of the fake\n\0");
    assert!(told.len() <= capacity);
    // SAFETY: as above.
    unsafe { ptr::copy_nonoverlapping(told.as_ptr().cast(), text, told.len()) };
}

const TABLE: CommTable = CommTable {
    struct_bytes: size_of::<CommTable>(),
    describe: Some(describe),
    start_send: Some(start_send),
    end_send: Some(end_send),
    probe: Some(probe),
    receive: Some(receive),
    all_to_all_lengths: Some(all_to_all_lengths),
    all_to_all: Some(all_to_all),
    split: Some(split),
    duplicate: Some(duplicate),
    release: Some(release),
    describe_error: Some(describe_error),
};

#[test]
fn the_contract_is_kept_whatever_the_length_of_pieces() {
    for (size, piece_bytes) in [(1, 4096), (2, 999), (3, 1 << 20), (5, c_int::MAX)] {
        run_threads(size, |comm| {
            let mut fake = Fake::new(comm, piece_bytes);
            let mpi = fake.open().unwrap();
            conformance::run(&mpi);
            drop(mpi);
            assert_eq!(fake.alive.load(Ordering::SeqCst), 0, "all have been released");
            assert_eq!(fake.sending.load(Ordering::SeqCst), 0, "all have been ended");
        });
    }
}

#[test]
fn ranks_agree_on_the_shortest_piece() {
    run_threads(3, |comm| {
        let piece_bytes = [1000, 64, 500][comm.rank()];
        let mpi = Fake::new(comm, piece_bytes).open().unwrap();
        let (right, left) = ((mpi.rank() + 1) % 3, (mpi.rank() + 2) % 3);
        let received = mpi.exchange(right, &[mpi.rank() as u8; 640], left, Tag(1)).unwrap();
        assert_eq!(received, [left as u8; 640]);
    });
}

/// Opens a single rank and lets `call` meet a fault.
fn meets(fault: Fault, call: impl Fn(&Mpi) -> standfast_comm::Result<()> + Sync) -> String {
    let texts = run_threads(1, |comm| {
        let mut fake = Fake::new(comm, 16);
        let mpi = fake.open().unwrap();
        fake.set(fault);
        let error = call(&mpi).unwrap_err();
        assert_eq!(error.kind(), Kind::Io);
        assert_eq!(fake.sending.load(Ordering::SeqCst), 0, "no send is left behind");
        error.to_string()
    });
    texts.concat()
}

#[test]
fn failures_and_nonsense_become_errors() {
    let exchange = |mpi: &Mpi| mpi.exchange(0, &[1; 55], 0, Tag(1)).map(drop);
    for fault in [Fault::StartSend, Fault::EndSend] {
        let expected = "rank 0: cannot send a message: code 71 of the fake";
        assert_eq!(meets(fault, exchange), expected);
        assert_eq!(meets(fault, |mpi| mpi.send(0, Tag(1), b"x")), expected);
    }
    for fault in [Fault::Probe, Fault::Receive] {
        assert_eq!(meets(fault, exchange), "rank 0: cannot receive a message: code 71 of the fake");
    }
    for fault in [Fault::NegativeLength, Fault::LongPiece] {
        assert!(meets(fault, exchange).contains("a length that was not agreed"));
    }
    let split = meets(Fault::Split, |mpi| mpi.split(Some(1), 0).map(drop));
    assert_eq!(split, "rank 0: cannot split a communicator: code 71 of the fake");
    assert!(meets(Fault::NullDuplicate, |mpi| mpi.duplicate().map(drop)).contains("NULL"));
    assert!(meets(Fault::NoSuchRank, |mpi| mpi.duplicate().map(drop)).contains("no rank -1 of 1"));
}

#[test]
fn a_communicator_that_is_of_no_use_is_refused() {
    for (fault, text) in [
        (Fault::Describe, "code 71 of the fake"),
        (Fault::NullDuplicate, "its duplicate is NULL"),
        (Fault::NoSuchRank, "there is no rank -1 of 1"),
        (Fault::UselessPieces, "pieces of at most 0 bytes are of no use"),
    ] {
        run_threads(1, |comm| {
            let mut fake = Fake::new(comm, 16);
            fake.set(fault);
            let error = fake.open().unwrap_err();
            assert_eq!(error.kind(), Kind::Invalid);
            assert_eq!(error.to_string(), format!("the communicator cannot be used: {text}"));
        });
    }
}

#[test]
fn a_table_that_lacks_something_is_refused() {
    let open = |table: *const CommTable| {
        // SAFETY: the table is refused before the communicator is looked at.
        unsafe { Mpi::duplicate_of(table, ptr::null_mut()) }.unwrap_err().to_string()
    };
    assert!(open(ptr::null()).ends_with("is NULL or misplaced"));
    let old = CommTable { struct_bytes: size_of::<CommTable>() - 8, ..TABLE };
    assert!(open(&old).ends_with("it is too old"));
    let lacking = CommTable { probe: None, ..TABLE };
    assert!(open(&lacking).ends_with("has no probe"));
}

#[test]
fn without_any_thread_only_its_own_thread_lets_a_communicator_go() {
    run_threads(1, |comm| {
        let mut fake = Fake::new(comm, 16);
        fake.any_thread = 0;
        let (here, elsewhere) = (fake.open().unwrap(), fake.open().unwrap());
        assert_eq!(here.concurrency(), Concurrency::CallerOnly);
        drop(here);
        assert_eq!(fake.alive.load(Ordering::SeqCst), 1);
        std::thread::spawn(move || drop(elsewhere)).join().unwrap();
        assert_eq!(fake.alive.load(Ordering::SeqCst), 1, "left behind, as nobody may call MPI");
    });
}
