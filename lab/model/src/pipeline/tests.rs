use super::*;
use proptest::prelude::*;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

fn stages(zip: f64, share: f64) -> Stages {
    Stages::new(1e8, 0.5, zip, share, 1e8, 1e10).unwrap()
}

/// Blocks of all ranks through collect, zip, and one store that serves in order of arrival.
fn simulate(stages: &Stages, ranks: usize, blocks: usize) -> f64 {
    let per = blocks as f64;
    let turn = stages.turn_s(stages.stored_share) / per;
    let mut arrivals = BinaryHeap::new();
    for rank in 0..ranks {
        let (mut collected, mut zipped) = (0.0f64, 0.0f64);
        for block in 0..blocks {
            collected += stages.collect_s / per;
            zipped = zipped.max(collected) + stages.zip_s / per;
            arrivals.push(Reverse(((zipped * 1e9) as u64, rank, block)));
        }
    }
    let mut free = 0.0f64;
    while let Some(Reverse((at, _, _))) = arrivals.pop() {
        free = free.max(at as f64 / 1e9) + turn;
    }
    free
}

#[test]
fn the_pipeline_formula_meets_the_simulated_pipeline() {
    for ranks in [1, 40, 90, 160, 400, 1500] {
        for (zip, share) in [(3.0, 0.6), (0.2, 0.5), (1.0, 0.9)] {
            let stages = stages(zip, share);
            let ours = stages.pipelined_s(ranks as f64);
            let seen = simulate(&stages, ranks, 200);
            // Filling and emptying the pipeline costs about one block of each stage, and the
            // last block of every rank may queue at the store.
            let fill = (stages.collect_s + stages.zip_s) / 200.0
                + ranks as f64 * stages.turn_s(share) / 200.0;
            assert!(
                seen >= ours * (1.0 - 1e-6) && seen <= ours + fill + 1e-6,
                "{ranks} {zip}: {ours} {seen}"
            );
        }
    }
}

#[test]
fn bad_shares_are_named() {
    let text = Stages::new(1.0, 0.0, 0.0, 1.5, 1.0, 1.0).unwrap_err().to_string();
    assert!(text.contains("stored_share"), "{text}");
    assert!(
        Stages::new(1.0, 0.0, 0.0, 0.5, 1.0, 0.0).unwrap_err().to_string().contains("shared_bps")
    );
}

proptest! {
    #[test]
    fn the_curves_cross_at_the_beneficial_points(zip in 0.01f64..50.0, share in 0.05f64..0.98) {
        let stages = stages(zip, share);
        let serial = stages.beneficial_serial().unwrap();
        let gap = stages.serial_s(serial, Form::Continuous) - stages.plain_s(serial, Form::Continuous);
        if serial > 0.0 {
            prop_assert!(gap.abs() < 1e-6 * stages.plain_s(serial, Form::Continuous));
        }
        let pipelined = stages.beneficial_pipelined();
        if pipelined > 0.0 {
            let gap = stages.pipelined_s(pipelined) - stages.plain_s(pipelined, Form::Continuous);
            prop_assert!(gap.abs() < 1e-6);
            prop_assert!(pipelined <= serial);
        }
    }

    #[test]
    fn continuous_curves_never_fall(zip in 0.01f64..50.0, share in 0.05f64..0.98, ranks in 1.0f64..5000.0) {
        let stages = stages(zip, share);
        for f in [
            |s: &Stages, p: f64| s.plain_s(p, Form::Continuous),
            |s: &Stages, p: f64| s.serial_s(p, Form::Continuous),
            |s: &Stages, p: f64| s.pipelined_s(p),
        ] {
            prop_assert!(f(&stages, ranks + 1.0) >= f(&stages, ranks) - 1e-12);
        }
    }
}
