//! Whole jobs in one process.

pub(crate) mod job;
mod waiting;
