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
