//! Signals that ask for checkpoints. Every test has a signal of its own: handlers are the process's.

use std::io::Read;
use std::os::fd::FromRawFd;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use standfast_capture::{Requests, Signal};

fn signal(name: &str) -> Signal {
    name.parse().unwrap()
}

fn raise(signal: Signal) {
    // SAFETY: a handler is installed.
    assert_eq!(unsafe { libc::raise(signal.number()) }, 0);
}

fn install(signal: Signal, handler: libc::sighandler_t, flags: i32) {
    // SAFETY: a complete structure, and a handler that only counts.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        (action.sa_sigaction, action.sa_flags) = (handler, flags);
        assert_eq!(libc::sigaction(signal.number(), &action, std::ptr::null_mut()), 0);
    }
}

#[test]
fn every_job_answers_for_itself() {
    let signal = signal("USR1");
    let (one, two) = (Requests::by(signal), Requests::by(signal));
    assert!(!one.is_pending() && !two.is_pending());
    raise(signal);
    raise(signal);
    assert!(one.is_pending() && two.is_pending());
    one.answer();
    assert!(!one.is_pending(), "one checkpoint answers all requests");
    assert!(two.is_pending(), "of its own job");
    assert!(!Requests::by(signal).is_pending(), "a new job was not asked");
    raise(signal);
    assert!(one.is_pending());
}

static PLAIN: AtomicUsize = AtomicUsize::new(0);
static INFORMED: AtomicUsize = AtomicUsize::new(0);

extern "C" fn plain(_: i32) {
    PLAIN.fetch_add(1, Ordering::SeqCst);
}

extern "C" fn informed(signal: i32, info: *mut libc::siginfo_t, _: *mut libc::c_void) {
    // SAFETY: the kernel's structure.
    assert_eq!(unsafe { (*info).si_signo }, signal);
    INFORMED.fetch_add(1, Ordering::SeqCst);
}

#[test]
fn the_programs_own_handlers_are_called() {
    let (one, two) = (signal("USR2"), signal("40"));
    install(one, plain as extern "C" fn(i32) as libc::sighandler_t, 0);
    type Three = extern "C" fn(i32, *mut libc::siginfo_t, *mut libc::c_void);
    install(two, informed as Three as libc::sighandler_t, libc::SA_SIGINFO);
    for (signal, seen) in [(one, &PLAIN), (two, &INFORMED)] {
        let requests = Requests::by(signal);
        raise(signal);
        assert!(requests.is_pending() && seen.load(Ordering::SeqCst) == 1, "{signal}");
        // A second job does not make it a second handler.
        let _again = Requests::by(signal);
        raise(signal);
        assert_eq!(seen.load(Ordering::SeqCst), 2, "{signal}");
    }
}

#[test]
fn a_signal_that_was_ignored_still_asks() {
    let signal = signal("URG");
    install(signal, libc::SIG_IGN, 0);
    let requests = Requests::by(signal);
    raise(signal);
    assert!(requests.is_pending());
}

#[test]
fn system_calls_of_the_program_are_not_interrupted() {
    let signal = signal("41");
    let requests = Requests::by(signal);
    let mut ends = [0; 2];
    // SAFETY: the kernel writes two descriptors, which are ours; the thread is this one.
    let (mut reader, writer, reading) = unsafe {
        assert_eq!(libc::pipe(ends.as_mut_ptr()), 0);
        let file = |fd| std::fs::File::from_raw_fd(fd);
        (file(ends[0]), file(ends[1]), libc::pthread_self())
    };
    let asking = std::thread::spawn(move || {
        std::thread::sleep(Duration::from_millis(50));
        // SAFETY: the thread waits for this one.
        unsafe { libc::pthread_kill(reading, signal.number()) };
        std::thread::sleep(Duration::from_millis(50));
        std::io::Write::write_all(&mut &writer, b"x").unwrap();
    });
    // `File::read` tells an interruption; only `read_exact` and the like hide it.
    assert_eq!(reader.read(&mut [0; 8]).unwrap(), 1);
    asking.join().unwrap();
    assert!(requests.is_pending());
}
