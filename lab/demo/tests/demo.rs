//! The demonstration in MPI's ranks: nodes are lost, the answer is the same, and nothing is left behind.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};

use serde_json::Value;
use standfast_testkit::built;
use standfast_testkit::must::leave_out;

const DEMO: &str = env!("CARGO_BIN_EXE_demo");

/// Something of the product that lies beside the demonstration.
fn beside(name: &str) -> PathBuf {
    Path::new(DEMO).with_file_name(name)
}

/// The whole demonstration, in a directory of its own; `None` where there is no MPI. One at a time:
/// its ranks need the machine.
fn whole(temporary: &Path, more: &[&str]) -> Option<(Command, MutexGuard<'static, ()>)> {
    static ALONE: Mutex<()> = Mutex::new(());
    if Command::new("mpirun.openmpi").arg("--version").output().is_err() {
        leave_out("mpi", "there is no mpirun.openmpi; scripts/deps.sh test installs it");
        return None;
    }
    // Beside the demonstration, where it looks.
    built::library("standfast-c");
    built::program("standfast-cli", "standfast");
    let mut command = Command::new(DEMO);
    command
        .args(["--size", "256", "--steps", "12000"])
        .args(more)
        .env("TMPDIR", temporary)
        .stderr(Stdio::inherit());
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
        if language == "rust" && !beside("heat_nodes").is_file() {
            eprintln!("skipped: the tests of the product build the solver in Rust");
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
