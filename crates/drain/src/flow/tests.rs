use standfast_store::MemoryStore;

use super::*;

#[test]
fn busy_ranks_hold_it_up() {
    let store = MemoryStore::new();
    let (stop, progress) = (AtomicBool::new(false), Progress::default());
    let flow = Flow::new(&store, &stop, &progress);
    flow.pass().unwrap();
    let busy = store.lock(Lock::Busy).unwrap();
    std::thread::scope(|scope| {
        let waiting = scope.spawn(|| flow.pass());
        std::thread::sleep(Duration::from_millis(30));
        assert!(!waiting.is_finished());
        drop(busy);
        waiting.join().unwrap().unwrap();
    });
    assert!(progress.paused_ns.load(Ordering::Relaxed) >= 20_000_000);
}

#[test]
fn the_rate_is_kept_and_counted() {
    let store = MemoryStore::new();
    let (stop, progress) = (AtomicBool::new(false), Progress::default());
    let flow = Flow::new(&store, &stop, &progress).rate(Some(1 << 20));
    let began = Instant::now();
    for _ in 0..4 {
        flow.sent(64 << 10).unwrap();
    }
    let least = Duration::from_millis(250).saturating_sub(CREDIT);
    assert!(began.elapsed() >= least, "{:?}", began.elapsed());
    assert_eq!(progress.sent.load(Ordering::Relaxed), 256 << 10);
}

#[test]
fn it_ends_when_told_and_when_time_is_over() {
    let store = MemoryStore::new();
    let (stop, progress) = (AtomicBool::new(false), Progress::default());
    let late = Flow::new(&store, &stop, &progress).deadline(Some(Instant::now()));
    assert!(matches!(late.pass(), Err(Error::Deadline)));
    stop.store(true, Ordering::Relaxed);
    assert!(matches!(Flow::new(&store, &stop, &progress).pass(), Err(Error::Stopped)));
}
