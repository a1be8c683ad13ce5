//! After a failure nothing is sent any more.

use standfast_comm::{Comm, Error, Fuse, Tag};
use standfast_testkit::run_threads;

const TAG: Tag = Tag(3);

#[test]
fn after_a_failure_nothing_is_sent_or_waited_for() {
    run_threads(3, |comm| {
        let fuse = Fuse::new(Box::new(comm));
        let part = fuse.duplicate().unwrap();
        match fuse.rank() {
            0 => {
                let why = fuse.receive(1, TAG).unwrap_err().to_string();
                assert!(why.contains("rank 1 has left"), "{why}");
                // The last rank waits for this one, and would for ever.
                let same = |error: Error| assert_eq!(error.to_string(), why);
                same(fuse.receive(2, TAG).unwrap_err());
                same(fuse.barrier().unwrap_err());
                same(part.send(2, TAG, b"anything").unwrap_err());
                same(part.split(Some(1), 0).err().unwrap());
            }
            1 => {}
            _ => assert!(part.receive(0, TAG).is_err(), "it has gone, and said nothing"),
        }
    });
}

#[test]
fn a_rank_that_does_not_exist_harms_nothing() {
    run_threads(2, |comm| {
        let fuse = Fuse::new(Box::new(comm));
        assert!(matches!(fuse.send(2, TAG, b""), Err(Error::NoRank { .. })));
        fuse.barrier().unwrap();
    });
}
