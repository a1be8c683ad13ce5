use super::*;
use rustix::fs::OFlags;
use std::os::unix::fs::{PermissionsExt, chown, symlink};
use std::path::Path;

fn stat_of(path: &Path) -> Stat {
    rustix::fs::stat(path).unwrap()
}

fn chmod(path: &Path, mode: u32) {
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
}

/// What root alone can set up: a file of somebody else.
fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

#[test]
fn files_that_others_may_write_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("file");
    std::fs::write(&file, b"").unwrap();
    let trust = Trust::default();
    for (mode, fits) in [(0o600, true), (0o644, true), (0o444, true), (0o602, false)] {
        chmod(&file, mode);
        assert_eq!(trust.check(&stat_of(&file)).is_ok(), fits, "{mode:o}");
    }
    let why = trust.check(&stat_of(&file)).unwrap_err().to_string();
    assert!(why.contains("mode 0602") && why.contains("chmod go-w"), "{why}");
    if is_root() {
        // A group of which this user is not the only member.
        chown(&file, None, Some(65534)).unwrap();
        chmod(&file, 0o660);
        assert!(trust.check(&stat_of(&file)).is_err());
        let with_group = Trust { group: Some(65534), users: vec![] };
        assert!(with_group.check(&stat_of(&file)).is_ok());
    }
}

#[test]
fn only_named_users_and_members_of_the_group_are_trusted_besides_root() {
    if !is_root() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("file");
    std::fs::write(&file, b"").unwrap();
    chown(&file, Some(65534), Some(65534)).unwrap();
    let foreign = stat_of(&file);
    let why = Trust::default().check(&foreign).unwrap_err();
    assert_eq!(why, Distrust::Owner(65534));
    assert!(why.to_string().contains("uid 65534"), "{why}");
    assert!(Trust { users: vec![65534], group: None }.check(&foreign).is_ok());
    assert!(Trust { users: vec![1], group: Some(1) }.check(&foreign).is_err());
    // The group of the file proves nothing: whoever may write in a set-group-id directory gets it.
    chown(&file, Some(1), Some(65534)).unwrap();
    assert!(Trust { users: vec![], group: Some(65534) }.check(&stat_of(&file)).is_err());
}

#[test]
fn a_sticky_directory_protects_what_is_in_it_if_its_owner_is_trusted() {
    let dir = tempfile::tempdir().unwrap();
    let trust = Trust::default();
    chmod(dir.path(), 0o777);
    assert!(trust.check_container(&stat_of(dir.path())).is_err());
    chmod(dir.path(), 0o1777);
    assert!(trust.check_container(&stat_of(dir.path())).is_ok());
    assert!(trust.check(&stat_of(dir.path())).is_err(), "others may add files");
    if is_root() {
        chown(dir.path(), Some(65534), None).unwrap();
        assert!(trust.check_container(&stat_of(dir.path())).is_err());
    }
}

#[test]
fn paths_lead_through_links_of_trusted_users_only() {
    let dir = tempfile::tempdir().unwrap();
    let (real, link) = (dir.path().join("real"), dir.path().join("link"));
    std::fs::create_dir(&real).unwrap();
    std::fs::write(real.join("file"), b"x").unwrap();
    symlink("real", &link).unwrap();
    symlink(dir.path().join("link/../link/file"), dir.path().join("file")).unwrap();
    symlink("loop", dir.path().join("loop")).unwrap();
    let trust = Trust::default();
    let open = |path: &str| trust.open(&dir.path().join(path), OFlags::RDONLY);
    for path in ["link/file", "./link/./file", "file", "real/../real/file"] {
        assert!(open(path).is_ok(), "{path}");
    }
    assert!(open("loop").is_err());
    assert_eq!(open("link/none").unwrap_err().kind(), io::ErrorKind::NotFound);
    assert!(open("file/below").is_err());
    if is_root() {
        std::os::unix::fs::lchown(&link, Some(65534), None).unwrap();
        let error = open("link/file").unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::PermissionDenied, "{error}");
        assert!(open("file").is_err());
        assert!(open("real/file").is_ok());
    }
}

#[test]
fn directories_are_made_for_their_owner_alone() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a/b");
    Trust::default().open_directory(&path).unwrap();
    for path in [&path, path.parent().unwrap()] {
        assert_eq!(stat_of(path).st_mode & 0o777, 0o700);
    }
    Trust::default().open_directory(&path).unwrap();
    std::fs::write(path.join("file"), b"").unwrap();
    assert!(Trust::default().open_directory(&path.join("file/x")).is_err());
    if is_root() {
        let shared = Trust { group: Some(65534), users: vec![] };
        shared.open_directory(&dir.path().join("shared")).unwrap();
        let stat = stat_of(&dir.path().join("shared"));
        assert_eq!((stat.st_mode & 0o777, stat.st_gid), (0o750, 65534));
    }
}

#[test]
fn a_pipe_does_not_hold_up_who_opens_it() {
    let dir = tempfile::tempdir().unwrap();
    let pipe = dir.path().join("pipe");
    let mode = Mode::from_raw_mode(0o600);
    rustix::fs::mknodat(rustix::fs::CWD, &pipe, rustix::fs::FileType::Fifo, mode, 0).unwrap();
    assert!(Trust::default().open(&pipe, OFlags::RDONLY).is_ok());
}

#[test]
fn people_are_found_by_name_and_number() {
    assert_eq!(uid_of("root"), Some(0));
    assert_eq!((uid_of("4711"), gid_of("4712")), (Some(4711), Some(4712)));
    assert_eq!((uid_of("no such user"), gid_of("no\0group")), (None, None));
    assert!(people::is_member(0, 0));
    assert!(!people::is_member(0xffff_fff0, 0), "nobody has this number");
    assert!(is_in_group(rustix::process::getegid().as_raw()));
}
