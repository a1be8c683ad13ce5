use standfast_format::Kind;

use super::*;

#[test]
fn locations_find_their_backend() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().to_str().unwrap();
    let options = Options::default();
    assert_eq!(open(path, &options).unwrap().describe(), path);
    assert_eq!(
        open(&format!("file://{path}/new"), &options).unwrap().describe(),
        format!("{path}/new")
    );
    assert_eq!(open(&format!("{path}/a:b"), &options).unwrap().describe(), format!("{path}/a:b"));
    assert_eq!(open("memory:", &options).unwrap().describe(), "memory:");
}

#[test]
fn hopeless_locations_are_invalid() {
    for location in ["gopher://x", "file://host/x", "file:", "memory://x", ""] {
        let error = open(location, &Options::default()).expect_err(location);
        assert_eq!(error.kind(), Kind::Invalid, "{location}: {error}");
    }
}

#[test]
fn hopeless_options_are_invalid() {
    let dir = tempfile::tempdir().unwrap();
    for (io_threads, chunk_bytes) in [(0, 4096), (65, 4096), (1, 0), (1, 5000), (1, 128 << 20)] {
        let options = Options { io_threads, chunk_bytes, ..Options::default() };
        let error = open(dir.path().to_str().unwrap(), &options).unwrap_err();
        assert_eq!(error.kind(), Kind::Invalid);
    }
}
