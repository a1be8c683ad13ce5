//! Performance models and planner of checkpoint/restart.
//!
//! Data: a machine's rates, a job's size and a failure rate -> closed forms ([`single`],
//! [`levels`], [`drain`], [`ring`]) -> [`live`], which a running job asks for its next interval;
//! with the feature `planner` also `plan` and `render`, which the command uses.
//!
//! Why models that agree with a simulator and not just with papers: a plan spends the user's
//! machine. The lab's simulator plays the closed forms and the plans; its reproductions of
//! published results use the papers' assumptions.
//!
//! Invariants:
//! - Nothing here reads files, clocks or the environment.
//! - Every input is checked once, and every error names the field and its value.
//!
//! What it is not: a performance model of the engine's own code. It is fed with measured rates.
//!
//! ```
//! use standfast_model::single::Single;
//!
//! // One level: a commit of 9 s against an interrupt every half hour.
//! let single = Single::new(1800.0, 9.0, 9.0)?;
//! let interval = single.best_interval_s();
//! assert!((0.89..0.91).contains(&single.efficiency(interval)?));
//! # Ok::<(), standfast_model::ModelError>(())
//! ```

#![forbid(unsafe_code)]

pub mod bounds;
mod chain;
#[cfg(feature = "planner")]
pub mod codec;
pub mod drain;
mod error;
pub mod levels;
pub mod live;
#[cfg(feature = "planner")]
pub mod plan;
#[cfg(feature = "planner")]
pub mod render;
pub mod ring;
pub mod search;
pub mod single;

pub use chain::LEVELS_MAX;
pub use error::{ModelError, Result};
