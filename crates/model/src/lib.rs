//! Performance models, planner and simulators of checkpoint/restart.
//!
//! Data: a machine's rates, a job's size and a failure rate -> closed forms ([`single`],
//! [`levels`], [`drain`], [`codec`], [`pipeline`], [`ring`], [`dedup`]) -> [`plan`], [`paper`],
//! [`plot`], [`render`]; the discrete-event simulator ([`sim`], [`failures`]) checks the closed
//! forms ([`agreement`]) and the plans ([`plan::gap`]).
//!
//! Why models that agree with a simulator and not just with papers: a plan spends the user's
//! machine. The published formulas are reproduced with their assumptions, but plans use the
//! exact ones.
//!
//! Invariants:
//! - Nothing here reads files, clocks or the environment; only [`bars`] uses a stop-watch.
//! - Every input is checked once, and every error names the field and its value.
//!
//! What it is not: a performance model of the engine's own code. It is fed with measured rates.
//!
//! ```
//! use standfast_model::plan::{self, Inputs};
//! use standfast_model::single::Single;
//!
//! // One level: a commit of 9 s against an interrupt every half hour.
//! let single = Single::new(1800.0, 9.0, 9.0)?;
//! let interval = single.best_interval_s();
//! assert!((0.89..0.91).contains(&single.efficiency(interval)?));
//!
//! // A whole machine.
//! let plan = plan::plan(&Inputs::example())?;
//! assert!(plan.efficiency > 0.8);
//! println!("{}", plan::toml(&plan, &["interval", "codec", "memory"]));
//! # Ok::<(), standfast_model::ModelError>(())
//! ```

#![forbid(unsafe_code)]

pub mod agreement;
pub mod bars;
mod bounds;
mod chain;
pub mod codec;
pub mod dedup;
pub mod drain;
mod error;
pub mod failures;
pub mod levels;
pub mod paper;
pub mod pipeline;
pub mod plan;
pub mod plot;
pub mod random;
pub mod render;
pub mod ring;
mod search;
pub mod sim;
pub mod single;

pub use chain::LEVELS_MAX;
pub use error::{ModelError, Result};
