//! Long messages in pieces that the transport's counts can express.
//!
//! A message goes as pieces of the full length and a last one that is shorter, perhaps empty. So a
//! piece of the full length says by itself that more follow, and no message needs a header: the
//! usual one is a single piece.
//!
//! Both sides must mean the same length by "full": it is agreed when a communicator is made.

/// The pieces of a message, at least one; the last is the only one shorter than `full`.
pub(crate) fn cut(message: &[u8], full: usize) -> impl Iterator<Item = &[u8]> {
    let whole = message.len() / full;
    (0..=whole).map(move |at| &message[at * full..message.len().min((at + 1) * full)])
}

/// Whether more pieces follow one of this length.
pub(crate) fn more_follow(length: usize, full: usize) -> bool {
    length == full
}

#[cfg(test)]
mod tests;
