use super::*;

fn start(after: u64, from: u64, finished_ns: u64) -> Start {
    Start { after, from, finished_ns, ..Start::default() }
}

fn history(starts: Vec<Start>) -> History {
    History { starts, ..History::new(JobId([3; 16])) }
}

fn declared(name: &str, value: &str) -> Declared {
    Declared { name: name.into(), value: value.into() }
}

#[test]
fn a_checkpoint_belongs_to_the_start_before_it_and_to_those_that_go_on_from_it() {
    let old = history(vec![]);
    assert!(old.is_of_last(1) && old.start_of(1).is_none() && !old.is_finished());
    // Two starts from the beginning, and one that goes on from checkpoint 3 of the first.
    let all = history(vec![start(0, 0, 9), start(5, 0, 9), start(8, 3, 0)]);
    let mine: Vec<u64> = (1..12).filter(|sequence| all.is_of_last(*sequence)).collect();
    assert_eq!(mine, [1, 2, 3, 9, 10, 11]);
    assert_eq!(all.start_of(6), Some(&all.starts[1]));
    // What was there before any start was remembered is one start.
    let all = history(vec![start(5, 4, 0)]);
    assert!(all.is_of_last(4) && !all.is_of_last(5) && all.is_of_last(6));
}

#[test]
fn a_start_without_checkpoints_is_replaced_and_old_ones_are_forgotten() {
    let mut all = history(vec![start(0, 0, 0)]);
    all.begin(start(0, 0, 0));
    assert_eq!((all.starts.len(), all.revision), (1, 1));
    all.change(|last| last.finished_ns = 7);
    assert!(all.is_finished());
    all.begin(start(0, 0, 0));
    assert!(!all.is_finished() && all.starts.len() == 2);
    for after in 1..=STARTS_MAX as u64 {
        all.begin(start(after, 0, 0));
    }
    assert_eq!((all.starts.len(), all.starts[0].after), (STARTS_MAX, 1));
}

#[test]
fn differences_are_named_with_both_values() {
    let then =
        Start { declared: vec![declared("nx", "1024"), declared("ny", "8")], ..start(0, 0, 0) };
    assert_eq!(then.differences(&then.declared), Vec::<String>::new());
    let now = [declared("nz", "2"), declared("nx", "2048")];
    let expected =
        ["nx: 1024 then, 2048 now", "ny: 8 then, not declared now", "nz: not declared then, 2 now"];
    assert_eq!(then.differences(&now), expected);
    assert!(start(0, 0, 0).differences(&now).is_empty(), "nothing was declared then");
}

#[test]
fn histories_lead_back_and_damage_is_found() {
    let mut all = history(vec![start(0, 0, 9), start(5, 3, 0)]);
    all.starts[0].declared = vec![declared("nx", "1024")];
    let bytes = all.encode();
    assert_eq!(History::decode(&bytes).unwrap(), all);
    for at in 0..bytes.len() {
        let mut torn = bytes.clone();
        torn[at] ^= 1;
        assert!(History::decode(&torn).is_err(), "byte {at}");
    }
    for bad in [vec![start(5, 0, 0), start(4, 0, 0)], vec![start(5, 6, 0)]] {
        assert!(History::decode(&history(bad).encode()).is_err());
    }
    let many = history(vec![start(0, 0, 1); STARTS_MAX + 1]);
    assert!(History::decode(&many.encode()).is_err());
}
