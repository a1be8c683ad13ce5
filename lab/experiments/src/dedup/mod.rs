//! Deduplication across ranks: the published figures again, on virtual ranks, and beyond them.
//!
//! Data: generated or real pages -> hashes -> both strategies of
//! [`standfast_share`] -> points, plots and bars. Every experiment compares what the
//! exact strategy stores with one global set of all hashes.
//!
//! | experiment | figure of Nicolae 2013 |
//! |---|---|
//! | [`worst`] | 2: time of the reduction where no page is shared |
//! | [`best`] | 3: identical ranks |
//! | [`stencil`] | 4 and 5: a storm crossing a quiet domain |
//! | [`corpus`] | none: pages of real programs |

pub(crate) mod bars;
pub(crate) mod best;
pub(crate) mod corpus;
mod job;
pub(crate) mod names;
pub(crate) mod pace;
mod processes;
pub(crate) mod stencil;
mod storm;
mod watch;
pub(crate) mod worst;
