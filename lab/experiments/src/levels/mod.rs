//! The global level: checkpoints drained beside a running program, recovery over a slow link, and
//! what survives when any part of it is killed.

pub(crate) mod bars;
pub(crate) mod codecs;
mod drainer;
pub(crate) mod kills;
pub(crate) mod ndp;
pub(crate) mod pause;
mod process;
pub(crate) mod program;
mod slow;
pub(crate) mod slowdown;
