//! A real SIGKILL or SIGSTOP at a named point: no destructor runs, no buffer is flushed, exactly as when
//! somebody else had done it.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::report::Line;

/// Kills this process at the nth passage of a point.
pub fn die_at(name: String, nth: u64) -> anyhow::Result<()> {
    let passed = AtomicU64::new(0);
    let point = name.clone();
    let callback = move || {
        if passed.fetch_add(1, Ordering::SeqCst) + 1 == nth {
            Line::Dying(point.clone(), nth).tell();
            let me = rustix::process::getpid();
            let _ = rustix::process::kill_process(me, rustix::process::Signal::KILL);
            // The signal may take a moment; nothing may happen in it.
            loop {
                std::thread::park();
            }
        }
    };
    fail::cfg_callback(name, callback).map_err(anyhow::Error::msg)
}

/// Stops this process at the first passage of a point, until somebody lets it go on.
pub fn stop_at(name: String) -> anyhow::Result<()> {
    let passed = AtomicU64::new(0);
    let callback = move || {
        if passed.fetch_add(1, Ordering::SeqCst) == 0 {
            let me = rustix::process::getpid();
            let _ = rustix::process::kill_process(me, rustix::process::Signal::STOP);
            // The signal may take a moment; nothing may happen in it.
            std::thread::sleep(std::time::Duration::from_millis(100));
        }
    };
    fail::cfg_callback(name, callback).map_err(anyhow::Error::msg)
}
