//! Pieces of host memory on their way through the device, several at a time.
//!
//! One crosses to the device, one is worked on, one crosses back: each has buffers and a stream of
//! its own, so the device's two copy engines and its processors work side by side.

use crate::error::Result;

/// Pieces on their way at a time.
pub const LANES: usize = 3;
/// Threads that bring pieces from or to ordinary memory, half the cores at most.
const COPY_THREADS_MAX: usize = 6;
/// Less than this is not worth a thread.
const COPY_BYTES_MIN: usize = 512 << 10;

/// What a piece does next on its lane.
pub enum Move {
    /// It sets out.
    Start,
    /// It is waited for.
    Finish,
}

/// Takes so many pieces through the lanes, in order: each is started on the next lane and finished
/// when the other lanes have been started behind it.
pub fn in_turns<L>(
    lanes: &mut [L],
    pieces: usize,
    mut go: impl FnMut(&mut L, usize, Move) -> Result<()>,
) -> Result<()> {
    let (count, behind) = (lanes.len(), lanes.len() - 1);
    for at in 0..pieces + behind {
        if at < pieces {
            go(&mut lanes[at % count], at, Move::Start)?;
        }
        if at >= behind {
            go(&mut lanes[(at - behind) % count], at - behind, Move::Finish)?;
        }
    }
    Ok(())
}

/// Copies each of the first to the second. One core does not copy as fast as the bus takes; a few
/// together do.
///
/// # Panics
/// Unless both of a pair have one length.
pub fn copy_on_threads<'a>(pairs: Vec<(&'a [u8], &'a mut [u8])>) {
    let bytes: usize = pairs.iter().map(|(from, _)| from.len()).sum();
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let threads = (cores / 2).clamp(1, COPY_THREADS_MAX).min(bytes / COPY_BYTES_MIN).max(1);
    // Small enough that all get about as much, whatever the lengths.
    let part_bytes = bytes.div_ceil(4 * threads).max(1);
    let mut shares: Vec<Vec<(&[u8], &mut [u8])>> = (0..threads).map(|_| Vec::new()).collect();
    let parts = pairs.into_iter().flat_map(|(from, to)| {
        assert_eq!(from.len(), to.len(), "equal lengths");
        from.chunks(part_bytes).zip(to.chunks_mut(part_bytes))
    });
    parts.enumerate().for_each(|(at, part)| shares[at % threads].push(part));
    let copy = |share: Vec<(&[u8], &mut [u8])>| {
        share.into_iter().for_each(|(from, to)| to.copy_from_slice(from));
    };
    let own = shares.pop();
    std::thread::scope(|scope| {
        shares.into_iter().for_each(|share| _ = scope.spawn(move || copy(share)));
        own.into_iter().for_each(copy);
    });
}

#[cfg(test)]
mod tests;
