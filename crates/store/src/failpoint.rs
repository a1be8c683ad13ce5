//! Named places where a test can make a durable step fail, stop or die.
//!
//! Data: a crash test sets a point (feature `failpoints`, the `fail` crate's syntax) to `pause`
//! and kills the process there, or to `return(ENOSPC)` and watches the error. Without the feature
//! the calls compile to nothing.

use std::io;

/// Every point, in the order in which one object's life passes them.
pub const FAILPOINTS: &[&str] = &[
    "store.create",
    "store.chunk.write",
    "store.seal.before_fsync",
    "store.seal.before_rename",
    "store.seal.before_dirsync",
    "store.seal.after",
    "store.remove.before",
    "store.remove.after",
];

/// Passes the point `name`, or fails as the test configured: `return` gives EIO,
/// `return(ENOSPC)` and `return(EROFS)` give those.
#[cfg(feature = "failpoints")]
pub(crate) fn pass(name: &'static str) -> io::Result<()> {
    debug_assert!(FAILPOINTS.contains(&name));
    fail::fail_point!(name, |argument| Err(injected(argument.as_deref())));
    Ok(())
}

/// Passes the point `name`: nothing in this build.
#[cfg(not(feature = "failpoints"))]
#[inline(always)]
pub(crate) fn pass(_name: &'static str) -> io::Result<()> {
    Ok(())
}

#[cfg(feature = "failpoints")]
fn injected(argument: Option<&str>) -> io::Error {
    use rustix::io::Errno;
    match argument {
        Some("ENOSPC") => Errno::NOSPC.into(),
        Some("EROFS") => Errno::ROFS.into(),
        _ => Errno::IO.into(),
    }
}
