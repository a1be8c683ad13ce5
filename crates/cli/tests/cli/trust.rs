//! Stores of others, and what an ordinary user sees of root's.

use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};
use std::process::Command;

use super::fixture::{Fixture, command};

const NOBODY: u32 = 65534;

fn is_root() -> bool {
    let root = rustix::process::geteuid().is_root();
    if !root {
        eprintln!("skipped: only root can make files of others");
    }
    root
}

#[test]
fn every_command_refuses_a_store_of_somebody_else() {
    if !is_root() {
        return;
    }
    let fixture = Fixture::new();
    chown(fixture.store(), Some(NOBODY), None).unwrap();
    let out = fixture.dir.path().join("out");
    let export = ["export", "1", "--to", out.to_str().unwrap()];
    for args in [&["show"][..], &["verify"], &["diff", "1", "2"], &["prune", "--yes"], &export] {
        let ran = fixture.run(args);
        assert_eq!(ran.code, 15, "{args:?}: {}", ran.err);
        let owner = ran.err.contains("uid 65534") && ran.err.contains("share = ");
        assert!(owner && ran.err.contains(fixture.store().to_str().unwrap()), "{}", ran.err);
    }
    let listed = fixture.run(&["ls"]);
    assert!((listed.out + &listed.err).contains("uid 65534"));
    let trusted = command(fixture.dir.path())
        .env("STANDFAST_SHARE", "private, from 65534")
        .arg("verify")
        .output()
        .unwrap();
    assert!(trusted.status.success(), "{}", String::from_utf8_lossy(&trusted.stderr));
}

#[test]
fn an_ordinary_user_can_neither_read_nor_list_a_store_of_root() {
    if !is_root() {
        return;
    }
    let fixture = Fixture::new();
    let everybody = std::fs::Permissions::from_mode(0o755);
    std::fs::set_permissions(fixture.dir.path(), everybody).unwrap();
    let user = NOBODY.to_string();
    let ran = Command::new("setpriv")
        .args(["--reuid", &user, "--regid", &user, "--clear-groups"])
        .arg(env!("CARGO_BIN_EXE_standfast"))
        .args(["--store", fixture.dir.path().to_str().unwrap(), "--job", "heat", "ls"])
        .current_dir("/")
        .output()
        .unwrap();
    assert!(!ran.status.success());
    assert!(!String::from_utf8_lossy(&ran.stdout).contains("VERSION"));
}

#[test]
fn exports_are_for_their_owner() {
    let fixture = Fixture::new();
    let out = fixture.dir.path().join("out");
    let ran = fixture.run(&["export", "1", "--to", out.to_str().unwrap()]);
    assert_eq!(ran.code, 0, "{}", ran.err);
    let mode = |path: &std::path::Path| std::fs::metadata(path).unwrap().mode() & 0o777;
    assert_eq!(mode(&out), 0o700);
    for entry in std::fs::read_dir(&out).unwrap() {
        assert_eq!(mode(&entry.unwrap().path()), 0o600);
    }
}

#[test]
fn a_store_without_manifests_is_no_empty_one() {
    let fixture = Fixture::new();
    std::fs::remove_dir_all(fixture.store().join("manifests")).unwrap();
    for command in ["show", "verify", "prune"] {
        let ran = fixture.run(&[command]);
        assert_eq!(ran.code, 10, "{command}: {}", ran.err);
        assert!(ran.err.contains("no manifest") && ran.err.contains("next:"), "{}", ran.err);
    }
}
