//! The point of no return: memory is overwritten, threads are made, and the program goes on.
//!
//! This runs on a stack of its own, for the program's stack is among what is overwritten. It uses
//! no library, no thread-local and no static variable: all of them change under its hands. Its
//! code does not: that lies in read-only memory of the same library at the same place.

use std::arch::asm;

use standfast_launch::plan::{Mapping, Piece, Plan, Thread};

use crate::context::{RESUMED, again};
use crate::control::Control;
use crate::system::{self, sys};
use crate::zone;

/// Room for the stack.
pub(crate) const STACK_BYTES: usize = 256 << 10;
/// Read at a time; the launcher's file gives the memory back as it is read.
const CHUNK: usize = 16 << 20;
/// Exit code when memory cannot be restored: that of a failing device.
const FAILED: i32 = 16;

/// What is needed.
pub(crate) struct Pouring<'a> {
    pub(crate) plan: Plan<'a>,
    pub(crate) fd: i32,
    /// Bytes of memory taken for resuming, description and stack.
    pub(crate) room: usize,
    pub(crate) control: *mut Control,
}

/// Changes to another stack and pours.
pub(crate) fn run(pouring: &Pouring<'_>, stack_top: usize) -> ! {
    // The arguments must not lie on the program's stack.
    let at = (stack_top - size_of::<Pouring<'_>>()) & !63;
    // SAFETY: the new stack is fresh memory; `pour` never returns.
    unsafe {
        (at as *mut Pouring<'_>).copy_from_nonoverlapping(pouring, 1);
        asm!(
            "mov rsp, {stack}",
            "xor ebp, ebp",
            "call {pour}",
            "ud2",
            stack = in(reg) at,
            pour = sym pour,
            in("rdi") at,
            options(noreturn)
        )
    }
}

extern "C" fn pour(pouring: *const Pouring<'static>) -> ! {
    // SAFETY: `run` passes what it has copied.
    let Pouring { plan, fd, room, control } = unsafe { &*pouring };
    for mapping in plan.mappings {
        protect(mapping, libc::PROT_WRITE | libc::PROT_READ);
    }
    for piece in plan.pieces {
        pour_piece(*fd, piece);
    }
    system::close(*fd);
    for mapping in plan.mappings {
        protect(mapping, 0);
    }
    // SAFETY: the page is this process's own; `clean_up` looks here.
    unsafe { (*(*control)).slots_len = *room };
    let offset = plan.header.tid_offset;
    let mut first = None;
    for thread in plan.threads {
        match thread.first {
            1 => first = Some(thread),
            _ => start(thread, offset),
        }
    }
    match first {
        Some(thread) => become_thread(thread, offset),
        None => fail(b"no first thread"),
    }
}

fn fail(why: &[u8]) -> ! {
    system::say(&[b"standfast: resuming failed: ", why, b"\n"]);
    system::exit(FAILED)
}

/// Sets a mapping's protection, with something added.
#[inline(always)]
fn protect(mapping: &Mapping, added: i32) {
    let bytes = mapping.end - mapping.start;
    // SAFETY: the mapping was made or found by `resume`.
    let done =
        unsafe { sys!(libc::SYS_mprotect, mapping.start, bytes, mapping.prot as i32 | added) };
    if done < 0 {
        fail(b"memory cannot be protected");
    }
}

#[inline(always)]
fn pour_piece(fd: i32, piece: &Piece) {
    const HOLE: i32 = libc::FALLOC_FL_PUNCH_HOLE | libc::FALLOC_FL_KEEP_SIZE;
    let (mut at, mut from, mut left) = (piece.start, piece.from, piece.bytes as usize);
    while left > 0 {
        let bytes = if left < CHUNK { left } else { CHUNK };
        // SAFETY: the piece lies within a writable mapping whose contents are given up.
        let got = unsafe { sys!(libc::SYS_pread64, fd, at, bytes, from) };
        if got <= 0 {
            fail(b"memory cannot be filled");
        }
        // SAFETY: gives back what was read; where that cannot be done it only costs memory.
        unsafe { sys!(libc::SYS_fallocate, fd, HOLE, from, got) };
        at += got as u64;
        from += got as u64;
        left -= got as usize;
    }
}

/// Starts another thread where it stood.
#[inline(always)]
fn start(thread: &Thread, tid_offset: u64) {
    const FLAGS: i32 = libc::CLONE_VM
        | libc::CLONE_FS
        | libc::CLONE_FILES
        | libc::CLONE_SIGHAND
        | libc::CLONE_THREAD
        | libc::CLONE_SYSVSEM
        | libc::CLONE_SETTLS
        | libc::CLONE_PARENT_SETTID
        | libc::CLONE_CHILD_CLEARTID;
    let number = thread.pointer + tid_offset;
    let result: isize;
    // SAFETY: the thread's stack, thread-local memory and code are restored. The new thread
    // leaves this code at once, on its own stack.
    unsafe {
        asm!(
            "syscall",
            "test rax, rax",
            "jnz 2f",
            "mov eax, {resumed}",
            "jmp {again}",
            "2:",
            resumed = const RESUMED,
            again = in(reg) again(),
            inlateout("rax") libc::SYS_clone as isize => result,
            in("rdi") FLAGS as usize, in("rsi") thread.context, in("rdx") number,
            in("r10") number, in("r8") thread.pointer,
            // Not late: the address to go to must survive the call.
            out("rcx") _, out("r11") _,
            options(nostack)
        );
    }
    if result < 0 {
        fail(b"a thread cannot be started");
    }
}

/// This thread becomes the program's first.
#[inline(always)]
fn become_thread(thread: &Thread, tid_offset: u64) -> ! {
    let number = thread.pointer + tid_offset;
    // SAFETY: as in `start`; the C library finds this thread's number where it looks for it.
    unsafe {
        sys!(libc::SYS_arch_prctl, ARCH_SET_FS, thread.pointer);
        sys!(libc::SYS_set_tid_address, number);
        (number as *mut i32).write_volatile(system::tid());
        asm!(
            "mov rsp, {stack}",
            "mov eax, {resumed}",
            "jmp {again}",
            stack = in(reg) thread.context,
            resumed = const RESUMED,
            again = in(reg) again(),
            options(noreturn)
        )
    }
}

const ARCH_SET_FS: usize = 0x1002;

/// Gives back the memory taken for resuming, from within the resumed program.
pub(crate) fn clean_up() {
    // SAFETY: the page is there; only the thread that took the checkpoint comes here.
    if let Some(control) = unsafe { Control::get() } {
        let room = control.slots_len;
        // SAFETY: as above.
        unsafe { (*control.as_ptr()).slots_len = 0 };
        system::unmap(zone::RESUME, room);
    }
}
