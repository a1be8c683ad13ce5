use super::*;

#[test]
fn the_longest_name_still_ends() {
    let name = name_of(&"x".repeat(255));
    assert_eq!(name.iter().filter(|byte| **byte == b'x' as c_char).count(), 255);
    assert_eq!(name[255], 0);
}

#[test]
fn a_restart_tells_what_it_passed_over_and_left() {
    let mut restarted = Restarted::of(Version(3));
    restarted.skipped = vec![("checkpoint 4".into(), "torn".into())];
    restarted.unclaimed = vec!["old".into()];
    restarted.notes = vec!["restarted eagerly: for a reason".into()];
    let expected = "restarted from checkpoint 3\n  skipped checkpoint 4: torn\n  \
                    region \"old\" of the checkpoint is not protected\n  \
                    restarted eagerly: for a reason";
    assert_eq!(told(&restarted), expected);
}
