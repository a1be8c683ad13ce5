//! Conversations in which ranks panic.

use standfast_comm::collective::all_sum;
use standfast_comm::{Comm, Error, converse};
use standfast_testkit::run_threads;

/// Two calls of different patterns, and a panic of some ranks before, between or after them.
#[test]
fn a_panic_anywhere_is_heard_by_all() {
    for size in [1, 2, 3, 5, 8] {
        for (at, last) in [(0, false), (1, false), (2, false), (2, true)] {
            let heard = run_threads(size, |comm| {
                let bad = |rank: usize| rank == size / 2 || (last && rank + 1 == size);
                let here = |point: u32| assert!(point != at || !bad(comm.rank()), "as planned");
                let said = converse(&comm, |comm| {
                    here(0);
                    let told = comm.all_to_all(vec![vec![7]; size])?;
                    here(1);
                    let sum = all_sum(comm, told.len() as u64)?;
                    here(2);
                    Ok(sum)
                });
                // What comes after it is not disturbed.
                let after = converse(&comm, |comm| all_sum(comm, 1)).unwrap();
                assert_eq!(after, size as u64);
                said
            });
            for said in heard {
                let Err(Error::Panicked { rank }) = said else { panic!("{said:?}") };
                assert_eq!(rank, size / 2);
            }
        }
    }
}
