//! A short campaign holds, and each planted bug is found.

use standfast_testkit::must::leave_out;
use std::process::{Command, Output};

fn campaign(words: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_experiments"));
    command.args(["campaign", "--no-s3", "--json"]).args(words);
    command.output().expect("the campaign can be started")
}

fn summary(output: &Output) -> serde_json::Value {
    let out = String::from_utf8_lossy(&output.stdout);
    let last = out.lines().last().unwrap_or_default();
    serde_json::from_str(last).unwrap_or_else(|error| panic!("{error}: {out}"))
}

#[test]
fn a_short_campaign_holds() {
    let output = campaign(&["--seeds", "1000", "--seconds", "4"]);
    let out = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{out}\n{}", String::from_utf8_lossy(&output.stderr));
    let summary = summary(&output);
    assert_eq!(summary["wrong"], 0);
    assert!(summary["faults"].as_u64() > Some(2), "{summary}");
}

#[test]
fn planted_bugs_are_found() {
    for bug in ["early-promise", "missed-byte", "old-restart"] {
        let output = campaign(&["--seeds", "100", "--plant", bug]);
        assert!(output.status.success(), "{bug}: {}", summary(&output));
        assert!(summary(&output)["wrong"].as_u64() > Some(0), "{bug}");
    }
}

#[test]
fn a_commit_that_is_not_synced_is_found_where_power_can_be_lost() {
    let can = campaign(&["--seeds", "0", "--plant", "unsynced"]);
    if String::from_utf8_lossy(&can.stderr).contains("no disk can lose its power") {
        return leave_out("powerloss", "no xfs can be mounted here");
    }
    let output = campaign(&["--seeds", "100", "--plant", "unsynced"]);
    assert!(output.status.success(), "{}", summary(&output));
}
