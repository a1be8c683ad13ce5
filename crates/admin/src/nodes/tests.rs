use super::*;

#[test]
fn a_pattern_is_every_directory_that_fits() {
    let dir = tempfile::tempdir().unwrap();
    for name in ["n1/sf", "n0/sf", "n0b/other", "m1/sf"] {
        std::fs::create_dir_all(dir.path().join(name)).unwrap();
    }
    std::fs::write(dir.path().join("n9"), "a file").unwrap();
    let root = dir.path().to_str().unwrap();
    let found = |pattern: &str| expand(&format!("{root}/{pattern}")).unwrap();
    assert_eq!(found("n{node}/sf"), [format!("{root}/n0/sf"), format!("{root}/n1/sf")]);
    assert_eq!(found("{node}").len(), 4);
    assert_eq!(found("plain"), [format!("{root}/plain")]);
    assert!(expand("/a/{node}/{node}").is_err() && expand("s3://b/{node}").is_err());
    assert!(expand("/nowhere/at/all/{node}").is_err());
}
