//! The job scripts of `examples/slurm`: warned by Slurm they save the program, end it and requeue the
//! job, which then goes on.
//!
//! Slurm is stood in for by its documented environment and by an `srun` and an `scontrol` that do what
//! matters here; `STANDFAST_TEST_SLURM=1` adds a real one (`examples/slurm/try.sh`).

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use rustix::process::{Pid, Signal, kill_process};

use crate::leave::{FOREVER, STEPS, number, ready};
use crate::run::finish;
use standfast_testkit::must::leave_out;

/// Leaves out its own options and becomes the task.
const SRUN: &str = r#"while [ "${1#--}" != "$1" ]; do shift; done; exec "$@""#;
const SCONTROL: &str = r#"echo "$@" >> requeued"#;

fn scripts() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/slurm")
}

/// Commands that are found before all others: Slurm's, and the one that is tested.
fn prepare(dir: &Path) {
    let bin = dir.join("bin");
    fs::create_dir(&bin).unwrap();
    for (name, script) in [("srun", SRUN), ("scontrol", SCONTROL)] {
        fs::write(bin.join(name), format!("#!/bin/sh\n{script}\n")).unwrap();
        fs::set_permissions(bin.join(name), fs::Permissions::from_mode(0o755)).unwrap();
    }
    let standfast = assert_cmd::cargo::cargo_bin("standfast");
    std::os::unix::fs::symlink(standfast, bin.join("standfast")).unwrap();
}

/// A start of the job, as Slurm makes it.
fn start(dir: &Path, script: &str, restarts: u32, steps: &str) -> Child {
    let mut command = Command::new("bash");
    for (name, _) in std::env::vars_os() {
        let text = name.to_string_lossy();
        if text.starts_with("STANDFAST_") || text.starts_with("SLURM_") {
            command.env_remove(&name);
        }
    }
    let path = std::env::var("PATH").unwrap();
    command
        .arg(scripts().join(script))
        .arg(std::env::current_exe().unwrap())
        .args(["leave::program", "--exact", "--nocapture"])
        .current_dir(dir)
        .env("PATH", format!("{}:{path}", dir.join("bin").display()))
        .env("USER", "tester")
        .env("SLURM_JOB_ID", "17")
        .env("SLURM_JOB_NAME", "heat")
        .env("SLURM_JOB_NUM_NODES", "1")
        .env("SLURM_SUBMIT_DIR", dir)
        .env(STEPS, steps);
    if restarts > 0 {
        command.env("SLURM_RESTART_COUNT", restarts.to_string());
    }
    // A node's own places, for the script that uses them.
    command.env("STANDFAST_LAB_AGENT_DIR", dir.join("agent"));
    if script == "nodes.sbatch" {
        command.env("STANDFAST_STORE", dir.join("disk/{node}"));
    }
    command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}

fn warned_requeued_and_finished(script: &str, checkpoints: &str) {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    prepare(dir);
    let job = start(dir, script, 0, FOREVER);
    ready(dir);
    kill_process(Pid::from_child(&job), Signal::USR1).unwrap();
    let (code, said, remarks) = finish(job);
    assert_eq!(code, 128 + 15, "{said}{remarks}");
    assert!(remarks.contains("the last checkpoint is durable"), "{remarks}");
    assert_eq!(fs::read_to_string(dir.join("requeued")).unwrap(), "requeue 17\n");
    assert!(fs::read_dir(dir.join(checkpoints)).unwrap().count() > 1, "{remarks}");

    let job = start(dir, script, 1, "1");
    let (code, said, remarks) = finish(job);
    assert_eq!(code, 0, "{said}{remarks}");
    assert!(said.contains("job 17, start 2"), "{said}");
    assert!(number(&said, "from") > 0, "it goes on: {said}");
    let requeued = fs::read_to_string(dir.join("requeued")).unwrap();
    assert_eq!(requeued.lines().count(), 1, "what has finished is not requeued");
}

#[test]
fn a_warned_job_saves_its_program_and_is_requeued() {
    warned_requeued_and_finished("shared.sbatch", "checkpoints/heat-17/manifests");
}

#[test]
fn a_warned_job_with_stores_on_its_nodes_drains_them() {
    warned_requeued_and_finished("nodes.sbatch", "checkpoints/heat-17/manifests");
}

#[test]
fn a_cancelled_job_is_saved_and_not_requeued() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    prepare(dir);
    let job = start(dir, "shared.sbatch", 0, FOREVER);
    ready(dir);
    kill_process(Pid::from_child(&job), Signal::TERM).unwrap();
    let (code, said, remarks) = finish(job);
    assert_eq!(code, 128 + 15, "{said}{remarks}");
    assert!(remarks.contains("the last checkpoint is durable"), "{remarks}");
    assert!(!dir.join("requeued").exists());
}

#[test]
fn a_real_slurm_warns_and_requeues() {
    if std::env::var_os("STANDFAST_TEST_SLURM").is_none() {
        return leave_out("slurm", "STANDFAST_TEST_SLURM is not set");
    }
    let standfast = assert_cmd::cargo::cargo_bin("standfast");
    let child = Command::new(scripts().join("try.sh"))
        .arg(standfast)
        .arg(std::env::current_exe().unwrap())
        .args(["leave::program", "--exact", "--nocapture"])
        .env(STEPS, "20000")
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let (code, said, remarks) = finish(child);
    assert_eq!(code, 0, "{said}{remarks}");
    assert!(said.contains("start 2"), "{said}");
}
