//! Before `main` of a program that is to be resumed: the address space becomes what it was.
//!
//! Data: the launcher's file -> description -> every mapping of the old process is there: left as
//! the loader made it, or made now -> files and signals -> [`crate::pour`].
//!
//! Invariants:
//! - Nothing is allocated, and nothing is overwritten before everything was checked.
//! - A mapping of the old process that lies where this one has something else is an error: the
//!   program, a library, a limit or the kernel is not the same.

use std::ffi::CStr;

use standfast_launch::plan::{ANONYMOUS, FILE, HEAP, Mapping, OpenFile, Plan, STACK};

use crate::control::Control;
use crate::maps::{self, Line};
use crate::pour::{self, Pouring};
use crate::system::{self, Digits, sys};
use crate::{start, zone};

/// Exit code of a program that does not match its checkpoint: that of a wrong argument.
const UNFIT: i32 = 18;
/// Room for the kernel's table of mappings.
const TABLE_BYTES: usize = 16 << 20;

/// Resumes the program. `text` is the file's descriptor and the length of the description.
pub(crate) fn run(text: &[u8], control: &Control) -> ! {
    start::block_signals();
    let (fd, bytes) = told(text).unwrap_or_else(|| refuse(&[b"the launcher's variable is wrong"]));
    let room = bytes.next_multiple_of(4096) + TABLE_BYTES + pour::STACK_BYTES;
    let Some(base) = system::map(zone::RESUME, room) else { refuse(&[b"no memory"]) };
    // SAFETY: fresh memory, cut into parts that do not overlap.
    let (description, table) = unsafe {
        let table = base.add(room - pour::STACK_BYTES - TABLE_BYTES);
        (
            std::slice::from_raw_parts_mut(base, bytes),
            std::slice::from_raw_parts_mut(table, TABLE_BYTES),
        )
    };
    if system::read(fd, description) != bytes {
        refuse(&[b"its description cannot be read"]);
    }
    let Ok(plan) = Plan::parse(description) else { refuse(&[b"its description is damaged"]) };
    let Some(table) = maps::read(table) else { refuse(&[b"/proc/self/maps cannot be read"]) };
    check_kernel(&plan, table);
    let fd = out_of_the_way(&plan, fd);
    restore_heap_end(&plan);
    for mapping in plan.mappings {
        ensure(&plan, mapping, table);
    }
    restore_files(&plan);
    restore_signals(&plan);
    let stack_top = base as usize + room;
    pour::run(&Pouring { plan, fd, room, control: control.as_ptr() }, stack_top)
}

fn told(text: &[u8]) -> Option<(i32, usize)> {
    let (fd, bytes) = std::str::from_utf8(text).ok()?.split_once(':')?;
    Some((fd.parse().ok()?, bytes.parse().ok()?))
}

fn refuse(why: &[&[u8]]) -> ! {
    system::say(&[b"standfast: the program cannot be resumed: "]);
    system::say(why);
    system::say(&[b"\n"]);
    system::exit(UNFIT)
}

fn check_kernel(plan: &Plan<'_>, table: &[u8]) {
    let vdso = maps::lines(table).find(|line| line.name == b"[vdso]").map_or(0, |line| line.start);
    if plan.header.vdso != vdso as u64 || plan.header.page_bytes != 4096 {
        refuse(&[
            b"the kernel lays out processes in another way than where the checkpoint was taken",
        ]);
    }
}

/// Moves the launcher's file to a number that is none of the program's own: it got whatever number
/// was free in the launcher, and the program's files come back under theirs.
fn out_of_the_way(plan: &Plan<'_>, mut fd: i32) -> i32 {
    while plan.files.iter().any(|file| file.fd == fd as u32) {
        // SAFETY: a copy of a descriptor that is open, at a free number above it.
        let moved = unsafe { sys!(libc::SYS_fcntl, fd, libc::F_DUPFD_CLOEXEC, fd + 1) };
        if moved < 0 {
            refuse(&[b"no descriptor is free beside its own files; raise 'ulimit -n'"]);
        }
        system::close(fd);
        fd = moved as i32;
    }
    fd
}

fn restore_heap_end(plan: &Plan<'_>) {
    let wanted = plan.header.brk as usize;
    if wanted == 0 {
        return;
    }
    // SAFETY: growing the classic heap only adds memory; the C library asks again before use.
    let got = unsafe {
        let now = sys!(libc::SYS_brk, 0) as usize;
        if now < wanted { sys!(libc::SYS_brk, wanted) as usize } else { now }
    };
    if got < wanted {
        refuse(&[b"the heap cannot grow to its size; is there a limit on memory?"]);
    }
}

/// Makes a mapping of the old process where this one does not have it.
fn ensure(plan: &Plan<'_>, mapping: &Mapping, table: &[u8]) {
    let (start, end) = (mapping.start as usize, mapping.end as usize);
    if mapping.kind == STACK {
        return grow_stack(start);
    }
    let mut at = start;
    for line in maps::lines(table).filter(|line| line.end > start && line.start < end) {
        if line.start > at {
            make(plan, mapping, at, line.start);
        }
        if !is_same(plan, mapping, &line) {
            conflict(&line, start);
        }
        at = line.end.min(end);
    }
    // The heap's end was moved after the table was read.
    if at < end && mapping.kind != HEAP {
        make(plan, mapping, at, end);
    }
}

fn is_same(plan: &Plan<'_>, mapping: &Mapping, line: &Line<'_>) -> bool {
    match mapping.kind {
        FILE => {
            line.name == plan.text(mapping.path)
                && line.offset.wrapping_sub(line.start as u64)
                    == mapping.offset.wrapping_sub(mapping.start)
        }
        _ => !line.has_file() && !line.is_kernel(),
    }
}

fn conflict(line: &Line<'_>, start: usize) -> ! {
    let address = Digits::of(start as u64, 16);
    let name = if line.name.is_empty() { &b"other memory"[..] } else { line.name };
    refuse(&[
        b"its memory at 0x",
        address.text(),
        b" would lie where ",
        name,
        b" is now; program, libraries, 'ulimit -s' and kernel must be those of the checkpoint",
    ])
}

/// The kernel lets the stack grow to where it is touched.
fn grow_stack(start: usize) {
    let byte = start as *mut u8;
    // SAFETY: below the stack nothing else is mapped; where a limit forbids it, the process dies
    // with a signal before anything was changed.
    unsafe { byte.write_volatile(byte.read_volatile()) };
}

fn make(plan: &Plan<'_>, mapping: &Mapping, start: usize, end: usize) {
    let prot = libc::PROT_READ | libc::PROT_WRITE;
    let common = libc::MAP_PRIVATE | libc::MAP_FIXED_NOREPLACE | libc::MAP_NORESERVE;
    let made = if mapping.kind == ANONYMOUS || mapping.kind == HEAP {
        system::map(start, end - start).is_some()
    } else {
        let offset = mapping.offset as usize + (start - mapping.start as usize);
        with_path(plan.text(mapping.path), |path| {
            let Some(fd) = system::open(path, libc::O_RDONLY) else { return false };
            // SAFETY: replaces nothing.
            let got = unsafe { sys!(libc::SYS_mmap, start, end - start, prot, common, fd, offset) };
            system::close(fd);
            got as usize == start
        })
    };
    if !made {
        let address = Digits::of(start as u64, 16);
        refuse(&[b"memory at 0x", address.text(), b" cannot be made; is there a limit on memory?"]);
    }
}

/// Files are opened again where they stood. Standard streams are this process's own.
fn restore_files(plan: &Plan<'_>) {
    with_path(plan.text(plan.header.cwd), |path| {
        // SAFETY: the path ends with 0.
        if unsafe { sys!(libc::SYS_chdir, path.as_ptr()) } < 0 {
            refuse(&[b"its working directory is gone: ", path.to_bytes()]);
        }
        true
    });
    for file in plan.files {
        with_path(plan.text(file.path), |path| {
            let creating = libc::O_CREAT | libc::O_EXCL | libc::O_TRUNC;
            let Some(fd) = system::open(path, file.flags as i32 & !creating) else {
                refuse(&[b"a file that it had open cannot be opened: ", path.to_bytes()]);
            };
            // SAFETY: the position of a file that was just opened.
            unsafe { sys!(libc::SYS_lseek, fd, file.position, libc::SEEK_SET) };
            if !number(fd, file) {
                refuse(&[b"a file cannot have its number again: ", path.to_bytes()]);
            }
            true
        });
    }
}

/// Gives an open file the number that it had, closed or kept when another program is started.
fn number(fd: i32, file: &OpenFile) -> bool {
    let closed_on_exec = file.flags as i32 & libc::O_CLOEXEC;
    let wanted = file.fd as i32;
    // SAFETY: numbers of descriptors; `out_of_the_way` has cleared this one.
    let done = unsafe {
        match fd == wanted {
            true if closed_on_exec != 0 => 0,
            true => sys!(libc::SYS_fcntl, fd, libc::F_SETFD, 0),
            false => sys!(libc::SYS_dup3, fd, wanted, closed_on_exec),
        }
    };
    if fd != wanted {
        system::close(fd);
    }
    done >= 0
}

fn restore_signals(plan: &Plan<'_>) {
    for (signal, action) in (1usize..).zip(&plan.header.actions) {
        // SAFETY: the handlers are code that will be there again; signals are kept away until
        // then. The kernel refuses the two signals that have no handler.
        unsafe { sys!(libc::SYS_rt_sigaction, signal, action.as_ptr(), 0, 8) };
    }
}

/// Lends a path with a 0 behind it.
fn with_path(path: &[u8], run: impl FnOnce(&CStr) -> bool) -> bool {
    let mut buf = [0u8; libc::PATH_MAX as usize];
    let Some(room) = buf.get_mut(..path.len()) else { return false };
    room.copy_from_slice(path);
    CStr::from_bytes_until_nul(&buf).is_ok_and(run)
}
