//! What makes one thing different from every other: random numbers and the time.

pub(crate) use standfast_sys::identity::now_ns;
#[cfg(feature = "simulation")]
pub use standfast_sys::identity::simulation;

use crate::error::{Cause, Result};

/// So many random bytes.
pub(crate) fn bytes<const N: usize>() -> Result<[u8; N]> {
    standfast_sys::identity::bytes().map_err(|error| Cause::Random(error.to_string()).into())
}
