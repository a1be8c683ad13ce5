use super::*;

fn told(begun: u64, local: u64, ring: u64) -> Promise {
    let mut promise = Promise::default();
    promise.hear(Heard { begun, local, ring });
    promise
}

#[test]
fn what_a_fault_leaves_is_what_counts() {
    for (leaves, least) in [(Leaves::Local, 8), (Leaves::Ring, 6), (Leaves::Global, 4)] {
        let mut promise = told(9, 8, 6);
        promise.meet(leaves, 4);
        assert_eq!(promise.least(), least);
        assert!(promise.kept_by(least - 1).is_err() && promise.kept_by(10).is_err());
        assert!(!promise.may_fail());
        promise.kept_by(least).unwrap();
    }
}

#[test]
fn a_second_loss_before_the_ring_is_whole_again_leaves_nothing_of_it() {
    let mut promise = told(9, 8, 6);
    promise.meet(Leaves::Ring, 0);
    promise.meet(Leaves::Ring, 0);
    assert_eq!(promise.least(), 0);
    assert!(promise.may_fail());
}

#[test]
fn what_stands_stands_over_several_lives() {
    let mut promise = told(9, 8, 6);
    promise.meet(Leaves::Local, 0);
    promise.kept_by(9).unwrap();
    promise.meet(Leaves::Ring, 0);
    assert_eq!(promise.least(), 6);
}
