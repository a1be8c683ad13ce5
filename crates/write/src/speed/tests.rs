use super::*;

fn progress(handed_bytes: u64, handing_ms: u64, meter: Option<Arc<WriteMeter>>) -> Progress {
    let handing = Duration::from_millis(handing_ms);
    let segment = SegmentId([1; 16]);
    Progress { segment, ahead_bytes: 5 << 20, handed_bytes, handing, meter }
}

fn start() -> (Arc<Adaptive>, StoreSpeed) {
    let adaptive = Arc::new(Adaptive::new(1, false));
    (Arc::clone(&adaptive), StoreSpeed::new(adaptive, 8 << 20))
}

fn mib_takes(adaptive: &Adaptive, expected_s: f64) {
    let mib_s = adaptive.store_s().expect("it was told") * f64::from(1 << 20);
    assert!((mib_s / expected_s - 1.0).abs() < 1e-6, "{mib_s}");
}

#[test]
fn without_a_meter_the_time_of_handing_over_counts() {
    let (adaptive, speed) = start();
    speed.observe(&progress(1 << 10, 500, None));
    assert_eq!(adaptive.store_s(), None, "too few to tell");
    let mib_takes = |expected_s| mib_takes(&adaptive, expected_s);
    speed.observe(&progress(1 << 20, 2000, None));
    mib_takes(2.0);
    speed.observe(&progress(2 << 20, 3000, None));
    mib_takes(1.5);
    speed.observe(&progress(3 << 20, 10_000, None));
    // Too few to change it now.
    mib_takes(1.5);
    speed.observe(&progress(4 << 20, 10_000, None));
    mib_takes(2.5);
    speed.observe(&progress(64 << 20, 70_000, None));
    // What was long ago is forgotten.
    mib_takes(1.0);
}

#[test]
fn a_write_that_waited_for_a_core_does_not_make_the_store_slow() {
    let (adaptive, speed) = start();
    let meter = WriteMeter::shared();
    meter.started(1 << 20);
    std::thread::sleep(Duration::from_millis(5));
    meter.landed(1 << 20, Duration::from_millis(1));
    speed.observe(&progress(1 << 20, 0, Some(meter)));
    mib_takes(&adaptive, 1e-3);
}
