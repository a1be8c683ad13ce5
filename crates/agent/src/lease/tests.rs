use super::*;
use proptest::prelude::*;

fn counts(grants: &[Grant]) -> Vec<(u32, usize)> {
    grants.iter().map(|grant| (grant.rank, grant.units.len())).collect()
}

#[test]
fn units_are_shared_out_in_turn() {
    let mut leases = Leases::new(10);
    leases.ask(1, 8).unwrap();
    leases.ask(2, 8).unwrap();
    leases.ask(3, 1).unwrap();
    assert_eq!(counts(&leases.grant()), [(1, 5), (2, 4), (3, 1)]);
    assert_eq!((leases.free(), leases.leased()), (0, 10));
    leases.ask(3, 4).unwrap();
    leases.ask(1, 4).unwrap();
    assert!(leases.grant().is_empty());
    leases.rank_gone(2);
    assert_eq!(counts(&leases.grant()), [(3, 2), (1, 2)], "a dead rank's units come back");
}

#[test]
fn a_rank_gets_what_it_had_before_then_what_others_had_then_what_is_fresh() {
    let mut leases = Leases::new(10);
    let mut take = |rank, count| {
        leases.ask(rank, count).unwrap();
        let mut units = leases.grant().remove(0).units;
        for unit in &units {
            leases.hand_over(rank, *unit).unwrap();
            leases.written(*unit);
        }
        units.sort_unstable();
        units
    };
    assert_eq!(take(1, 2), [0, 1]);
    // The other has none of its own yet, and the pool needs no more memory than before.
    assert_eq!(take(2, 4), [0, 1, 2, 3]);
    let one = take(1, 1);
    let own = take(2, 3);
    assert!(!own.contains(&one[0]) && take(1, 1) == one && take(2, 3) == own);
    assert_eq!(take(3, 10), (0..10).collect::<Vec<_>>());
}

#[test]
fn those_who_waited_longest_are_first_and_an_empty_pool_refills() {
    let mut leases = Leases::new(32);
    leases.ask(1, 32).unwrap();
    assert_eq!(counts(&leases.grant()), [(1, 32)]);
    for rank in [7, 8, 9] {
        leases.ask(rank, 4).unwrap();
    }
    leases.hand_over(1, 3).unwrap();
    leases.written(3);
    assert!(leases.grant().is_empty(), "one unit of 32 is too little");
    leases.give_back(1, 4).unwrap();
    assert_eq!(counts(&leases.grant()), [(7, 1), (8, 1)]);
    assert_eq!(leases.waiting(), 1);
}

#[test]
fn hostile_numbers_are_refused() {
    let mut leases = Leases::new(4);
    leases.ask(1, 2).unwrap();
    assert!(leases.ask(1, 2).is_err());
    assert!(leases.ask(2, 0).is_err());
    leases.grant();
    for (rank, unit) in [(1, 9), (1, u32::MAX), (2, 0), (1, 3)] {
        assert!(leases.hand_over(rank, unit).is_err(), "{rank} {unit}");
        assert!(leases.give_back(rank, unit).is_err(), "{rank} {unit}");
    }
    leases.hand_over(1, 0).unwrap();
    assert!(leases.give_back(1, 0).is_err(), "it is the agent's now");
}

proptest! {
    #[test]
    fn no_unit_is_ever_lost_or_held_twice(
        steps in proptest::collection::vec((0u8..5, 0u32..4, 0u32..12), 0..200),
    ) {
        let mut leases = Leases::new(12);
        let mut with_agent: Vec<u32> = Vec::new();
        for (step, rank, number) in steps {
            match step {
                0 => drop(leases.ask(rank, number)),
                1 if leases.hand_over(rank, number).is_ok() => with_agent.push(number),
                2 => drop(leases.give_back(rank, number)),
                3 => with_agent.drain(..).for_each(|unit| leases.written(unit)),
                4 if number == 0 => leases.rank_gone(rank),
                _ => {}
            }
            leases.grant();
            prop_assert_eq!(leases.free() + leases.leased() + with_agent.len(), 12);
        }
    }
}
