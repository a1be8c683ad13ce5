//! What a machine lacks, tests leave out; what it must have, they may not.
//!
//! `STANDFAST_MUST=mpi,s3` names parts that are installed here. A test that is left out for want of one of
//! them fails then: else a broken installation would pass. `make test` names what it has installed.

/// Names the parts that must be there, separated by commas.
const MUST: &str = "STANDFAST_MUST";

/// Every part that a test may be left out for.
const PARTS: [&str; 14] = [
    "c++",
    "criu",
    "direct",
    "fortran",
    "hosts",
    "mount",
    "mpi",
    "mprotect",
    "powerloss",
    "root",
    "s3",
    "s3-service",
    "slurm",
    "userfaultfd",
];

/// Leaves a test, or a part of one, out for want of something; says so.
///
/// # Panics
/// If this machine must have it.
#[track_caller]
pub fn leave_out(part: &str, why: impl std::fmt::Display) {
    assert!(PARTS.contains(&part), "{part} is no part that tests are left out for");
    let must = std::env::var(MUST).unwrap_or_default();
    assert!(!names(&must).any(|name| name == part), "{MUST} has {part}, and yet: {why}");
    eprintln!("skipped: {why}");
}

/// The same where something is not there.
#[track_caller]
pub fn or_leave_out<T, E: std::fmt::Display>(part: &str, found: Result<T, E>) -> Option<T> {
    found.map_err(|why| leave_out(part, why)).ok()
}

fn names(must: &str) -> impl Iterator<Item = &str> {
    let names = must.split(',').map(str::trim).filter(|name| !name.is_empty());
    names.inspect(|name| assert!(PARTS.contains(name), "{MUST}: {name} is none of {PARTS:?}"))
}

#[cfg(test)]
mod tests;
