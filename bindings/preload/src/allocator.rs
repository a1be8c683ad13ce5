//! malloc and its family, in front of mimalloc.
//!
//! | mode | process | who allocates |
//! |---|---|---|
//! | `PROGRAM` | the program, and its forked children | mimalloc |
//! | `ENGINE` | a twin; a process that is about to be resumed | the C library |
//!
//! Why the C library's allocator for the engine: nobody else uses it, so its locks are free and
//! its state is clean in a twin, whatever the program was doing. The engine's Rust code always
//! allocates there.
//!
//! Invariants:
//! - The way to mimalloc is one comparison, the mode; everything else is out of line (`engine`).
//! - In engine mode memory of mimalloc is read at most; freeing it does nothing.

mod engine;
mod mimalloc;

use std::ffi::{c_int, c_void};
use std::sync::atomic::{AtomicU32, Ordering};

use crate::{arena, system};
use mimalloc as mi;

const UNDECIDED: u32 = 0;
/// The program runs.
const PROGRAM: u32 = 1;
/// The engine runs, or is about to.
const ENGINE: u32 = 2;

static MODE: AtomicU32 = AtomicU32::new(UNDECIDED);

/// From now on the engine runs in this process.
pub(crate) fn enter_engine() {
    MODE.store(ENGINE, Ordering::Relaxed);
}

#[inline(always)]
fn is_program() -> bool {
    MODE.load(Ordering::Relaxed) == PROGRAM
}

/// The first call of a process decides, before any of the program's code runs; tells whether the
/// program allocates.
pub(crate) fn decide() -> bool {
    if MODE.load(Ordering::Relaxed) == UNDECIDED {
        let resumes = is_to_be_resumed();
        MODE.store(if resumes { ENGINE } else { PROGRAM }, Ordering::Relaxed);
        if !resumes {
            arena::give();
        }
    }
    is_program()
}

/// Looks at the environment as the kernel keeps it: the C library's is not there yet.
fn is_to_be_resumed() -> bool {
    const NAME: &[u8] = b"\0STANDFAST_PRELOAD_RESUME=";
    let Some(fd) = system::open(c"/proc/self/environ", libc::O_RDONLY) else { return false };
    let mut matched = 1;
    let mut buf = [0u8; 1024];
    let found = 'found: loop {
        let got = system::read(fd, &mut buf);
        if got == 0 {
            break false;
        }
        for byte in &buf[..got] {
            // Names begin after a 0, and none of ours holds one.
            matched = match *byte == NAME[matched] {
                true => matched + 1,
                false => usize::from(*byte == 0),
            };
            if matched == NAME.len() {
                break 'found true;
            }
        }
    };
    system::close(fd);
    found
}

/// Defines a function of C: straight to mimalloc, or out of line.
macro_rules! function {
    ($name:ident ($($arg:ident: $type:ty),*) $(-> $result:ty)?) => {
        /// As in C.
        ///
        /// # Safety
        /// As in C.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name($($arg: $type),*) $(-> $result)? {
            // SAFETY: as in C.
            unsafe { if is_program() { mi::$name($($arg),*) } else { engine::$name($($arg),*) } }
        }
    };
}

function!(malloc(size: usize) -> *mut c_void);
function!(calloc(count: usize, size: usize) -> *mut c_void);
function!(free(old: *mut c_void));
function!(realloc(old: *mut c_void, size: usize) -> *mut c_void);
function!(reallocarray(old: *mut c_void, count: usize, size: usize) -> *mut c_void);
function!(posix_memalign(out: *mut *mut c_void, align: usize, size: usize) -> c_int);
function!(aligned_alloc(align: usize, size: usize) -> *mut c_void);
function!(memalign(align: usize, size: usize) -> *mut c_void);
function!(valloc(size: usize) -> *mut c_void);
function!(pvalloc(size: usize) -> *mut c_void);
function!(malloc_usable_size(at: *mut c_void) -> usize);
