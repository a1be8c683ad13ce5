use super::*;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};

#[test]
fn only_a_private_directory_will_do() {
    let dir = tempfile::tempdir().unwrap();
    let own = dir.path().join("own");
    assert_eq!(Place::open(Some(&own)).unwrap().socket(), own.join("agent.sock"));
    assert_eq!(std::fs::metadata(&own).unwrap().mode() & 0o777, 0o700);
    let link = dir.path().join("link");
    symlink(&own, &link).unwrap();
    assert!(Place::open(Some(&link)).is_err(), "a link may lead anywhere");
    let open = dir.path().join("open");
    std::fs::create_dir(&open).unwrap();
    std::fs::set_permissions(&open, std::fs::Permissions::from_mode(0o750)).unwrap();
    assert!(Place::open(Some(&open)).is_err(), "others could connect");
    assert!(Place::open(Some(&dir.path().join("x".repeat(120)))).is_err(), "too long");
    assert!(Place::open(Some(&dir.path().join("not/there"))).is_err());
    // Others could put their own directory in its place, though nobody can enter this one.
    std::fs::set_permissions(dir.path(), std::fs::Permissions::from_mode(0o777)).unwrap();
    assert!(Place::open(Some(&own)).is_err());
}
