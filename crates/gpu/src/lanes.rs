//! Pieces of host memory on their way through the device, several at a time.
//!
//! One crosses to the device, one is worked on, one crosses back: each has buffers and a stream of
//! its own, so the device's two copy engines and its processors work side by side.

use crate::error::Result;

/// Pieces on their way at a time.
pub(crate) const LANES: usize = 3;
/// Threads that bring pieces from or to ordinary memory, half the cores at most.
const COPY_THREADS_MAX: usize = 6;
/// Less than this is not worth a thread.
const COPY_BYTES_MIN: usize = 512 << 10;

/// What a piece does next on its lane.
pub(crate) enum Move {
    Start,
    Finish,
}

/// Takes so many pieces through the lanes, in order: each is started on the next lane and finished
/// when the other lanes have been started behind it.
pub(crate) fn in_turns<L>(
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
pub(crate) fn copy_on_threads<'a>(pairs: Vec<(&'a [u8], &'a mut [u8])>) {
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
mod tests {
    use super::*;
    use crate::error::Error;

    #[test]
    fn every_piece_is_started_and_finished_in_order_with_all_lanes_taken() {
        for pieces in 0..8 {
            let mut lanes: Vec<Option<usize>> = vec![None; LANES];
            let (mut finished, mut most) = (Vec::new(), 0);
            in_turns(&mut lanes, pieces, |lane, at, moved| {
                match moved {
                    Move::Start => assert_eq!(lane.replace(at), None, "the lane is free"),
                    Move::Finish => {
                        assert_eq!(lane.take(), Some(at));
                        finished.push(at);
                    }
                }
                most = most.max(at + 1 - finished.len());
                Ok(())
            })
            .unwrap();
            assert_eq!(finished, (0..pieces).collect::<Vec<_>>());
            assert_eq!(most, pieces.min(LANES));
        }
        let stop = |_: &mut (), at, _| if at == 1 { Err(Error::invalid("stop")) } else { Ok(()) };
        assert_eq!(in_turns(&mut [(), ()], 5, stop), Err(Error::invalid("stop")));
    }

    #[test]
    fn all_bytes_are_copied_whatever_the_lengths() {
        for lengths in [&[][..], &[0], &[1], &[3 << 20], &[5, 0, 2 << 20, 77, 700 << 10]] {
            let make = |(seed, length): (usize, &usize)| {
                (0..*length).map(|at| (at * 7 + at / 251 + seed) as u8).collect::<Vec<u8>>()
            };
            let from: Vec<Vec<u8>> = lengths.iter().enumerate().map(make).collect();
            let mut to: Vec<Vec<u8>> = lengths.iter().map(|length| vec![0; *length]).collect();
            let pairs = from.iter().zip(&mut to).map(|(from, to)| (&from[..], &mut to[..]));
            copy_on_threads(pairs.collect());
            assert!(from == to, "{lengths:?}");
        }
    }
}
