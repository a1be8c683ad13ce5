//! mimalloc, under the names of C.

use std::ffi::{c_int, c_void};

// The package brings the library; its own declarations lack most of the family.
use libmimalloc_sys as _;

unsafe extern "C" {
    #[link_name = "mi_malloc"]
    pub(super) fn malloc(size: usize) -> *mut c_void;
    #[link_name = "mi_calloc"]
    pub(super) fn calloc(count: usize, size: usize) -> *mut c_void;
    #[link_name = "mi_free"]
    pub(super) fn free(old: *mut c_void);
    #[link_name = "mi_realloc"]
    pub(super) fn realloc(old: *mut c_void, size: usize) -> *mut c_void;
    #[link_name = "mi_reallocarray"]
    pub(super) fn reallocarray(old: *mut c_void, count: usize, size: usize) -> *mut c_void;
    #[link_name = "mi_posix_memalign"]
    pub(super) fn posix_memalign(out: *mut *mut c_void, align: usize, size: usize) -> c_int;
    #[link_name = "mi_aligned_alloc"]
    pub(super) fn aligned_alloc(align: usize, size: usize) -> *mut c_void;
    #[link_name = "mi_memalign"]
    pub(super) fn memalign(align: usize, size: usize) -> *mut c_void;
    #[link_name = "mi_valloc"]
    pub(super) fn valloc(size: usize) -> *mut c_void;
    #[link_name = "mi_pvalloc"]
    pub(super) fn pvalloc(size: usize) -> *mut c_void;
    #[link_name = "mi_usable_size"]
    pub(super) fn malloc_usable_size(at: *const c_void) -> usize;
    /// Whether memory is mimalloc's.
    #[link_name = "mi_is_in_heap_region"]
    pub(super) fn owns(at: *const c_void) -> bool;
}
