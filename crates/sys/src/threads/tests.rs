use super::*;

#[test]
fn both_are_done() {
    let mut written = 0;
    let (other, own) = beside(|| written = 3, || 4);
    assert_eq!((other, own, written), ((), 4, 3));
}

#[test]
fn a_panic_of_the_other_reaches_the_caller() {
    let caught = std::panic::catch_unwind(|| beside(|| panic!("planted"), || ()));
    assert!(caught.is_err());
}
