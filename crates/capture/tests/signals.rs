//! Faults that are not first writes to tracked pages: the program's own handlers get them, and
//! without one the program dies of them. Each case is a process of its own.

use std::os::unix::process::ExitStatusExt;
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};

use rustix::mm::{MapFlags, ProtFlags, mmap_anonymous};
use standfast_capture::{Mprotect, Span, Tracker};

const PAGE: usize = 4096;
const CASE: &str = "STANDFAST_TEST_CASE";

/// Runs a case in a process of its own.
fn run(test: &str, case: &str) -> std::process::ExitStatus {
    let own = std::env::current_exe().unwrap();
    let mut command = Command::new(own);
    command.args([test, "--exact", "--nocapture"]).env(CASE, case);
    command.output().unwrap().status
}

fn case() -> Option<String> {
    std::env::var(CASE).ok()
}

static SEEN: AtomicUsize = AtomicUsize::new(0);
static GUARDED: AtomicUsize = AtomicUsize::new(0);

/// The program's own handler: opens the page it guards.
extern "C" fn own_handler(_: i32, info: *mut libc::siginfo_t, _: *mut libc::c_void) {
    // SAFETY: the kernel's structure; the page is the one this program guards.
    unsafe {
        assert_eq!((*info).si_addr() as usize, GUARDED.load(Ordering::SeqCst) + 8);
        let page = GUARDED.load(Ordering::SeqCst) as *mut libc::c_void;
        libc::mprotect(page, PAGE, libc::PROT_READ | libc::PROT_WRITE);
    }
    SEEN.fetch_add(1, Ordering::SeqCst);
}

fn install(handler: libc::sighandler_t, flags: i32) {
    // SAFETY: a complete structure.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = handler;
        action.sa_flags = flags;
        assert_eq!(libc::sigaction(libc::SIGSEGV, &action, std::ptr::null_mut()), 0);
    }
}

fn pages(count: usize, prot: ProtFlags) -> *mut u8 {
    // SAFETY: a new private mapping.
    let start = unsafe {
        mmap_anonymous(std::ptr::null_mut(), count * PAGE, prot, MapFlags::PRIVATE).unwrap()
    };
    start.cast()
}

fn tracked() -> (Mprotect, *mut u8) {
    let memory = pages(8, ProtFlags::READ | ProtFlags::WRITE);
    // SAFETY: our own memory.
    unsafe { memory.write_bytes(1, 8 * PAGE) };
    let tracker = Mprotect::new().unwrap();
    assert!(tracker.arm(Span { start: memory as usize, bytes: 8 * PAGE }));
    (tracker, memory)
}

#[test]
fn the_programs_own_handler_gets_its_own_faults() {
    if case().is_none() {
        let status = run("the_programs_own_handler_gets_its_own_faults", "child");
        assert!(status.success(), "{status}");
        return;
    }
    let handler = own_handler as extern "C" fn(i32, *mut libc::siginfo_t, *mut libc::c_void);
    install(handler as libc::sighandler_t, libc::SA_SIGINFO | libc::SA_ONSTACK);
    let guarded = pages(1, ProtFlags::READ);
    GUARDED.store(guarded as usize, Ordering::SeqCst);
    let (tracker, memory) = tracked();
    // SAFETY: our own memory; the handlers let these writes through.
    unsafe {
        memory.add(3 * PAGE).write_volatile(2);
        guarded.add(8).write_volatile(5);
        memory.add(4 * PAGE).write_volatile(2);
        assert_eq!(guarded.add(8).read_volatile(), 5);
    }
    assert_eq!(SEEN.load(Ordering::SeqCst), 1);
    let span = Span { start: memory as usize, bytes: 8 * PAGE };
    assert_eq!(tracker.collect(&[span], PAGE)[0].count(), Some(2));
}

#[test]
fn without_another_handler_a_fault_still_kills() {
    match case().as_deref() {
        None => {
            for case in ["fault", "sent"] {
                let status = run("without_another_handler_a_fault_still_kills", case);
                assert_eq!(status.signal(), Some(libc::SIGSEGV), "{case}: {status}");
            }
        }
        Some(case) => {
            install(libc::SIG_DFL, 0);
            let (_tracker, memory) = tracked();
            // SAFETY: the first write is ours; the second is the fault that must kill.
            unsafe {
                memory.write_volatile(2);
                match case {
                    "fault" => std::ptr::without_provenance_mut::<u8>(16).write_volatile(1),
                    _ => assert_eq!(libc::raise(libc::SIGSEGV), 0),
                }
            }
            unreachable!("a fault that nobody handles kills");
        }
    }
}

#[test]
fn a_handler_that_came_later_is_left_alone() {
    if case().is_none() {
        let status = run("a_handler_that_came_later_is_left_alone", "child");
        assert!(status.success(), "{status}");
        return;
    }
    let (tracker, memory) = tracked();
    tracker.disarm(Span { start: memory as usize, bytes: 8 * PAGE });
    let handler = own_handler as extern "C" fn(i32, *mut libc::siginfo_t, *mut libc::c_void);
    install(handler as libc::sighandler_t, libc::SA_SIGINFO);
    assert!(!tracker.arm(Span { start: memory as usize, bytes: 8 * PAGE }), "it would not be told");
    assert!(Mprotect::new().is_none());
}
