//! The demonstration: a real kill, the same answer, and nothing left behind.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};

use serde_json::Value;
use standfast_testkit::built;

use crate::fixture::run;

const SMALL: [&str; 8] = ["demo", "--solo", "--size", "192", "--steps", "500", "--every", "50"];
const WHOLE: [&str; 5] = ["demo", "--size", "256", "--steps", "1800"];

#[test]
fn the_answer_is_identical_and_nothing_is_left() {
    let (dir, temporary) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let output = Command::new(assert_cmd::cargo::cargo_bin("standfast"))
        .args(SMALL)
        .current_dir(dir.path())
        .env("TMPDIR", temporary.path())
        .output()
        .unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success(), "{text}");
    for words in ["SIGKILL at step", "goes on from checkpoint", "identical: all 294912 bytes"] {
        assert!(text.contains(words), "{words}: {text}");
    }
    assert_eq!(std::fs::read_dir(temporary.path()).unwrap().count(), 0);
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);
}

#[test]
fn json_tells_the_same_story_and_a_given_store_stays() {
    let dir = tempfile::tempdir().unwrap();
    let ran = run(dir.path(), &[&SMALL as &[&str], &["--json"]].concat());
    assert_eq!(ran.code, 0, "{}", ran.err);
    let killed = &ran.of("killed")[0];
    assert_eq!(killed["signal"], 9);
    assert!(killed["checkpoints"].as_u64().unwrap() >= 2);
    let restarted = &ran.of("restarted")[0];
    assert!(restarted["step"].as_u64() <= killed["step"].as_u64());
    let compared = &ran.of("compared")[0];
    assert_eq!(compared["identical"], true);
    assert_eq!(compared["digest"], compared["digest_undisturbed"]);
    assert_eq!(ran.of("totals")[0]["checkpoints"], 10);
    assert_eq!(run(dir.path(), &["verify"]).code, 0);
    let again = run(dir.path(), &SMALL);
    assert_eq!(again.code, 18, "checkpoints of somebody else's run are left alone");
}

#[test]
fn an_interrupt_ends_it_and_cleans_up() {
    let temporary = tempfile::tempdir().unwrap();
    let mut child = Command::new(assert_cmd::cargo::cargo_bin("standfast"))
        .args(["demo", "--solo", "--size", "256", "--steps", "100000", "--every", "10"])
        .env("TMPDIR", temporary.path())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    lines.find(|line| line.as_ref().unwrap().starts_with("1 ")).unwrap().unwrap();
    let pid = rustix::process::Pid::from_child(&child);
    rustix::process::kill_process(pid, rustix::process::Signal::INT).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(130));
    assert_eq!(std::fs::read_dir(temporary.path()).unwrap().count(), 0);
}

/// The whole demonstration, in a directory of its own; `None` where there is no MPI. One at a time:
/// its ranks need the machine.
fn whole(temporary: &Path, more: &[&str]) -> Option<(Command, MutexGuard<'static, ()>)> {
    static ALONE: Mutex<()> = Mutex::new(());
    if Command::new("mpirun.openmpi").arg("--version").output().is_err() {
        eprintln!("skipped: there is no mpirun.openmpi; scripts/deps.sh test installs it");
        return None;
    }
    // Beside the command, where it looks.
    built::library("standfast-c");
    let mut command = Command::new(assert_cmd::cargo::cargo_bin("standfast"));
    command.args(WHOLE).args(more).env("TMPDIR", temporary).stderr(Stdio::inherit());
    Some((command, ALONE.lock().unwrap_or_else(PoisonError::into_inner)))
}

/// Processes whose environment or command line names a place.
fn processes_of(place: &Path) -> Vec<String> {
    let place = place.to_string_lossy().into_owned();
    let entries = std::fs::read_dir("/proc").unwrap().flatten();
    let names = entries.filter(|entry| entry.file_name().to_string_lossy().parse::<u32>().is_ok());
    let read = |path: &Path| std::fs::read(path).unwrap_or_default();
    let texts = names.map(|entry| {
        let all = [read(&entry.path().join("cmdline")), read(&entry.path().join("environ"))];
        String::from_utf8_lossy(&all.concat()).into_owned()
    });
    texts.filter(|text| text.contains(&place)).collect()
}

#[test]
fn an_mpi_job_loses_its_nodes_and_ends_with_the_same_bits() {
    let temporary = tempfile::tempdir().unwrap();
    let Some((mut command, _alone)) = whole(temporary.path(), &["--json"]) else { return };
    let output = command.output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success(), "{text}");
    let records: Vec<Value> =
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let of =
        |kind: &str| records.iter().filter(|record| record["type"] == kind).collect::<Vec<_>>();

    let lost = of("lost");
    assert_eq!(lost.len(), 2, "{text}");
    assert_eq!(lost[0]["nodes"].as_array().unwrap().len(), 1);
    assert_eq!(lost[1]["nodes"].as_array().unwrap().len(), 4);
    // Who was lost came back from the ring, and everybody from global storage.
    let notes = of("note").iter().map(|note| note["text"].to_string()).collect::<String>();
    let first = lost[0]["ranks"][0].as_u64().unwrap();
    assert!(notes.contains(&format!("ranks {first}-{} from ring", first + 1)), "{notes}");
    assert!(notes.contains("ranks 0-7 from global"), "{notes}");
    let restarted = of("restarted");
    assert!(restarted[0]["version"].as_u64() >= Some(2), "what was on the ring: {text}");
    assert!(restarted[1]["version"].as_u64() > restarted[0]["version"].as_u64(), "{text}");
    assert_eq!(of("compared")[0]["identical"], true);

    let stats = &of("totals")[0]["stats"];
    assert!(stats["remote_pages"].as_u64() > Some(0), "ranks share their tables: {stats}");
    assert_eq!(std::fs::read_dir(temporary.path()).unwrap().count(), 0);
    assert_eq!(processes_of(temporary.path()), Vec::<String>::new());
}

/// In the languages that the other test does not have.
#[test]
fn an_interrupt_ends_ranks_agents_and_server() {
    for language in ["fortran", "rust"] {
        let beside = assert_cmd::cargo::cargo_bin("standfast").with_file_name("heat_nodes");
        if language == "rust" && !beside.is_file() {
            eprintln!("skipped: tests of the whole workspace build the solver in Rust");
            continue;
        }
        let temporary = tempfile::tempdir().unwrap();
        let more = ["--language", language];
        let Some((mut command, _alone)) = whole(temporary.path(), &more) else { return };
        let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let durable = |line: &str| line.contains("checkpoint  1  on disk");
        lines.find(|line| durable(line.as_ref().unwrap())).unwrap().unwrap();
        let pid = rustix::process::Pid::from_child(&child);
        rustix::process::kill_process(pid, rustix::process::Signal::INT).unwrap();
        assert_eq!(child.wait().unwrap().code(), Some(130));
        assert_eq!(std::fs::read_dir(temporary.path()).unwrap().count(), 0);
        assert_eq!(processes_of(temporary.path()), Vec::<String>::new());
    }
}
