//! Pages that ranks share, from outside: who holds them, and what they are.

use standfast::config::Loaded;
use standfast::{Job, Level};
use standfast_comm::{Comm, run_threads};

use crate::fixture::run;

#[test]
fn pages_of_other_ranks_are_listed_with_owner_and_hash() {
    let dir = tempfile::tempdir().unwrap();
    let store = dir.path().join("store");
    // Two pages that all ranks have, and one of each rank's own.
    run_threads(3, |comm| {
        let settings = [("store", store.to_str().unwrap()), ("job", "shared"), ("page", "4KiB")];
        let settings: Vec<(String, String)> =
            settings.iter().map(|(name, text)| ((*name).into(), (*text).into())).collect();
        let job = Job::open_comm(Loaded::load(&settings).unwrap(), &comm).unwrap();
        let field = job.alloc::<u64>("field", 3 * 512).unwrap();
        let number = |at: u64| if at < 1024 { at + 1 } else { at * (comm.rank() as u64 + 2) };
        field.write().iter_mut().zip(0u64..).for_each(|(word, at)| *word = number(at));
        let version = job.checkpoint(None).unwrap();
        job.wait(version, Level::Local).unwrap();
    });
    let ran = run(&store, &["--json", "show", "--references"]);
    assert_eq!(ran.code, 0, "{}", ran.err);
    // Each page is known by one hash, and held by one of the ranks that have it.
    let mut owner_of = std::collections::HashMap::new();
    let mut referred = 0;
    for reference in ran.of("reference") {
        assert_ne!(reference["rank"], reference["owner"], "{reference}");
        assert!(reference["page"].as_u64().unwrap() < 2, "only these are shared: {reference}");
        for hash in reference["hashes"].as_array().unwrap() {
            let owner = owner_of.entry(hash.to_string()).or_insert(reference["owner"].clone());
            assert_eq!(*owner, reference["owner"]);
            referred += 1;
        }
    }
    assert_eq!((owner_of.len(), referred), (2, 4), "two pages, each held by one rank of three");
    let ran = run(&store, &["show", "--references"]);
    assert!(ran.out.contains("OWNER") && ran.out.contains("16.00 KiB by reference"), "{}", ran.out);
}
