use super::*;
use standfast_testkit::run_threads;

#[test]
fn the_formula_is_the_one_of_the_module() {
    // 10 % of 8192 pages at 1 us is 819.2 us; 8 ranks merge 3 times 2 T entries at 30 ns.
    let threshold = Threshold::adaptive(1, 1 << 20, 1e-6, 0.1);
    assert_eq!(threshold.affordable(8192.0, 8, 30e-9), 4551);
    assert_eq!(threshold.affordable(8192.0, 1, 30e-9), 13653, "one rank counts as a round");
}

#[test]
fn ranks_agree_and_follow_what_they_measured() {
    let agreed = run_threads(5, |comm| {
        let mut threshold = Threshold::adaptive(16, 100_000, 1e-6, 0.1);
        // Ranks differ in pages and in speed; the slowest counts.
        let pages = 1000 * comm.rank() as u64;
        let first = threshold.agree(&comm, pages).unwrap();
        let entry = Duration::from_nanos(60 * (comm.rank() as u64 + 1));
        threshold.learn(1000, entry * 1000, first, first);
        let slower = threshold.agree(&comm, pages).unwrap();
        threshold.learn(0, Duration::ZERO, slower, 3);
        (first, slower, threshold.agree(&comm, pages).unwrap())
    });
    let (first, slower, little) = agreed[0];
    assert!(agreed.iter().all(|one| *one == agreed[0]), "{agreed:?}");
    // 2000 pages on average, 3 rounds; 30 ns, then (30 + 300) / 2.
    assert_eq!((first, slower), (1111, 202));
    assert_eq!(little, 16, "twice three is below the least");
}

#[test]
fn a_view_full_of_shared_pages_doubles() {
    let mut threshold = Threshold::adaptive(16, 1000, 1.0, 1.0);
    threshold.learn(0, Duration::ZERO, 64, 64);
    let solo = standfast_comm::Solo::default();
    assert_eq!(threshold.agree(&solo, 1 << 20).unwrap(), 128);
    threshold.learn(0, Duration::ZERO, 128, 100);
    assert_eq!(threshold.agree(&solo, 1 << 20).unwrap(), 200);
    assert_eq!(Threshold::fixed(7).agree(&solo, 1).unwrap(), 7);
}
