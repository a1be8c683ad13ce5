use super::*;
use crate::config::{Lab, Machine, Settings, resolve};
use proptest::prelude::*;
use standfast_format::Arrival;

fn pace_with(words: &[(&str, &str)]) -> Pace {
    let mut settings = Settings::default();
    words.iter().for_each(|(name, text)| settings.set(name, text).unwrap());
    Pace::new(&resolve(&settings, &Lab::default(), Machine::here(1)).unwrap())
}

fn pace(interval: &str) -> Pace {
    pace_with(&[("interval", interval)])
}

fn seconds(count: f64) -> Duration {
    Duration::from_secs_f64(count)
}

/// The interval after a checkpoint that held the program up so long.
fn auto_after(mtti: &str, blocked: f64) -> f64 {
    let mut pace = pace(&format!("auto:{mtti}"));
    pace.taken(Version(1), seconds(100.0), seconds(100.0 + blocked));
    assert_eq!(pace.waits_for(), Some(Version(1)));
    pace.due_s - (100.0 + blocked)
}

#[test]
fn a_fixed_interval_counts_from_the_end_of_the_last_checkpoint() {
    let mut pace = pace("10min");
    assert!(!pace.is_due(seconds(599.9)) && pace.is_due(seconds(600.0)));
    pace.taken(Version(1), seconds(700.0), seconds(730.0));
    assert!(!pace.is_due(seconds(730.0 + 599.9)) && pace.is_due(seconds(730.0 + 600.0)));
    pace.start_again(seconds(2000.0));
    assert!(!pace.is_due(seconds(2599.9)) && pace.is_due(seconds(2600.0)));
    assert_eq!(pace.waits_for(), None, "whoever names a time gets it");
}

#[test]
fn auto_follows_the_failures_and_the_cost() {
    assert!(auto_after("1h", 4.0) < auto_after("24h", 4.0));
    assert!(auto_after("24h", 4.0) < auto_after("24h", 40.0));
    // Young's rule of thumb, sqrt(2 x cost x MTTI), is near.
    let thumb = (2.0f64 * 4.0 * 86_400.0).sqrt();
    assert!((auto_after("24h", 4.0) / thumb - 1.0).abs() < 0.05);
    assert!(pace("auto").due_s < 3600.0, "the first comes early");
}

#[test]
fn auto_follows_the_drains() {
    let drains = |seconds: &[u64]| {
        let mut drains = Drains::default();
        for elapsed_ns in seconds.iter().map(|count| count * 1_000_000_000) {
            let arrived_ns = 0;
            let version = Version(1);
            drains.push(Arrival { version, from_bytes: 1, to_bytes: 1, elapsed_ns, arrived_ns });
        }
        drains
    };
    let after = |told: &[&[u64]], ring: &str| {
        let mut pace = pace_with(&[("interval", "auto"), ("ring", ring)]);
        told.iter().for_each(|seconds| pace.drained(&drains(seconds)));
        pace.taken(Version(1), seconds(100.0), seconds(104.0));
        pace.due_s - 104.0
    };
    let alone = after(&[], "off");
    assert!(after(&[&[600]], "off") < alone);
    assert!(after(&[&[600]], "off") < after(&[&[600]], "auto"), "shards make it matter less");
    // What was told once does not count twice.
    assert_eq!(after(&[&[600, 60], &[600, 60]], "off"), after(&[&[600, 60]], "off"));
}

#[test]
fn off_never_asks() {
    let mut pace = pace("off");
    assert!(!pace.is_due(seconds(1e9)));
    pace.taken(Version(1), seconds(1e9), seconds(1e9 + 1.0));
    assert!(!pace.is_due(seconds(2e9)));
}

#[test]
fn a_job_asks_takes_and_rests() {
    let open = |interval| Job::open(&[("store", "memory:"), ("interval", interval)]).unwrap();
    let job = open("200ms");
    let _field = job.alloc::<u64>("field", 512).unwrap();
    assert_eq!(job.point().unwrap(), None);
    std::thread::sleep(Duration::from_millis(210));
    assert!(job.need_checkpoint());
    assert_eq!(job.point().unwrap(), Some(Version(1)));
    assert_eq!(job.point().unwrap(), None);
    assert!(!open("off").need_checkpoint() && !open("auto").need_checkpoint());
}

proptest! {
    #[test]
    fn a_dearer_checkpoint_or_rarer_failures_never_come_sooner(
        hours in 1u32..1000, cost in 0.0f64..100.0, more in 0.0f64..100.0,
    ) {
        let interval = |hours: u32, cost| auto_after(&format!("{hours}h"), cost);
        prop_assert!(interval(hours, cost + more) >= interval(hours, cost));
        prop_assert!(interval(hours + 1, cost) >= interval(hours, cost));
    }
}
