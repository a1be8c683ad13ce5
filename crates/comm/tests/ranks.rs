//! Agreements: what one rank cannot do all of them learn.

use standfast_comm::{Agreed, Collective, Error, Failure, Fault, Phase, Step, Stop};
use standfast_format::Kind;
use standfast_testkit::run_threads;

#[derive(Clone, Debug, PartialEq)]
enum Trouble {
    Own(u32),
    Other(u32, String),
    Comm(String),
}

impl std::fmt::Display for Trouble {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{self:?}")
    }
}

impl From<Error> for Trouble {
    fn from(error: Error) -> Self {
        Trouble::Comm(error.to_string())
    }
}

impl Fault for Trouble {
    fn kind(&self) -> Kind {
        Kind::Full
    }

    fn of_other(failure: Failure) -> Self {
        assert_eq!(failure.kind(), Kind::Full);
        Trouble::Other(failure.rank, failure.why)
    }

    fn other(&self) -> Option<Failure> {
        match self {
            Trouble::Other(rank, why) => Some(Failure::new(*rank, Kind::Full, why)),
            _ => None,
        }
    }
}

const HERE: Step = Step("here");

fn ranks<T: Send>(size: usize, body: impl Fn(Collective) -> T + Sync) -> Vec<T> {
    run_threads(size, |comm| body(Collective::new(Box::new(comm))))
}

#[test]
fn one_failure_is_everybodys() {
    for size in [1, 2, 3, 5, 8] {
        let bad = size as u32 / 2;
        let outcomes = ranks(size, |ranks| {
            let rank = ranks.rank().0;
            let own = || if rank == bad { Err(Trouble::Own(rank)) } else { Ok(7u8) };
            let all = ranks.gather(HERE, own()).map(Agreed::into_inner);
            let outcomes = [ranks.agree(HERE, own()).map(drop), all.map(drop)];
            (outcomes, ranks.agree(HERE, Ok::<_, Trouble>(rank)).unwrap())
        });
        for (rank, (outcomes, after)) in outcomes.into_iter().enumerate() {
            assert_eq!(after, rank as u32, "the next agreement is not disturbed");
            let expected = match rank as u32 == bad {
                true => Trouble::Own(bad),
                false => Trouble::Other(bad, format!("Own({bad})")),
            };
            for outcome in outcomes {
                assert_eq!(outcome.unwrap_err().into_error(), expected);
            }
        }
    }
}

/// Whoever misses a rank goes on to the next agreement, where nobody comes: the others are still
/// at the one before, and wait for it.
#[test]
fn after_a_rank_is_lost_nobody_waits_for_ever() {
    for size in [3, 4, 7] {
        ranks(size, |ranks| {
            if ranks.rank().0 + 1 < size as u32 {
                let outcomes = [(); 3].map(|()| ranks.meet(HERE));
                assert!(outcomes.iter().any(|outcome| outcome.is_err()));
                assert!(outcomes.is_sorted_by_key(|outcome| outcome.is_err()), "for good");
            }
        });
    }
}

#[test]
fn everybody_hears_the_same() {
    for size in [1, 3, 4, 7] {
        ranks(size, |ranks| {
            let (rank, everybody) = (ranks.rank().0, (0..size as u32).collect::<Vec<_>>());
            assert_eq!(*ranks.collect(HERE, rank).unwrap(), everybody);
            let own = Ok::<_, Trouble>(rank);
            assert_eq!(*ranks.gather(HERE, own.clone()).unwrap(), everybody);
            let first = ranks.gather_first(HERE, own).unwrap();
            assert_eq!(first.is_some(), ranks.is_first());
            let sum = || Ok::<_, Trouble>(first.into_iter().flatten().flatten().sum::<u32>());
            assert_eq!(*ranks.tell(HERE, sum).unwrap(), everybody.iter().sum::<u32>());
            let refused = ranks.tell(HERE, || Err::<u8, _>(Trouble::Own(0)));
            assert_eq!(refused.unwrap_err().kind(), Kind::Full);
            let held = ranks.all_hold(HERE, [true, rank > 0, rank == 0]).unwrap();
            assert_eq!(*held, [true, false, size == 1]);
            let parts: Vec<u32> = everybody.iter().map(|to| 10 * rank + to).collect();
            let told = ranks.exchange(HERE, &parts).unwrap();
            assert!(told.iter().zip(&everybody).all(|(told, from)| *told == 10 * from + rank));
        });
    }
}

/// The ranks make different agreements, or one is a step ahead; each kind against each.
#[test]
fn ranks_at_different_steps_find_out() {
    type Call = fn(&Collective, Step) -> Phase<(), Trouble>;
    let calls: [Call; 7] = [
        |ranks, at| ranks.agree(at, Ok(())),
        |ranks, at| ranks.gather(at, Ok(1u8)).map(drop),
        |ranks, at| ranks.gather_first(at, Ok(1u8)).map(drop),
        |ranks, at| ranks.tell(at, || Ok(1u8)).map(drop),
        |ranks, at| Ok(ranks.collect(at, 1u8).map(drop)?),
        |ranks, at| Ok(ranks.all_hold(at, [true]).map(drop)?),
        |ranks, at| Ok(ranks.exchange(at, &vec![0u8; ranks.size()]).map(drop)?),
    ];
    for (size, astray) in [(2, 0), (2, 1), (3, 1), (5, 4), (8, 3)] {
        for (one, other) in calls.iter().flat_map(|one| calls.iter().map(move |o| (one, o))) {
            let errors = ranks(size, |ranks| {
                ranks.meet(HERE).unwrap();
                let outcome = match ranks.rank().0 == astray {
                    true => one(&ranks, Step("images")),
                    false => other(&ranks, Step("shards")),
                };
                assert!(ranks.meet(HERE).is_err(), "nothing can be agreed any more");
                match outcome.unwrap_err() {
                    Stop::Lost(why) => Error::from(why).to_string(),
                    Stop::Failed(why) => panic!("{why:?}"),
                }
            });
            for error in &errors {
                assert!(error.contains("2 (images)") && error.contains("2 (shards)"), "{error}");
                assert!(error.contains(&format!("rank {astray} at 2 (images)")), "{error}");
            }
        }
    }
    let errors = ranks(2, |ranks| {
        (0..=ranks.rank().0).for_each(|_| drop(ranks.meet(HERE)));
        ranks.meet(Step("end")).unwrap_err()
    });
    assert!(format!("{errors:?}").contains("2 (here)"), "{errors:?}");
}
