//! The heat solver in C, before and after: killed in mid-run, its answer is the same.

use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::installed::{package, prefix, run};

/// Enough work for a kill to fall into the middle of it, even on a fast machine.
const SETTINGS: [&str; 3] = ["300", "6000", "50"];
const SIGKILL: i32 = 9;

/// Builds the example as its reader does, with make and pkg-config, in a copy.
fn build(into: &Path) {
    let sources = package().join("../../examples/heat/c");
    for file in ["Makefile", "heat_before.c", "heat_after.c", "standfast.toml"] {
        std::fs::copy(sources.join(file), into.join(file)).unwrap();
    }
    let mut make = Command::new("make");
    make.current_dir(into).env("PKG_CONFIG_PATH", prefix().join("lib/pkgconfig"));
    run(make.env("CFLAGS", "-O2 -Wall -Wextra -Werror"));
}

fn solver(dir: &Path, program: &str, output: &Path) -> Command {
    let mut command = Command::new(dir.join(program));
    command.args(SETTINGS).arg(output).current_dir(dir);
    command
}

fn committed(dir: &Path) -> usize {
    std::fs::read_dir(dir.join("standfast-store/heat/manifests")).map_or(0, |entries| {
        let names = entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
        names.filter(|name| name.ends_with(".local")).count()
    })
}

fn kill_after(mut child: Child, dir: &Path, checkpoints: usize) {
    let patience = Instant::now() + Duration::from_secs(120);
    while committed(dir) < checkpoints {
        assert!(Instant::now() < patience, "no checkpoint was made");
        std::thread::sleep(Duration::from_millis(2));
    }
    child.kill().unwrap();
    let status = child.wait().unwrap();
    assert_eq!(status.signal(), Some(SIGKILL), "it was to die in mid-run: {status}");
}

#[test]
fn the_answer_survives_two_kills() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    build(dir);
    let (reference, output) = (dir.join("before.bin"), dir.join("after.bin"));
    run(&mut solver(dir, "heat_before", &reference));

    for checkpoints in [2, 5] {
        // The file beside it says once per second; variables win.
        let mut command = solver(dir, "heat_after", &output);
        command.stdout(Stdio::null()).env("STANDFAST_INTERVAL", "5ms");
        kill_after(command.spawn().unwrap(), dir, checkpoints);
        assert!(!output.exists(), "it died before its end");
    }
    let last = run(&mut solver(dir, "heat_after", &output));
    let text = String::from_utf8_lossy(&last.stdout);
    assert!(text.starts_with("goes on from step "), "{text}");
    assert!(std::fs::read(&output).unwrap() == std::fs::read(&reference).unwrap());
}
