//! The family of malloc while the engine runs: the C library's own.
//!
//! The first call of a process also comes here, and finds out which of the two it is.

use std::alloc::{GlobalAlloc, Layout};
use std::ffi::{CStr, c_int, c_void};

use super::{decide, mimalloc as mi};

const PAGE: usize = 4096;

unsafe extern "C" {
    fn __libc_malloc(size: usize) -> *mut c_void;
    fn __libc_calloc(count: usize, size: usize) -> *mut c_void;
    fn __libc_realloc(old: *mut c_void, size: usize) -> *mut c_void;
    fn __libc_memalign(align: usize, size: usize) -> *mut c_void;
    fn __libc_free(old: *mut c_void);
}

/// Defines a function out of line: mimalloc after all, or what follows.
macro_rules! function {
    ($name:ident ($($arg:ident: $type:ty),*) -> $result:ty, $engine:expr) => {
        #[cold]
        #[inline(never)]
        pub(super) unsafe extern "C" fn $name($($arg: $type),*) -> $result {
            // SAFETY: as in C.
            unsafe { if decide() { mi::$name($($arg),*) } else { $engine } }
        }
    };
}

function!(malloc(size: usize) -> *mut c_void, __libc_malloc(size));
function!(calloc(count: usize, size: usize) -> *mut c_void, __libc_calloc(count, size));
function!(free(old: *mut c_void) -> (), if !mi::owns(old) { __libc_free(old) });
function!(realloc(old: *mut c_void, size: usize) -> *mut c_void, engine_realloc(old, size));
function!(reallocarray(old: *mut c_void, count: usize, size: usize) -> *mut c_void, {
    match count.checked_mul(size) {
        Some(bytes) => engine_realloc(old, bytes),
        None => std::ptr::null_mut(),
    }
});
function!(posix_memalign(out: *mut *mut c_void, align: usize, size: usize) -> c_int, {
    if !align.is_power_of_two() || !align.is_multiple_of(size_of::<usize>()) {
        return libc::EINVAL;
    }
    let new = __libc_memalign(align, size);
    if new.is_null() {
        return libc::ENOMEM;
    }
    *out = new;
    0
});
function!(aligned_alloc(align: usize, size: usize) -> *mut c_void, __libc_memalign(align, size));
function!(memalign(align: usize, size: usize) -> *mut c_void, __libc_memalign(align, size));
function!(valloc(size: usize) -> *mut c_void, __libc_memalign(PAGE, size));
function!(pvalloc(size: usize) -> *mut c_void, __libc_memalign(PAGE, size.next_multiple_of(PAGE)));
function!(malloc_usable_size(at: *mut c_void) -> usize, {
    if mi::owns(at) {
        return mi::malloc_usable_size(at);
    }
    next::<unsafe extern "C" fn(*mut c_void) -> usize>(c"malloc_usable_size")
        .map_or(0, |usable| usable(at))
});

/// Continues memory of the program in memory of the engine.
unsafe fn engine_realloc(old: *mut c_void, size: usize) -> *mut c_void {
    // SAFETY: `old` is a live object of one of the two; the new one has `size` bytes.
    unsafe {
        if old.is_null() || !mi::owns(old) {
            return __libc_realloc(old, size);
        }
        let new = __libc_malloc(size);
        if !new.is_null() {
            let bytes = mi::malloc_usable_size(old).min(size);
            new.cast::<u8>().copy_from_nonoverlapping(old.cast(), bytes);
        }
        new
    }
}

/// The function of that name behind ours.
///
/// # Safety
/// `F` is its type.
unsafe fn next<F: Copy>(name: &CStr) -> Option<F> {
    // SAFETY: the name ends with 0; the caller vouches for the type, which is a pointer's.
    unsafe {
        let found = libc::dlsym(libc::RTLD_NEXT, name.as_ptr());
        (!found.is_null()).then(|| std::mem::transmute_copy(&found))
    }
}

/// The engine's allocator.
struct Engine;

#[global_allocator]
static ENGINE_ALLOCATOR: Engine = Engine;

// SAFETY: the C library's allocator keeps the contract; alignments beyond its own are asked for.
unsafe impl GlobalAlloc for Engine {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: any size and power of two may be asked for.
        unsafe { __libc_memalign(layout.align().max(16), layout.size()).cast() }
    }

    unsafe fn dealloc(&self, old: *mut u8, _: Layout) {
        // SAFETY: it came from `alloc`.
        unsafe { __libc_free(old.cast()) }
    }
}
