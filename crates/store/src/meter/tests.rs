use super::*;

#[test]
fn overlapping_writes_count_their_time_once() {
    let meter = WriteMeter::default();
    meter.started(1 << 20);
    meter.started(100);
    let took = Duration::from_secs(3600);
    meter.landed(1 << 20, took);
    assert_eq!(meter.pace().under_way_bytes, 100);
    meter.landed(100, took);
    assert_eq!(meter.pace().under_way_bytes, 0);
    let pace = meter.pace();
    assert_eq!(pace.landed_bytes, (1 << 20) + 100);
    assert!(pace.busy < took, "by the clock, not by what each write took");
    assert_eq!(meter.pace(), pace, "nothing is under way");
    assert_eq!(meter.tally().total().ns, 2 * took.as_nanos() as u64);
}

#[test]
fn the_medium_takes_the_lesser_of_both_times() {
    let ms = Duration::from_millis;
    let pace = |busy, took| Pace { busy: ms(busy), took: ms(took), ..Pace::default() };
    let before = pace(10, 5);
    assert_eq!(pace(30, 10).took_since(&before), ms(5), "a write that waited for a core");
    assert_eq!(pace(30, 65).took_since(&before), ms(20), "several at once");
    let meter = WriteMeter::default();
    meter.started(10);
    meter.landed(10, ms(3));
    meter.started(10);
    meter.landed(10, ms(4));
    assert_eq!(meter.pace().took, ms(7));
}

#[test]
fn time_counts_when_something_lands() {
    let meter = WriteMeter::default();
    meter.started(10);
    meter.started(20);
    std::thread::sleep(Duration::from_millis(3));
    assert_eq!(meter.pace().busy, Duration::ZERO);
    meter.landed(10, Duration::ZERO);
    let first = meter.pace();
    assert!(first.busy >= Duration::from_millis(3));
    std::thread::sleep(Duration::from_millis(3));
    assert_eq!(meter.pace(), first, "nothing has landed meanwhile");
    meter.landed(20, Duration::ZERO);
    assert!(meter.pace().busy >= first.busy + Duration::from_millis(3));
}

#[test]
fn waiting_ends_with_the_first_write_or_without_any() {
    let meter = WriteMeter::default();
    let ends_at_once = || {
        let began = Instant::now();
        meter.wait_landed(Duration::from_secs(600));
        began.elapsed() < Duration::from_secs(300)
    };
    assert!(ends_at_once(), "nothing is under way");
    meter.started(1);
    meter.failed();
    assert!(ends_at_once(), "it has failed");
    assert_eq!(meter.under_way(), 0);
    meter.started(1);
    let began = Instant::now();
    meter.wait_landed(Duration::from_millis(20));
    assert!(began.elapsed() >= Duration::from_millis(20), "one is under way");
    assert_eq!(meter.under_way(), 1);
    meter.landed(1, Duration::ZERO);
    meter.started(1);
    assert!(ends_at_once(), "one has landed");
}
