use super::*;

#[test]
fn every_level_has_its_number_and_the_order_is_kept() {
    let numbers: Vec<c_int> = Level::ALL.iter().map(|level| number_of(*level)).collect();
    assert_eq!(numbers, [1, 2, 3, 4]);
    for level in Level::ALL {
        assert_eq!(level_of(number_of(*level)).unwrap(), *level);
    }
    assert!([0, 5, -1].iter().all(|number| level_of(*number).is_err()));
}
