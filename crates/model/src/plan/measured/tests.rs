use super::*;

#[test]
fn the_first_checkpoint_does_not_count_as_change() {
    let full = Checkpoint { protected_bytes: 1e9, changed_bytes: 1e9, blocked_s: 1.0 };
    let later = Checkpoint { changed_bytes: 1e8, blocked_s: 0.1, ..full };
    let mut inputs = Inputs::example();
    let used = measured(&[full, later, later], &mut inputs);
    assert_eq!(used, ["bytes_per_node", "changed_share", "capture_bps"]);
    assert!((inputs.job.changed_share - 0.1).abs() < 1e-12);
    assert!((inputs.rates.capture_bps - 1e9).abs() < 1.0);
    inputs.check().unwrap();
}

#[test]
fn long_drains_weigh_more_in_the_rate() {
    let slow = Drain { sent_bytes: 9e9, elapsed_s: 9.0 };
    let quick = Drain { sent_bytes: 2e9, elapsed_s: 1.0 };
    assert_eq!(drain_rate(&[slow, quick]), Some(1.1e9));
    let idle = Drain { sent_bytes: 0.0, elapsed_s: 1.0 };
    assert_eq!((drain_rate(&[]), drain_rate(&[idle])), (None, None));
}

#[test]
fn silence_changes_nothing() {
    let empty = Checkpoint { protected_bytes: 0.0, changed_bytes: 0.0, blocked_s: 0.0 };
    for checkpoints in [&[] as &[Checkpoint], &[empty], &[empty, empty]] {
        let mut inputs = Inputs::example();
        assert!(measured(checkpoints, &mut inputs).is_empty());
        assert_eq!(inputs, Inputs::example());
    }
}
