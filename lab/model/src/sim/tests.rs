use super::*;
use crate::failures::{Classes, Lifetimes};
use standfast_model::drain::{Drained, Visibility};
use standfast_model::levels::Level;

fn machine(near: f64) -> Hierarchy {
    let levels =
        vec![Level::new(8.0, 8.0, near).unwrap(), Level::new(300.0, 300.0, 1.0 - near).unwrap()];
    Hierarchy::new(1800.0, levels).unwrap()
}

fn failures(lifetimes: Lifetimes, near: f64) -> FailureModel {
    FailureModel::new(1800.0, lifetimes, Classes::Shares(vec![near, 1.0 - near])).unwrap()
}

#[test]
fn restores_take_the_share_the_model_says() {
    let pattern = Pattern { interval_s: 150.0, every: vec![6] };
    let outcome = machine(0.7).outcome(&pattern).unwrap();
    let scenario =
        Scenario::host(machine(0.7), pattern, failures(Lifetimes::Exponential, 0.7)).unwrap();
    let length = Length::batches_of_s(1e6).unwrap();
    let seen = scenario.estimate(&length, 4).unwrap();
    for level in 0..2 {
        let expected = outcome.breakdown.restore[level];
        assert!(
            (seen.restore[level] / expected - 1.0).abs() < 0.05,
            "level {level}: {} {expected}",
            seen.restore[level]
        );
    }
}

#[test]
fn weibull_of_shape_one_is_memoryless() {
    let pattern = Pattern { interval_s: 150.0, every: vec![6] };
    let closed = machine(0.7).outcome(&pattern).unwrap().efficiency;
    let lifetimes = Lifetimes::Weibull { nodes: 200, shape: 1.0 };
    let scenario = Scenario::host(machine(0.7), pattern, failures(lifetimes, 0.7)).unwrap();
    let seen = scenario.estimate(&Length::batches_of_s(1e6).unwrap(), 9).unwrap();
    assert!(seen.agrees_with(closed), "{seen:?} {closed}");
}

#[test]
fn a_drain_that_keeps_its_progress_is_no_worse() {
    let near = Pattern { interval_s: 150.0, every: vec![] };
    let length = Length::batches_of_s(1e6).unwrap();
    let run = |mark| {
        let drain = DrainPlay { drain_s: 1000.0, mark };
        Scenario::drained(machine(0.6), near.clone(), drain, failures(Lifetimes::Exponential, 0.6))
            .unwrap()
            .estimate(&length, 21)
            .unwrap()
    };
    let (commit, continuous) = (run(DrainMark::Commit), run(DrainMark::Continuous));
    assert!(continuous.efficiency >= commit.efficiency - commit.half_width_99);
    let ideal =
        Drained::new(machine(0.6), 1000.0, Visibility::Immediate).unwrap().outcome(&near).unwrap();
    assert!(continuous.efficiency <= ideal.efficiency + continuous.half_width_99);
}

#[test]
fn classes_must_fit_the_levels() {
    let pattern = Pattern { interval_s: 150.0, every: vec![6] };
    let classes = Classes::Shares(vec![1.0]);
    let failures = FailureModel::new(1.0, Lifetimes::Exponential, classes).unwrap();
    let text = Scenario::host(machine(0.5), pattern, failures).unwrap_err().to_string();
    assert!(text.contains("failure classes"), "{text}");
}
