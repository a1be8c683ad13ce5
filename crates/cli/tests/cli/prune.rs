//! Pruning: the plan first, then only what was planned, and all that is kept can be restored.

use standfast::Version;

use crate::fixture::{FIELD, Fixture, open};

#[test]
fn without_a_yes_only_the_plan_is_printed() {
    let fixture = Fixture::new();
    let before = fixture.files("");
    let ran = fixture.run(&["prune", "--keep", "1"]);
    assert_eq!(ran.code, 0);
    assert!(ran.out.contains("keep    checkpoint 3\n"), "{}", ran.out);
    assert!(ran.out.contains("remove  checkpoints 2, 1\n"), "{}", ran.out);
    assert!(ran.out.contains("needed by checkpoint 3\n"), "{}", ran.out);
    assert!(ran.err.contains("--yes"), "{}", ran.err);
    assert_eq!(fixture.files(""), before);
}

#[test]
fn what_is_kept_can_be_restored() {
    let fixture = Fixture::new();
    let ran = fixture.run(&["prune", "--keep", "1", "--keep-version", "1", "--yes", "--json"]);
    assert_eq!(ran.code, 0, "{}", ran.err);
    let plan = &ran.of("plan")[0];
    assert_eq!((&plan["keep"], &plan["remove"]), (&vec![3, 1].into(), &vec![2].into()));
    assert_eq!(ran.of("pruned")[0]["bytes"], plan["bytes"]);
    assert_eq!(fixture.run(&["verify"]).code, 0);
    let versions: Vec<_> = fixture
        .run(&["ls", "--json"])
        .of("checkpoint")
        .iter()
        .map(|c| c["version"].clone())
        .collect();
    assert_eq!(versions, [3, 1]);
    let job = open(fixture.dir.path());
    for version in [1, 3] {
        let mut bytes = vec![0; FIELD * 8];
        job.read_region(Version(version), "field", &mut bytes).unwrap();
        let expected = fixture.fields[version as usize - 1].iter().flat_map(|v| v.to_ne_bytes());
        assert!(bytes.into_iter().eq(expected), "checkpoint {version}");
    }
}

#[test]
fn a_running_job_is_named_and_left_alone() {
    let fixture = Fixture::new();
    let job = open(fixture.dir.path());
    let before = fixture.files("");
    let ran = fixture.run(&["prune", "--keep", "1", "--yes"]);
    assert_eq!(ran.code, 12, "{}", ran.err);
    assert!(ran.err.contains(&format!("pid {}", std::process::id())), "{}", ran.err);
    assert_eq!(fixture.files("").len(), before.len());
    job.close().unwrap();
    assert_eq!(fixture.run(&["prune", "--keep", "1", "--yes"]).code, 0);
    assert!(fixture.run(&["prune", "--keep", "1"]).out.contains("nothing to prune"));
}

#[test]
fn versions_to_keep_must_exist() {
    let fixture = Fixture::new();
    assert_eq!(fixture.run(&["prune", "--keep-version", "9", "--yes"]).code, 11);
    assert_eq!(fixture.run(&["prune", "--keep", "0", "--yes"]).code, 2);
}
