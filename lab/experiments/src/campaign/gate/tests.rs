use super::*;

const SEGMENT: &str = "/t/disk/n0/job/segments/5f";

#[test]
fn the_act_that_is_aimed_at_is_held_and_no_other() {
    let gate = Gate::new();
    gate.begins();
    gate.aim(Stage::Prune, 2);
    assert!(!gate.meets(Act::Remove, SEGMENT));
    assert!(!gate.meets(Act::Make, SEGMENT), "another stage");
    assert!(gate.meets(Act::Remove, SEGMENT));
    assert!(!gate.meets(Act::Remove, SEGMENT), "one is enough");
    assert!(gate.is_holding() && gate.open() && !gate.open());
    assert_eq!(gate.seen(), Stage::Prune);
}

#[test]
fn before_a_job_has_come_back_everything_is_recovery() {
    let gate = Gate::new();
    gate.aim(Stage::Recovery, 1);
    assert!(!gate.meets(Act::Read, "/etc/passwd"));
    assert!(gate.meets(Act::Read, SEGMENT));
    gate.told(Stage::Capture);
    assert_eq!(gate.seen(), Stage::Recovery);
    gate.begins();
    gate.told(Stage::Capture);
    assert_eq!(gate.seen(), Stage::Capture);
}

#[test]
fn nobody_is_held_for_ever() {
    let gate = Gate::new();
    gate.aim(Stage::Recovery, 1);
    assert!(gate.meets(Act::Read, SEGMENT));
    gate.hold();
    assert!(!gate.open(), "it has gone on by itself");
}
