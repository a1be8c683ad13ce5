//! Stores that earlier code wrote: read by the code as it is, byte by byte.

use std::path::Path;

use golden_stores::cases::{CASES, Case, Life, case};
use golden_stores::{archive, open, read, traces, write};
use standfast_format::{SEGMENT_HEADER_BYTES, name};

/// Never made again: see `stores/v0.1.txt`. It is part of this program, so no test can change it.
const V0_1: &[u8] = include_bytes!("../stores/v0.1.tar.zst");

#[test]
fn every_version_of_every_case_comes_back_bit_by_bit() {
    let dir = tempfile::tempdir().unwrap();
    archive::unpack(V0_1, dir.path()).unwrap();
    read::family(dir.path()).unwrap();
}

#[test]
fn a_case_that_is_missing_or_unknown_is_noticed() {
    let dir = tempfile::tempdir().unwrap();
    let (missing, others) = CASES.split_last().unwrap();
    for case in others {
        std::fs::create_dir(dir.path().join(case.name)).unwrap();
    }
    let refused = || read::family(dir.path()).unwrap_err().to_string().starts_with("cases are");
    assert!(refused());
    std::fs::create_dir(dir.path().join(missing.name)).unwrap();
    assert!(!refused());
    std::fs::create_dir(dir.path().join("unknown")).unwrap();
    assert!(refused());
}

/// What comes back after a byte of this segment was changed; wrong bytes panic.
fn newest_with_a_flipped_byte(dir: &Path, case: &Case, segment: &Path) -> Option<u64> {
    write::flip(segment, SEGMENT_HEADER_BYTES).unwrap();
    let back = read::newest(dir, case).ok().map(|back| back[0].version.0);
    write::flip(segment, SEGMENT_HEADER_BYTES).unwrap();
    back
}

#[test]
fn a_flipped_byte_never_comes_back() {
    let unpacked = tempfile::tempdir().unwrap();
    for name in ["mode-full", "codec-none", "codec-zstd", "device-float", "hash-sha1", "ranks-topk"]
    {
        let (dir, case) = (unpacked.path().join(name), case(name).unwrap());
        archive::unpack_case(V0_1, name, unpacked.path()).unwrap();
        assert!(!matches!(case.life, Life::Drained(_) | Life::Ring), "nothing may help it");
        let files = archive::files(&open::store(&dir, case, 0)).unwrap();
        let back: Vec<Option<u64>> = traces::all(&files, name::SEGMENTS)
            .map(|segment| newest_with_a_flipped_byte(&dir, case, segment))
            .collect();
        let newest = case.listed.first().copied();
        assert!(
            back.iter().any(|version| *version != newest),
            "{name}: no damage noticed: {back:?}"
        );
        assert_eq!(read::newest(&dir, case).unwrap()[0].version.0, newest.unwrap(), "{name}");
    }
}
