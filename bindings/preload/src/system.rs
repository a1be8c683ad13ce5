//! System calls, bare: no `errno`, no thread-local state, nothing that a restored library could
//! see. Each gives the kernel's answer, negative for an error.

use std::arch::asm;
use std::ffi::CStr;

/// Makes a system call.
///
/// # Safety
/// As the call demands.
#[inline(always)]
pub(crate) unsafe fn call(number: i64, args: [usize; 6]) -> isize {
    let result: isize;
    // SAFETY: the registers of the system call convention; the caller vouches for the rest.
    unsafe {
        asm!(
            "syscall",
            inlateout("rax") number as isize => result,
            in("rdi") args[0], in("rsi") args[1], in("rdx") args[2],
            in("r10") args[3], in("r8") args[4], in("r9") args[5],
            lateout("rcx") _, lateout("r11") _,
            options(nostack)
        );
    }
    result
}

/// Fills up with zeros.
#[inline(always)]
pub(crate) const fn padded<const N: usize>(given: [usize; N]) -> [usize; 6] {
    let mut args = [0; 6];
    let mut at = 0;
    while at < N {
        args[at] = given[at];
        at += 1;
    }
    args
}

/// A system call with fewer arguments.
macro_rules! sys {
    ($number:expr $(, $arg:expr)*) => {
        $crate::system::call($number, $crate::system::padded([$($arg as usize),*]))
    };
}
pub(crate) use sys;

/// Opens a file; who starts another program does not hand it on.
pub(crate) fn open(path: &CStr, flags: i32) -> Option<i32> {
    // SAFETY: the path ends with 0.
    let fd =
        unsafe { sys!(libc::SYS_openat, libc::AT_FDCWD, path.as_ptr(), flags | libc::O_CLOEXEC) };
    (fd >= 0).then_some(fd as i32)
}

/// Closes a descriptor.
pub(crate) fn close(fd: i32) {
    // SAFETY: closing has no memory effects; the descriptor is ours.
    unsafe { sys!(libc::SYS_close, fd) };
}

/// Reads into a buffer; 0 at the end and for errors.
pub(crate) fn read(fd: i32, buf: &mut [u8]) -> usize {
    // SAFETY: the buffer is as long as it says.
    let got = unsafe { sys!(libc::SYS_read, fd, buf.as_mut_ptr(), buf.len()) };
    got.max(0) as usize
}

/// This thread's number.
#[inline(always)]
pub(crate) fn tid() -> i32 {
    // SAFETY: no arguments.
    unsafe { sys!(libc::SYS_gettid) as i32 }
}

/// This process's number.
pub(crate) fn pid() -> i32 {
    // SAFETY: no arguments.
    unsafe { sys!(libc::SYS_getpid) as i32 }
}

/// This thread's pointer.
pub(crate) fn thread_pointer() -> usize {
    let pointer: usize;
    // SAFETY: by the x86-64 convention the thread's first word holds its own address.
    unsafe { asm!("mov {}, fs:0", out(reg) pointer, options(nostack, readonly)) };
    pointer
}

/// Writable memory without a file, at a given address or where the kernel likes (0). Room is taken
/// only where it is written.
pub(crate) fn map(at: usize, bytes: usize) -> Option<*mut u8> {
    let fixed = if at == 0 { 0 } else { libc::MAP_FIXED_NOREPLACE };
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE | fixed;
    let prot = libc::PROT_READ | libc::PROT_WRITE;
    // SAFETY: a new mapping that replaces none.
    let got = unsafe { sys!(libc::SYS_mmap, at, bytes, prot, flags, usize::MAX, 0) };
    if got < 0 {
        return None;
    }
    if at != 0 && got as usize != at {
        // An old kernel took the address for a hint.
        unmap(got as usize, bytes);
        return None;
    }
    Some(got as usize as *mut u8)
}

/// Gives memory back.
pub(crate) fn unmap(at: usize, bytes: usize) {
    // SAFETY: callers name only memory that they have mapped.
    unsafe { sys!(libc::SYS_munmap, at, bytes) };
}

/// Says something on stderr, in pieces.
pub(crate) fn say(parts: &[&[u8]]) {
    for part in parts {
        // SAFETY: the bytes are readable.
        unsafe { sys!(libc::SYS_write, 2, part.as_ptr(), part.len()) };
    }
}

/// Ends the process.
#[inline(always)]
pub(crate) fn exit(code: i32) -> ! {
    loop {
        // SAFETY: nothing comes after it.
        unsafe { sys!(libc::SYS_exit_group, code) };
    }
}

/// A number as text.
pub(crate) struct Digits([u8; 20]);

impl Digits {
    pub(crate) fn of(mut number: u64, base: u64) -> Self {
        let mut digits = [b' '; 20];
        for digit in digits.iter_mut().rev() {
            *digit = b"0123456789abcdef"[(number % base) as usize];
            number /= base;
            if number == 0 {
                break;
            }
        }
        Self(digits)
    }

    pub(crate) fn text(&self) -> &[u8] {
        self.0.trim_ascii_start()
    }
}
