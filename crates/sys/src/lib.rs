//! What every crate on the path needs of the operating system, and nothing of checkpoints:
//! buffers that direct I/O accepts, and threads that leave the program's signals alone.

mod aligned;
mod signals;

pub use aligned::{ALIGN, AlignedBuf};
pub use signals::keep_signals_away;
