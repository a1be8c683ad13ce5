use super::*;

/// A job that begins while the drain of its last life looks for the last time needs one too.
#[test]
fn a_drain_that_a_session_relies_on_does_not_end() {
    let dir = tempfile::tempdir().unwrap();
    let log = Log::new(std::fs::File::create(dir.path().join("log")).unwrap());
    let drains = Drains::open(dir.path().join("drains.json"), &log);
    let text = |name: &str| dir.path().join(name).to_string_lossy().into_owned();
    let errand = Errand {
        store: text("store"),
        global: text("global"),
        threads: 1,
        trust: Trust::default(),
        keep: (0, 0),
        manner: Manner::default(),
    };
    drains.begin(errand.clone(), true);
    let draining = Arc::clone(&drains.running()[&errand.store]);
    assert!(!drains.forget(&draining, Ended::Done), "its session is still there");
    assert!(!drains.are_done());

    drains.job_is_over(&errand.store);
    let end = Instant::now() + Duration::from_secs(20);
    while !drains.are_done() {
        assert!(Instant::now() < end, "nothing is left to be done");
        std::thread::sleep(Duration::from_millis(5));
    }
    assert!(!dir.path().join("drains.json").exists());
}
