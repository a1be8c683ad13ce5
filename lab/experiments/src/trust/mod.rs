//! Promises at their edges: what thousands of checkpoints, hostile stores and scarce resources leave.

mod attacks;
pub(crate) mod bars;
pub(crate) mod compaction;
mod descriptors;
mod simulated;
