//! What checks the planner's models and reproduces published results.
//!
//! Data: the closed forms of `standfast_model` -> [`paper`] (published tables and figures, computed
//! again), [`plot`], [`render`]. The discrete-event simulator ([`sim`], [`failures`]) checks the
//! closed forms ([`agreement`]) and the plans ([`gap`]); [`bars`] measures both. [`pipeline`] and
//! [`dedup`] are models of papers that no plan needs.
//!
//! Invariants:
//! - Nothing here reads files, clocks or the environment; only [`bars`] uses a stop-watch.

#![forbid(unsafe_code)]

pub mod agreement;
pub mod bars;
pub mod dedup;
pub mod failures;
pub mod gap;
pub mod paper;
pub mod pipeline;
pub mod plot;
pub mod random;
pub mod render;
pub mod sim;

pub use standfast_model::{ModelError, Result};
