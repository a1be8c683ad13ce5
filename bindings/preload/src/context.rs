//! The place where a thread goes on when it is resumed.
//!
//! [`hold`] saves what a call must preserve on the thread's own stack and runs a function. It
//! returns that function's answer; in a resumed process it returns once more, with [`RESUMED`],
//! because somebody has set the stack pointer to `*place` and gone to [`again`].
//!
//! Why not setjmp: to the compiler this is one ordinary call that returns one value, so nothing
//! in the caller's frame can be in a register that is not restored.

use std::arch::global_asm;
use std::ffi::c_void;

/// What [`hold`] returns in a resumed process.
pub(crate) const RESUMED: u64 = 1;

global_asm!(
    ".text",
    ".hidden standfast_hold",
    ".globl standfast_hold",
    ".type standfast_hold,@function",
    "standfast_hold:",
    "push rbp",
    "push rbx",
    "push r12",
    "push r13",
    "push r14",
    "push r15",
    "sub rsp, 8",
    "stmxcsr [rsp]",
    "fnstcw [rsp + 4]",
    "mov [rdi], rsp",
    "mov rdi, rdx",
    "call rsi",
    ".hidden standfast_again",
    ".globl standfast_again",
    "standfast_again:",
    "ldmxcsr [rsp]",
    "fldcw [rsp + 4]",
    "add rsp, 8",
    "pop r15",
    "pop r14",
    "pop r13",
    "pop r12",
    "pop rbx",
    "pop rbp",
    "ret",
    ".size standfast_hold, .-standfast_hold",
);

unsafe extern "C" {
    fn standfast_hold(
        place: *mut u64,
        run: extern "C" fn(*mut c_void) -> u64,
        arg: *mut c_void,
    ) -> u64;
    fn standfast_again();
}

/// Runs a function at a place that can be returned to; the place is written before.
///
/// # Safety
/// `place` is writable, and `arg` is what `run` expects.
pub(crate) unsafe fn hold(
    place: *mut u64,
    run: extern "C" fn(*mut c_void) -> u64,
    arg: *mut c_void,
) -> u64 {
    // SAFETY: the caller vouches.
    unsafe { standfast_hold(place, run, arg) }
}

/// Address to go to, with `rax` = [`RESUMED`] and the stack pointer at a saved place.
#[inline(always)]
pub(crate) fn again() -> usize {
    standfast_again as *const () as usize
}
