//! The simulator is worth what it finds: bugs planted in each protocol.

use standfast_simulate::{PLANTED, Scenario};

/// Fewer runs than a minute has, by far.
const RUNS_MAX: u64 = 2000;

#[test]
fn every_planted_bug_is_found() {
    for (name, bug) in PLANTED {
        let scenario = Scenario::of(name).unwrap();
        let is_found = |seed: &u64| !scenario.run_seed(*seed, Some(*bug), false).wrong.is_empty();
        let seed = (0..RUNS_MAX).find(is_found);
        let seed = seed.unwrap_or_else(|| panic!("{bug:?} was not found"));
        let sound = scenario.run_seed(seed, None, false);
        assert!(sound.wrong.is_empty(), "{bug:?}: seed {seed} fails without it, too");
    }
}
