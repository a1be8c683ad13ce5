use super::*;
use proptest::prelude::*;

fn arrival(number: u64) -> Arrival {
    let version = Version(number);
    Arrival { version, from_bytes: 9, to_bytes: 4, elapsed_ns: 7, arrived_ns: number }
}

#[test]
fn the_newest_are_kept_and_told_once() {
    let mut drains = Drains::default();
    assert!(drains.since(0).is_empty());
    (1..=20).for_each(|number| drains.push(arrival(number)));
    assert_eq!((drains.count, drains.last.len()), (20, DRAINS_MAX));
    assert_eq!(drains.since(18), [arrival(19), arrival(20)]);
    assert!(drains.since(20).is_empty() && drains.since(99).is_empty());
    assert_eq!(drains.since(0).len(), DRAINS_MAX);
}

#[test]
fn damage_and_excess_are_found() {
    let mut drains = Drains::default();
    drains.push(arrival(1));
    let mut bytes = drains.encode();
    bytes[30] ^= 1;
    assert!(Drains::decode(&bytes).is_err());
    let many = Drains { count: 1, last: vec![arrival(1); DRAINS_MAX + 1] };
    assert!(Drains::decode(&many.encode()).is_err());
}

proptest! {
    #[test]
    fn records_lead_back(count: u64, numbers in prop::collection::vec(any::<u64>(), 0..=16)) {
        let last = numbers.into_iter().map(|number| Arrival {
            from_bytes: u64::MAX, to_bytes: u64::MAX, elapsed_ns: u64::MAX, ..arrival(number)
        });
        let drains = Drains { count, last: last.collect() };
        let bytes = drains.encode();
        prop_assert!(bytes.len() as u64 <= DRAINS_BYTES_MAX);
        prop_assert_eq!(Drains::decode(&bytes).unwrap(), drains);
    }
}
