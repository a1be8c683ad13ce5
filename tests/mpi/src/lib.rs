//! What MPI programs of the tests call from this side: the conformance suite.
//!
//! Data: an `MPI_Comm` of a program in C or Fortran -> the adapter's table -> the suite of
//! `standfast_comm` on every rank -> 0, or 1 and the broken promise on stderr.

use std::ffi::{c_int, c_void};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Mutex, PoisonError};

use standfast_comm::{Comm, Concurrency, Tag};
use standfast_conformance::comm as conformance;
use standfast_mpi::{CommTable, Mpi};

/// Runs the suite on a communicator; all its ranks call this.
///
/// `any_thread` tells whether MPI grants every thread its calls. Returns 0 if every promise is
/// kept; otherwise the program must end all ranks, for the others may wait.
///
/// # Safety
/// As for [`Mpi::duplicate_of`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn standfast_test_conformance(
    table: *const CommTable,
    comm: *mut c_void,
    any_thread: c_int,
) -> c_int {
    let suite = || {
        // SAFETY: passed on to the caller.
        let comm = unsafe { Mpi::duplicate_of(table, comm) }.expect("the communicator is usable");
        let expected =
            if any_thread == 0 { Concurrency::CallerOnly } else { Concurrency::AnyThread };
        assert_eq!(comm.concurrency(), expected);
        conformance::run(&comm);
    };
    c_int::from(catch_unwind(AssertUnwindSafe(suite)).is_err())
}

/// Exchanges one message so long that its length is no `int`, in a ring.
///
/// # Safety
/// As for [`Mpi::duplicate_of`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn standfast_test_huge(
    table: *const CommTable,
    comm: *mut c_void,
    bytes: u64,
) -> c_int {
    let ring = || {
        // SAFETY: passed on to the caller.
        let comm = unsafe { Mpi::duplicate_of(table, comm) }.expect("the communicator is usable");
        let (rank, size) = (comm.rank(), comm.size());
        let (right, left) = ((rank + 1) % size, (rank + size - 1) % size);
        let own = stamped(bytes as usize, rank);
        let received = comm.exchange(right, &own, left, Tag(1)).unwrap();
        assert!(received == stamped(bytes as usize, left), "the message arrives as it was sent");
        drop(received);
        let mut outgoing = vec![Vec::new(); size];
        outgoing[right] = own;
        let incoming = comm.all_to_all(outgoing).unwrap();
        assert!(incoming[left] == stamped(bytes as usize, left), "all to all delivers the same");
    };
    c_int::from(catch_unwind(AssertUnwindSafe(ring)).is_err())
}

/// Bytes of a rank that show every shift.
fn stamped(bytes: usize, rank: usize) -> Vec<u8> {
    let mut message = vec![rank as u8; bytes];
    for (at, chunk) in message.chunks_exact_mut(4093).enumerate() {
        chunk[..8].copy_from_slice(&at.to_le_bytes());
    }
    message
}

/// A communicator that is kept beyond the end of MPI.
static KEPT: Mutex<Option<Mpi>> = Mutex::new(None);

/// Duplicates a communicator and keeps it.
///
/// # Safety
/// As for [`Mpi::duplicate_of`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn standfast_test_keep(table: *const CommTable, comm: *mut c_void) -> c_int {
    // SAFETY: passed on to the caller.
    let Ok(comm) = (unsafe { Mpi::duplicate_of(table, comm) }) else { return 1 };
    *KEPT.lock().unwrap_or_else(PoisonError::into_inner) = Some(comm);
    0
}

/// After the end of MPI: what was kept says so, and can be dropped.
#[unsafe(no_mangle)]
pub extern "C" fn standfast_test_drop() -> c_int {
    let dropped = || {
        let kept = KEPT.lock().unwrap_or_else(PoisonError::into_inner).take();
        let comm = kept.expect("one was kept");
        let error = comm.exchange(comm.rank(), b"x", comm.rank(), Tag(1)).unwrap_err();
        assert!(error.to_string().contains("MPI has ended"), "{error}");
    };
    c_int::from(catch_unwind(dropped).is_err())
}
