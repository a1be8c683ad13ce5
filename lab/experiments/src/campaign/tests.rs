use super::fault::When;
use super::life::Word;
use super::stage::Stage;
use super::*;

#[test]
fn a_seed_gives_the_same_plan_and_others_give_others() {
    let plans: Vec<String> = (0..50).map(|seed| Plan::of(seed).to_string()).collect();
    assert_eq!(plans[7], Plan::of(7).to_string());
    let different: std::collections::HashSet<&String> = plans.iter().collect();
    assert!(different.len() > 40, "{} of 50", different.len());
}

#[test]
fn every_fault_is_drawn() {
    let drawn: std::collections::HashSet<_> = (0..300)
        .flat_map(|seed| Plan::of(seed).faults)
        .map(|fault| std::mem::discriminant(&fault.kind))
        .collect();
    assert_eq!(drawn.len(), 12);
}

#[test]
fn every_stage_is_aimed_at() {
    let aimed: std::collections::BTreeSet<_> = (0..100)
        .flat_map(|seed| Plan::of(seed).faults)
        .filter_map(|fault| match fault.when {
            When::Stage(stage, ..) => Some(stage),
            When::Word(Word::Begun, ..) => Some(Stage::Capture),
            _ => None,
        })
        .collect();
    assert_eq!(aimed.len(), 7, "{aimed:?}");
}
