use super::*;

fn loaded(dir: &Path) -> Loaded {
    let store = dir.join("store").to_string_lossy().into_owned();
    Loaded::load(&[("store".into(), store), ("job".into(), "criu".into())]).unwrap()
}

fn fill(dir: &Path, pages: &[u8]) {
    fs::create_dir_all(dir).unwrap();
    fs::write(dir.join("pages-1.img"), pages).unwrap();
    fs::write(dir.join("core-17.img"), b"registers").unwrap();
    fs::write(dir.join("empty.img"), b"").unwrap();
}

#[test]
fn directories_come_back_and_equal_pages_are_stored_once() {
    let place = tempfile::tempdir().unwrap();
    let loaded = loaded(place.path());
    let (one, two) = (place.path().join("one"), place.path().join("two"));
    let mut pages: Vec<u8> =
        (0..400_000u32).flat_map(|i| i.wrapping_mul(0x9e37).to_le_bytes()).collect();
    fill(&one, &pages);
    let first = store(&loaded, &one).unwrap();
    pages[123_456] ^= 1;
    fill(&one, &pages);
    let second = store(&loaded, &one).unwrap();
    assert_eq!((first, second), (Version(1), Version(2)));

    fs::create_dir(&two).unwrap();
    assert_eq!(restore(&loaded, &[], &two).unwrap().unwrap(), Some(second));
    assert!(fs::read(two.join("pages-1.img")).unwrap() == pages);
    assert_eq!(fs::read(two.join("core-17.img")).unwrap(), b"registers");
    assert_eq!(fs::read(two.join("empty.img")).unwrap(), b"");
    let job = open(&loaded).unwrap();
    let stats = &job.list()[0].stats;
    assert_eq!(stats.new_pages, 1, "one page has changed: {stats:?}");
}

#[test]
fn a_store_without_processes_is_told_apart() {
    let place = tempfile::tempdir().unwrap();
    let loaded = loaded(place.path());
    assert!(restore(&loaded, &[], place.path()).unwrap().unwrap().is_none());
    let job = Job::open_loaded(loaded.clone()).unwrap();
    let _field = job.alloc::<f64>("field", 10).unwrap();
    job.checkpoint(None).unwrap();
    job.close().unwrap();
    let failure = restore(&loaded, &[], place.path()).unwrap_err();
    assert!(failure.summary().1.contains("not taken by"), "{failure:?}");
}

#[test]
fn names_that_lead_elsewhere_are_not_written() {
    for bad in ["", ".", "..", "a/b", "../x"] {
        assert!(!is_plain(bad), "{bad}");
    }
    assert!(is_plain("core-1.img"));
}
