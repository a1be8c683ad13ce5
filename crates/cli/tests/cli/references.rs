//! Pages that ranks share, from outside: who holds them, and what they are.

use std::path::Path;

use standfast::config::Loaded;
use standfast::{Image, Job, Level, Manifest, Version};
use standfast_comm::Comm;
use standfast_format::name;
use standfast_testkit::run_threads;

use crate::fixture::{Ran, run};

/// A checkpoint of three ranks: two pages that all of them have, and one of each rank's own.
fn share(store: &Path, strategy: &str) {
    run_threads(3, |comm| {
        let settings = [
            ("store", store.to_str().unwrap()),
            ("job", "shared"),
            ("lab.page", "4KiB"),
            ("lab.strategy", strategy),
        ];
        let settings: Vec<(String, String)> =
            settings.iter().map(|(name, text)| ((*name).into(), (*text).into())).collect();
        let job = Job::open_comm(Loaded::load(&settings).unwrap(), &comm).unwrap();
        let field = job.alloc::<u64>("field", 3 * 512).unwrap();
        let number = |at: u64| if at < 1024 { at + 1 } else { at * (comm.rank() as u64 + 2) };
        field.write().iter_mut().zip(0u64..).for_each(|(word, at)| *word = number(at));
        let version = job.checkpoint(None).unwrap();
        job.wait(version, Level::Local).unwrap();
    });
}

/// Each page is known by one hash, and held by one of the ranks that have it.
fn check(ran: &Ran) {
    assert_eq!(ran.code, 0, "{}", ran.err);
    let mut owner_of = std::collections::HashMap::new();
    let mut referred = 0;
    for reference in ran.of("reference") {
        assert_ne!(reference["rank"], reference["owner"], "{reference}");
        assert_eq!(reference["region"], "field");
        assert!(reference["page"].as_u64().unwrap() < 2, "only these are shared: {reference}");
        assert_eq!(reference["segment"].as_str().unwrap().len(), 32, "{reference}");
        assert!(reference["slot"].is_u64(), "{reference}");
        let hashes = reference["hashes"].as_array().unwrap();
        assert_eq!(reference["pages"], hashes.len());
        for hash in hashes {
            let owner = owner_of.entry(hash.to_string()).or_insert(reference["owner"].clone());
            assert_eq!(*owner, reference["owner"]);
            referred += 1;
        }
    }
    assert_eq!((owner_of.len(), referred), (2, 4), "two pages, each held by one rank of three");
}

#[test]
fn pages_of_other_ranks_are_listed_with_owner_and_hash() {
    for strategy in ["exact", "topk"] {
        let dir = tempfile::tempdir().unwrap();
        let store = dir.path().join("store");
        share(&store, strategy);
        let listed = run(&store, &["--json", "show", "--references"]);
        check(&listed);
        let ran = run(&store, &["show", "--references"]);
        let told = ran.out.contains("OWNER") && ran.out.contains("16.00 KiB by reference");
        assert!(told, "{}", ran.out);
        // Where the strategy has them written down, nobody needs to look into segments.
        std::fs::remove_dir_all(store.join("shared/segments")).unwrap();
        let ran = run(&store, &["--json", "show", "--references"]);
        match strategy {
            "topk" => assert_eq!(ran.of("reference"), listed.of("reference")),
            _ => assert_ne!(ran.code, 0, "{}", ran.out),
        }
    }
}

#[test]
fn verify_finds_a_reference_to_another_hash() {
    let dir = tempfile::tempdir().unwrap();
    let store = dir.path().join("store");
    share(&store, "topk");
    let path = store.join("shared").join(name::manifest(Version(1), Level::Local));
    let mut manifest = Manifest::decode(&std::fs::read(&path).unwrap()).unwrap();
    let attempt = manifest.attempt;
    let (named, object, mut image) = manifest
        .images
        .iter_mut()
        .find_map(|named| {
            let object = name::image(Version(1), attempt, named.rank);
            let bytes = std::fs::read(store.join("shared").join(&object)).unwrap();
            let (image, _) = Image::decode(&bytes).unwrap();
            let some = image.references.as_ref().is_some_and(|list| !list.is_empty());
            some.then_some((named, object, image))
        })
        .unwrap();
    let reference = &mut image.references.as_mut().unwrap()[0];
    reference.hashes[3] ^= 4;
    let what = format!("region \"field\", page {}: where rank {}", reference.page, reference.owner);
    let (bytes, digest) = image.encode();
    (named.file_bytes, named.digest) = (bytes.len() as u64, digest);
    std::fs::write(store.join("shared").join(&object), bytes).unwrap();
    std::fs::write(&path, manifest.encode()).unwrap();
    for args in [&["verify"][..], &["verify", "--quick"]] {
        let ran = run(&store, args);
        assert_eq!(ran.code, 10, "{}{}", ran.out, ran.err);
        assert!(ran.out.contains(&object) && ran.out.contains(&what), "{}", ran.out);
    }
}
