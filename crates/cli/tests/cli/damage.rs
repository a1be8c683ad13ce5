//! Damaged stores: `verify` names the object, says what is wrong, and knows which checkpoints are
//! still intact. The library has the last word: intact ones restore, the others do not.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use standfast::{Manifest, Stats, Version};
use standfast_format::{Digest, FORMAT_VERSION, SEGMENT_HEADER_BYTES, name};

use crate::fixture::{FIELD, Fixture, Ran, open};

/// Changes one byte.
fn flip(path: &Path, at: usize) {
    let mut bytes = std::fs::read(path).unwrap();
    bytes[at] ^= 0x10;
    std::fs::write(path, bytes).unwrap();
}

fn truncate(path: &Path) {
    let bytes = std::fs::read(path).unwrap();
    std::fs::write(path, &bytes[..bytes.len() / 2]).unwrap();
}

fn swap(a: &Path, b: &Path) {
    let (bytes_a, bytes_b) = (std::fs::read(a).unwrap(), std::fs::read(b).unwrap());
    std::fs::write(a, bytes_b).unwrap();
    std::fs::write(b, bytes_a).unwrap();
}

/// Seals a framed file again, as a newer Standfast would have written it.
fn make_newer(path: &Path) {
    let mut bytes = std::fs::read(path).unwrap();
    bytes[8..10].copy_from_slice(&(FORMAT_VERSION + 1).to_le_bytes());
    let covered = bytes.len() - 32;
    let digest = Digest::of(&bytes[..covered]);
    bytes[covered..].copy_from_slice(&digest.0);
    std::fs::write(path, bytes).unwrap();
}

impl Fixture {
    /// The segment that checkpoint 1 wrote: the largest.
    fn first_segment(&self) -> PathBuf {
        let segments = self.files("segments");
        segments.into_iter().max_by_key(|path| path.metadata().unwrap().len()).unwrap()
    }

    fn name(&self, path: &Path) -> String {
        path.strip_prefix(self.store()).unwrap().to_str().unwrap().to_owned()
    }
}

/// Runs `verify` both ways and checks everything that must hold for any damage.
fn verify(fixture: &Fixture, code: i32, object: &str, what: &str, damaged: &[u64]) -> Ran {
    let text = fixture.run(&["verify"]);
    assert_eq!(text.code, code, "{}{}", text.out, text.err);
    assert!(text.out.contains(object), "{object}: {}", text.out);
    assert!(text.out.contains(what), "{what}: {}", text.out);
    let json = fixture.run(&["verify", "--json"]);
    assert_eq!(json.code, code);
    let verdict = &json.of("verdict")[0];
    assert_eq!(verdict["damaged"], serde_json::json!(damaged), "{}", json.out);
    assert_eq!(verdict["ok"], false);
    let named = json.of("damage").iter().any(|line| line["object"] == object);
    assert!(named, "{object}: {}", json.out);
    restores_agree(fixture, damaged);
    text
}

/// What `verify` calls intact must come back, and what it calls damaged must not.
fn restores_agree(fixture: &Fixture, damaged: &[u64]) {
    let damaged: BTreeSet<u64> = damaged.iter().copied().collect();
    let job = open(fixture.dir.path());
    for version in 1..=3u64 {
        let mut bytes = vec![0; FIELD * 8];
        let recovered = job.read_region(Version(version), "field", &mut bytes);
        assert_eq!(recovered.is_err(), damaged.contains(&version), "{version}: {recovered:?}");
        if recovered.is_ok() {
            let field = &fixture.fields[version as usize - 1];
            assert!(bytes.into_iter().eq(field.iter().flat_map(|v| v.to_ne_bytes())), "{version}");
        }
    }
}

#[test]
fn a_flipped_byte_of_a_page_is_found_with_those_who_need_it() {
    let fixture = Fixture::new();
    let segment = fixture.first_segment();
    flip(&segment, SEGMENT_HEADER_BYTES + 20 * 4096 + 5);
    let what = "slot 20: the page does not have the hash it was stored with";
    verify(&fixture, 10, &fixture.name(&segment), what, &[1, 2, 3]);
}

#[test]
fn a_damaged_page_affects_only_who_uses_it() {
    let fixture = Fixture::new();
    let segments = fixture.files("segments");
    let smallest = segments.iter().min_by_key(|path| path.metadata().unwrap().len()).unwrap();
    // Checkpoint 3 alone wrote one page.
    flip(smallest, SEGMENT_HEADER_BYTES + 100);
    let text = verify(&fixture, 10, &fixture.name(smallest), "slot 0", &[3]);
    assert!(text.out.contains("intact: 1, 2, not intact: 3"), "{}", text.out);
    assert_eq!(fixture.run(&["verify", "2"]).code, 0);
    assert_eq!(fixture.run(&["verify", "3"]).code, 10);
}

#[test]
fn truncated_missing_and_swapped_segments_are_named() {
    let fixture = Fixture::new();
    let segment = fixture.first_segment();
    truncate(&segment);
    let length = "its file has not the length it was committed with";
    verify(&fixture, 10, &fixture.name(&segment), length, &[1, 2, 3]);

    let fixture = Fixture::new();
    let segment = fixture.first_segment();
    std::fs::remove_file(&segment).unwrap();
    verify(&fixture, 10, &fixture.name(&segment), "it is missing", &[1, 2, 3]);

    // Two stores with segments of one length: only the ids inside tell them apart.
    let (fixture, other) = (Fixture::new(), Fixture::new());
    let (segment, foreign) = (fixture.first_segment(), other.first_segment());
    swap(&segment, &foreign);
    let what = "its file holds another segment";
    verify(&fixture, 10, &fixture.name(&segment), what, &[1, 2, 3]);
    verify(&other, 10, &other.name(&foreign), what, &[1, 2, 3]);
}

#[test]
fn a_flipped_index_is_found_without_reading_data() {
    let fixture = Fixture::new();
    let segment = fixture.first_segment();
    let bytes = segment.metadata().unwrap().len() as usize;
    flip(&segment, bytes - 200);
    verify(&fixture, 10, &fixture.name(&segment), "checksum of this segment index", &[1, 2, 3]);
    assert_eq!(fixture.run(&["verify", "--quick"]).code, 10);
}

#[test]
fn images_are_checked_against_their_manifests() {
    let fixture = Fixture::new();
    let images = fixture.files("images");
    flip(&images[1], 40);
    verify(&fixture, 10, &fixture.name(&images[1]), "checksum of this image", &[2]);

    let fixture = Fixture::new();
    let images = fixture.files("images");
    swap(&images[0], &images[1]);
    let text = verify(&fixture, 10, &fixture.name(&images[0]), "", &[1, 2]);
    assert!(text.out.contains(&fixture.name(&images[1])), "{}", text.out);

    let fixture = Fixture::new();
    let images = fixture.files("images");
    std::fs::remove_file(&images[2]).unwrap();
    verify(&fixture, 10, &fixture.name(&images[2]), "it is missing", &[3]);
}

#[test]
fn a_damaged_manifest_hides_only_its_own_checkpoint() {
    let fixture = Fixture::new();
    let manifests = fixture.files("manifests");
    flip(&manifests[2], 30);
    verify(&fixture, 10, "manifests/v0000000003.local", "checksum of this manifest", &[3]);
    let listed = fixture.run(&["ls", "--json"]);
    assert_eq!(listed.of("checkpoint").len(), 2);
    assert_eq!(listed.of("damaged")[0]["object"], "manifests/v0000000003.local");
    assert!(fixture.run(&["ls"]).out.contains("damaged manifests/v0000000003.local"));
    assert!(fixture.run(&["prune", "--keep", "1"]).out.contains("cannot be read"));
    assert_eq!(fixture.run(&["prune", "--damaged", "--yes"]).code, 0);
    assert_eq!(fixture.run(&["verify"]).code, 0, "what is left is whole");
    assert_eq!(fixture.run(&["ls", "--json"]).of("checkpoint").len(), 2);
}

#[test]
fn a_newer_format_is_not_called_damage() {
    let fixture = Fixture::new();
    make_newer(&fixture.files("manifests")[1]);
    let text = verify(&fixture, 17, "manifests/v0000000002.local", "use a newer Standfast", &[2]);
    assert!(text.out.contains("unknown  job heat"), "{}", text.out);
}

#[test]
fn a_store_without_a_good_header_says_so() {
    for (damage, code) in [(flip as fn(&Path, usize), 10), (|path, _| make_newer(path), 17)] {
        let fixture = Fixture::new();
        damage(&fixture.store().join("store"), 40);
        assert_eq!(fixture.run(&["show"]).code, if code == 10 { 0 } else { code }, "of a copy");
        for copy in ["manifests/header", "copies/header"] {
            damage(&fixture.store().join(copy), 40);
        }
        for command in ["verify", "show", "prune"] {
            let ran = fixture.run(&[command]);
            assert_eq!(ran.code, code, "{command}: {}", ran.err);
            assert!(ran.err.contains("store:") && ran.err.contains("next:"), "{}", ran.err);
        }
        let listed = fixture.run(&["ls", "--json"]);
        assert_eq!((listed.code, &listed.of("damaged")[0]["object"]), (0, &"store".into()));
    }
}

#[test]
fn garbage_is_an_orphan_or_a_damaged_manifest_never_a_crash() {
    let fixture = Fixture::new();
    let garbage: Vec<u8> = (0..10_000u32).map(|at| ((at * 7919) >> 3) as u8).collect();
    for name in ["segments/junk", "segments/00000000000000000000000000000000", "readme.txt"] {
        std::fs::write(fixture.store().join(name), &garbage).unwrap();
    }
    let ran = fixture.run(&["verify", "--json"]);
    assert_eq!(ran.code, 0, "{}", ran.out);
    assert_eq!(ran.of("orphan").len(), 3);
    std::fs::write(fixture.store().join("manifests/v0000000009.local"), &garbage).unwrap();
    let what = "not a Standfast manifest";
    verify(&fixture, 10, "manifests/v0000000009.local", what, &[9]);
}

#[test]
fn a_manifest_of_nonsense_with_a_good_checksum_gives_text_not_a_panic() {
    let fixture = Fixture::new();
    let path = &fixture.files("manifests")[2];
    let mut manifest = Manifest::decode(&std::fs::read(path).unwrap()).unwrap();
    let huge = u64::MAX;
    manifest.taken_ns = huge;
    manifest.sequence = huge;
    manifest.stats = Stats {
        captured_bytes: huge,
        pages: huge,
        zero_pages: huge,
        duplicate_pages: huge,
        remote_pages: huge,
        old_pages: huge,
        new_pages: huge,
        compressed_bytes: huge,
        segment_bytes: huge,
        image_bytes: huge,
        rank_bytes_max: huge,
        scan_ns: huge,
        agree_ns: huge,
        copy_ns: huge,
        blocked_ns: huge,
        total_ns: huge,
    };
    manifest.segments[0].file_bytes = huge;
    manifest.segments[0].slots = u32::MAX;
    std::fs::write(path, manifest.encode()).unwrap();
    for args in [&["ls"] as &[&str], &["verify"], &["diff", "1", "3"], &["prune", "--keep", "1"]] {
        let ran = fixture.run(args);
        assert!([0, 10].contains(&ran.code), "{args:?}: {} {}", ran.code, ran.err);
    }
    assert_eq!(fixture.run(&["verify"]).code, 10);
}

#[test]
fn a_mark_is_shown_and_cleared_by_a_verify_that_reads_everything() {
    let fixture = Fixture::new();
    let newest = open(fixture.dir.path()).list().swap_remove(0);
    let mark = fixture.store().join(name::mark(newest.version, newest.attempt));
    std::fs::create_dir(mark.parent().unwrap()).unwrap();
    std::fs::write(&mark, "rank 0: pages 1-2 of region \"field\"\u{1b}").unwrap();

    let ls = fixture.run(&["ls"]);
    assert!(ls.out.contains("newest, marked as damaged"), "{}", ls.out);
    let marked: Vec<bool> = fixture
        .run(&["ls", "--json"])
        .of("checkpoint")
        .iter()
        .map(|line| line["marked"] == true)
        .collect();
    assert_eq!(marked, [true, false, false]);
    let show = fixture.run(&["show"]);
    assert!(
        show.out.contains("marked as damaged by a lazy restart: rank 0: pages 1-2"),
        "{}",
        show.out
    );
    assert!(!show.out.contains('\u{1b}'), "{}", show.out);

    let quick = fixture.run(&["verify", "--quick"]);
    assert!(quick.out.contains("verify without --quick"), "{}", quick.out);
    assert!(!quick.out.contains("orphan") && mark.exists(), "{}", quick.out);
    let segment = fixture.first_segment();
    flip(&segment, SEGMENT_HEADER_BYTES + 20 * 4096 + 5);
    let damaged = fixture.run(&["verify"]);
    assert!(damaged.out.contains("it is damaged: a restart passes it over"), "{}", damaged.out);
    assert!(mark.exists());
    flip(&segment, SEGMENT_HEADER_BYTES + 20 * 4096 + 5);
    assert_eq!(fixture.run(&["verify", "1", "--json"]).of("mark").len(), 0, "not looked at");
    let whole = fixture.run(&["verify", "--json"]);
    assert_eq!(whole.of("mark")[0]["cleared"], true, "{}", whole.out);
    assert!(!mark.exists());
}

#[test]
fn prune_keeps_the_newest_that_is_not_marked() {
    let fixture = Fixture::new();
    let newest = open(fixture.dir.path()).list().swap_remove(0);
    let mark = fixture.store().join(name::mark(newest.version, newest.attempt));
    std::fs::create_dir(mark.parent().unwrap()).unwrap();
    std::fs::write(&mark, "").unwrap();
    let plan = fixture.run(&["prune", "--keep", "1", "--json"]);
    assert_eq!(plan.of("plan")[0]["keep"], serde_json::json!([3, 2]), "{}", plan.out);
}
