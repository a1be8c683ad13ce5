//! What every crate on the path needs of the operating system, and nothing of checkpoints:
//! buffers that direct I/O accepts, random numbers and the time, whose files are trusted, memory for
//! secrets, and threads that leave the program's signals alone.

mod aligned;
pub mod identity;
mod secret;
mod signals;
mod stopwatch;
mod threads;
pub mod trust;
mod warming;

pub use aligned::{ALIGN, AlignedBuf};
pub use secret::Secret;
pub use signals::keep_signals_away;
pub use stopwatch::Stopwatch;
pub use threads::{beside, help};
pub use warming::Warming;
