//! `agent`: one per directory, told about, ended.

use std::process::Output;

use assert_cmd::Command;

fn agent(dir: &std::path::Path, words: &[&str]) -> Output {
    let mut command = Command::cargo_bin("standfast").unwrap();
    command.env_remove("STANDFAST_STORE").args(words).arg("--dir").arg(dir).output().unwrap()
}

#[test]
fn an_agent_is_started_asked_and_ended() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path().join("agent");
    let none = agent(&dir, &["agent", "status"]);
    assert!(!none.status.success());
    assert!(String::from_utf8_lossy(&none.stderr).contains("standfast agent start"));

    let started = agent(&dir, &["--json", "agent", "start", "--idle", "1min"]);
    assert!(started.status.success(), "{started:?}");
    let again = agent(&dir, &["--json", "agent", "start"]);
    assert_eq!(started.stdout, again.stdout, "the one that runs stays");

    let status = agent(&dir, &["agent", "status"]);
    let text = String::from_utf8_lossy(&status.stdout).into_owned();
    assert!(text.starts_with("agent ") && text.contains("agent.log"), "{text}");
    let status = agent(&dir, &["--json", "agent", "status"]);
    let record: serde_json::Value = serde_json::from_slice(&status.stdout).unwrap();
    assert_eq!(record["type"], "agent");
    assert!(record["beat_ms"].is_number() && record["pid"].is_number(), "{record}");

    assert!(agent(&dir, &["agent", "stop"]).status.success());
    assert!(!agent(&dir, &["agent", "status"]).status.success());
    let log = std::fs::read_to_string(dir.join("agent.log")).unwrap();
    for line in log.lines() {
        let line: serde_json::Value = serde_json::from_str(line).expect("a JSON object per line");
        assert!(line["event"].is_string() && line["time_ms"].is_number(), "{line}");
    }
    assert!(log.contains("\"start\"") && log.contains("\"end\""), "{log}");
}
