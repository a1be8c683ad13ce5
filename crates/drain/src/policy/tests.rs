use standfast_format::{AttemptId, JobId, Level, Stats, Version};

use super::*;

fn manifest(version: u64, sequence: u64) -> Manifest {
    Manifest {
        job: JobId([0; 16]),
        version: Version(version),
        sequence,
        attempt: AttemptId([sequence as u8; 8]),
        level: Level::Local,
        taken_ns: 0,
        ranks: 1,
        images: vec![],
        segments: vec![],
        stats: Stats::default(),
        writes: vec![],
        nodes: vec![],
        abandoned: vec![],
    }
}

fn versions(due: &[&Manifest]) -> Vec<u64> {
    due.iter().map(|manifest| manifest.version.0).collect()
}

#[test]
fn the_newest_goes_first_and_stale_ones_not_at_all() {
    let local = [manifest(1, 1), manifest(2, 2), manifest(3, 3), manifest(4, 4)];
    assert_eq!(versions(&due(Policy::Newest, &local, &[])), [4, 3, 2, 1]);
    let global = [manifest(3, 3)];
    assert_eq!(versions(&due(Policy::Newest, &local, &global)), [4]);
    assert_eq!(versions(&due(Policy::Every(1), &local, &global)), [4, 2, 1]);
    assert_eq!(versions(&due(Policy::Every(2), &local, &[])), [4, 2]);
}

#[test]
fn a_version_that_was_made_again_is_another_checkpoint() {
    let global = [manifest(7, 3)];
    let local = [manifest(7, 9)];
    assert_eq!(versions(&due(Policy::Newest, &local, &global)), [7]);
    assert!(due(Policy::Newest, &global, &global).is_empty());
}

#[test]
fn when_time_is_short_the_newest_that_fits_goes() {
    let left = Duration::from_secs(10);
    assert_eq!(in_time(&[500, 90, 10], Some(10.0), left), Some(1));
    assert_eq!(in_time(&[500, 90, 10], None, left), Some(0));
    assert_eq!(in_time(&[500, 400], Some(10.0), left), Some(0), "better than nothing");
    assert_eq!(in_time(&[], Some(10.0), left), None);
}
