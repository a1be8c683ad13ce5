//! The addresses that the library takes: far from where kernel, loader and mimalloc put things.
//!
//! Invariants:
//! - Nothing between [`START`] and [`ARENA`] is ever captured; everything from [`ARENA`] on is.

/// Where the library's own memory begins.
pub(crate) const START: usize = 0x3800_0000_0000;
/// While a program is resumed: its description, and a stack.
pub(crate) const RESUME: usize = START;
/// In a twin: copies of what the twin itself changes.
pub(crate) const TWIN: usize = 0x3a00_0000_0000;
/// Room in a twin; taken only where it is written.
pub(crate) const TWIN_BYTES: usize = 64 << 30;
/// What the running process knows of its checkpoints.
pub(crate) const CONTROL: usize = 0x3f00_0000_0000;
/// The heap.
pub(crate) const ARENA: usize = 0x4000_0000_0000;

/// Whether memory is the library's own.
pub(crate) fn is_own(start: usize) -> bool {
    (START..ARENA).contains(&start)
}
