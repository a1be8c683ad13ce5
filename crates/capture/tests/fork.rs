//! A forked child, in a process without other tests: while it lives, every page of its parent is
//! shared with it, and trackers may take that for a change.

#[allow(dead_code, reason = "one suite's tools serve several programs")]
#[path = "tracker/world.rs"]
mod world;

use world::{Memory, PAGE, arm, assert_pages, collect, trackers};

#[test]
fn a_forked_child_writes_to_its_own_copy() {
    for tracker in trackers() {
        let (tracker, who) = (&*tracker, tracker.name());
        let mut memory = Memory::filled(64);
        let span = memory.span();
        arm(tracker, span);
        // SAFETY: the child only writes to memory and exits.
        let child = unsafe { libc::fork() };
        if child == 0 {
            // SAFETY: our own copy of the memory; `_exit` runs nothing of the parent's.
            unsafe {
                memory.0.add(9 * PAGE).write_volatile(7);
                let written = memory.0.add(9 * PAGE).read_volatile() == 7;
                libc::_exit(if written { 0 } else { 1 });
            }
        }
        let mut status = 0;
        // SAFETY: our own child.
        unsafe { libc::waitpid(child, &mut status, 0) };
        assert_eq!(status, 0, "{who}: the child could write");
        assert_eq!(memory.bytes()[9 * PAGE], 1);
        memory.bytes()[20 * PAGE] = 3;
        // While a child lives, pages are shared with it; it is gone now.
        assert_pages(&collect(tracker, span), &[20], who);
    }
}
