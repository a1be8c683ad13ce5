//! Exported files are the memory that was protected.

use std::os::unix::fs::MetadataExt;

use crate::fixture::{FIELD, Fixture, NASTY};

#[test]
fn files_equal_the_memory_of_their_checkpoint() {
    let fixture = Fixture::new();
    for version in 1..=3 {
        let to = format!("out{version}");
        let ran = fixture.run(&["export", &version.to_string(), "--to", &to]);
        assert_eq!(ran.code, 0, "{}", ran.err);
        let bytes = std::fs::read(fixture.dir.path().join(&to).join("field.raw")).unwrap();
        let expected: Vec<u8> =
            fixture.fields[version - 1].iter().flat_map(|value| value.to_ne_bytes()).collect();
        assert!(bytes == expected, "checkpoint {version}");
    }
    let zeros = fixture.dir.path().join("out1/zeros.raw").metadata().unwrap();
    assert_eq!((zeros.len(), zeros.blocks()), (32 * 4096, 0), "zeros are holes");
    let late = std::fs::read(fixture.dir.path().join("out1/late.raw")).unwrap();
    assert_eq!(late, [7; 5000], "a last page that is not full is cut");
}

#[test]
fn the_index_tells_which_file_is_whose() {
    let fixture = Fixture::new();
    let ran = fixture.run(&["export", "1", "--to", "out", "--json"]);
    assert_eq!(ran.of("file").len(), 4);
    let out = fixture.dir.path().join("out");
    let index = std::fs::read(out.join("index.json")).unwrap();
    let index: serde_json::Value = serde_json::from_slice(&index).unwrap();
    let regions = index["regions"].as_array().unwrap();
    let of = |name: &str| regions.iter().find(|region| region["region"] == name).unwrap();
    assert_eq!(of("field")["bytes"], FIELD * 8);
    assert_eq!(of("field")["elem"], 8);
    let nasty = of(NASTY)["file"].as_str().unwrap();
    assert_eq!(nasty, "a%2Fb%20%E2%80%AEc.raw");
    assert!(out.join(nasty).is_file());
    assert_eq!(std::fs::read_dir(&out).unwrap().count(), 5, "nothing else was left");
}

#[test]
fn nothing_is_overwritten_unless_told_to() {
    let fixture = Fixture::new();
    let only = ["export", "1", "--to", "out", "--region", "field"];
    assert_eq!(fixture.run(&only).code, 0);
    let file = fixture.dir.path().join("out/field.raw");
    let before = std::fs::read(&file).unwrap();
    let again = ["export", "3", "--to", "out", "--region", "field"];
    let ran = fixture.run(&again);
    assert_eq!(ran.code, 18);
    assert!(ran.err.contains("field.raw exists") && ran.err.contains("--force"), "{}", ran.err);
    assert!(std::fs::read(&file).unwrap() == before);
    assert_eq!(fixture.run(&[&again as &[&str], &["--force"]].concat()).code, 0);
    assert!(std::fs::read(&file).unwrap() != before);
}

#[test]
fn damaged_data_are_not_exported() {
    let fixture = Fixture::new();
    for segment in fixture.files("segments") {
        let mut bytes = std::fs::read(&segment).unwrap();
        bytes[5000] ^= 1;
        std::fs::write(&segment, bytes).unwrap();
    }
    let ran = fixture.run(&["export", "1", "--to", "out"]);
    assert_eq!(ran.code, 10, "{}", ran.err);
    assert!(ran.err.contains("segment"), "{}", ran.err);
    assert_eq!(std::fs::read_dir(fixture.dir.path().join("out")).unwrap().count(), 0);
}
