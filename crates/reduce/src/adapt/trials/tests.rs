use super::super::{Adaptive, pairs::Pair, plan::plan, references};
use super::*;

#[test]
fn what_is_used_is_compared_before_what_lies_next_to_it() {
    // A class of many bytes that takes no time, and one of few bytes that takes most of it.
    let cost = |zip_ns: f64, share: f64| Cost { zip_s: zip_ns * 1e-9, share };
    let options = |share: f64| {
        (0..OPTIONS).map(|at| cost(at as f64, share / (at + 1) as f64)).collect::<Vec<_>>()
    };
    let classes = [
        Class { at: 0, weight: 0.7, options: options(0.02) },
        Class { at: 3, weight: 0.3, options: options(1.0) },
    ];
    let rates = Rates { store_s: 1e-8, ..Adaptive::new(2, 2, false).rates() };
    let mut plan = references();
    (plan[0], plan[3]) = (2, 3);
    let plan = Plan::fixed(plan);
    let mut knowledge = Knowledge::new();
    let mut next = |left_s: f64| {
        let mut trials = Trials { left_s, ..Trials::new() };
        let (class, option) = trials.next(&knowledge, &classes, &plan, &rates, 0)?;
        trials.spend(1e-3);
        assert!(trials.left_s < left_s, "it takes time");
        knowledge.compare(class, option, Pair::new((1.0, 1), (1.0, 1)));
        Some((class, option))
    };
    assert_eq!(next(1e-9), None, "no time for any");
    let tried: Vec<_> = (0..4).map_while(|_| next(1.0)).collect();
    assert_eq!(tried, [(3, 3), (0, 2), (3, 4), (3, 2)]);
}

#[test]
fn what_is_far_is_tried_where_all_wait_for_the_store() {
    // Each option takes twice as long as the one before, and is guessed to save no more.
    let cost = |at: usize| Cost {
        zip_s: 1e-11 * f64::from(1 << at),
        share: if at == 0 { 1.0 } else { 0.9 },
    };
    let options: Vec<Cost> = (0..OPTIONS).map(cost).collect();
    let classes = [Class { at: 3, weight: 1.0, options }];
    for (store_s, is_tried) in [(1e-8, true), (1e-13, false)] {
        let rates = Rates { store_s, ..Adaptive::new(2, 2, false).rates() };
        let plan = plan(&classes, &references(), &rates);
        let mut knowledge = Knowledge::new();
        let tried = (0..2 * OPTIONS).filter_map(|turn| {
            let mut trials = Trials { left_s: 1.0, ..Trials::new() };
            let (class, option) = trials.next(&knowledge, &classes, &plan, &rates, turn)?;
            knowledge.compare(class, option, Pair::new((1.0, 1), (1.0, 1)));
            Some(option)
        });
        let tried: Vec<usize> = tried.collect();
        assert_eq!(tried.contains(&(OPTIONS - 1)), is_tried, "{tried:?}");
    }
}

#[test]
fn what_was_compared_least_often_comes_first() {
    let options: Vec<Cost> =
        (0..OPTIONS).map(|at| Cost { zip_s: 1e-9, share: 1.0 / (at + 1) as f64 }).collect();
    let classes = [Class { at: 3, weight: 1.0, options }];
    let mut plan = references();
    plan[3] = 3;
    let (plan, rates) = (Plan::fixed(plan), Adaptive::new(2, 2, false).rates());
    let mut knowledge = Knowledge::new();
    let mut compare = |option: usize, times: usize| {
        (0..times).for_each(|_| knowledge.compare(3, option, Pair::new((1.0, 1), (1.0, 1))));
        let mut trials = Trials { left_s: 1.0, ..Trials::new() };
        let next = |turn| trials.next(&knowledge, &classes, &plan, &rates, turn);
        (0..4).map(next).map(|trial| trial.expect("there is time").1).collect::<Vec<_>>()
    };
    compare(3, 3);
    compare(4, 1);
    assert_eq!(compare(2, 2), [4; 4]);
    let in_turn = compare(4, 1);
    assert!(in_turn.contains(&2) && in_turn.contains(&4), "both as often: {in_turn:?}");
    assert!(!in_turn.contains(&3));
}

#[test]
fn there_is_more_time_where_the_store_takes_longer() {
    let earned = |leisure: f64| {
        let mut trials = Trials { left_s: 0.0, leisure, ..Trials::new() };
        trials.earn(0.1);
        trials.left_s
    };
    assert!(earned(3.0) > 2.0 * earned(1.0) && earned(1.0) > 0.0);
    let mut owing = Trials::new();
    owing.spend(1e3);
    assert_eq!(owing.left_s, -TRIAL_FIRST_S, "no more than that is owed");
    owing.earn(1e9);
    assert_eq!(owing.left_s, TRIAL_S_MAX);
}

#[test]
fn a_trial_is_taken_once_and_by_its_class() {
    let due = Due::nothing();
    assert_eq!(due.take(255), None);
    due.set(Some((3, 4)));
    assert_eq!((due.take(2), due.take(3), due.take(3)), (None, Some(4), None));
    due.set(Some((1, 2)));
    due.set(None);
    assert_eq!(due.take(1), None);
}
