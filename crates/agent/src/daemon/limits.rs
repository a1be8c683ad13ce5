//! How many descriptors the agent may have: each connection takes some, and so does what it writes.
//!
//! Why it looks before it serves: an agent without a descriptor can neither write nor say so. Whoever
//! comes when half of them are in use is sent away in words, and writes by itself.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Allows this process as many descriptors as it may allow itself.
pub(crate) fn raise() {
    let Rlimit { maximum, .. } = getrlimit(Resource::Nofile);
    // Where it is refused fewer ranks are served.
    let _ = setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum });
}

/// Why nobody more can be served, if that is so.
pub(super) fn exhausted() -> Option<String> {
    let limit = getrlimit(Resource::Nofile).current?;
    let open = std::fs::read_dir("/proc/self/fd").map_or(u64::MAX, |open| open.count() as u64);
    let is_short = open > limit / 2;
    is_short
        .then(|| format!("it has {open} of {limit} descriptors open, and keeps the rest to write"))
}
