//! `run`: exit codes, signals, starting again; whole programs by preload, by CRIU where one works, and
//! by a stand-in of it.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use standfast::Kind;
use standfast_testkit::must::leave_out;

const PATIENCE: Duration = Duration::from_secs(100);

pub(crate) fn standfast(dir: &Path) -> Command {
    let mut command = Command::new(assert_cmd::cargo::cargo_bin("standfast"));
    for (name, _) in std::env::vars().filter(|(name, _)| name.starts_with("STANDFAST_")) {
        command.env_remove(name);
    }
    command.current_dir(dir).args(["--store", "store", "--job", "test", "run"]);
    command
}

fn code(dir: &Path, args: &[&str]) -> i32 {
    standfast(dir).args(args).output().unwrap().status.code().unwrap()
}

pub(crate) fn until<T>(what: &str, mut found: impl FnMut() -> Option<T>) -> T {
    let end = Instant::now() + PATIENCE;
    loop {
        if let Some(found) = found() {
            return found;
        }
        assert!(Instant::now() < end, "{what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// The child of that name of a process.
pub(crate) fn child_of(parent: u32, name: &str) -> Option<Pid> {
    fs::read_dir("/proc").unwrap().find_map(|entry| {
        let pid: i32 = entry.ok()?.file_name().to_str()?.parse().ok()?;
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        let (start, rest) = stat.rsplit_once(')')?;
        let is_child = rest.split_whitespace().nth(1)? == parent.to_string();
        let is_named = start.ends_with(&format!("({name}"));
        Pid::from_raw(pid).filter(|_| is_child && is_named)
    })
}

fn manifests(dir: &Path) -> BTreeSet<OsString> {
    let entries = fs::read_dir(dir.join("store/test/manifests")).into_iter().flatten();
    let names = entries.map(|entry| entry.unwrap().file_name());
    names.filter(|name| name.as_encoded_bytes().starts_with(b"v")).collect()
}

pub(crate) fn checkpoints(dir: &Path) -> usize {
    manifests(dir).len()
}

pub(crate) fn finish(child: Child) -> (i32, String, String) {
    let output = child.wait_with_output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (output.status.code().unwrap(), text(output.stdout), text(output.stderr))
}

#[test]
fn the_exit_code_is_the_programs_own() {
    let dir = tempfile::tempdir().unwrap();
    assert_eq!(code(dir.path(), &["--", "true"]), 0);
    assert_eq!(code(dir.path(), &["--", "sh", "-c", "exit 3"]), 3);
    assert_eq!(code(dir.path(), &["--", "sh", "-c", "kill -9 $$"]), 137);
    assert_eq!(code(dir.path(), &["--", "./not-there"]), Kind::Missing.exit_code());
    assert_eq!(code(dir.path(), &["--preload", "--criu", "--", "true"]), 2);
    assert_eq!(code(dir.path(), &["--signal", "KILL", "--", "true"]), 2);
}

#[test]
fn it_starts_again_as_often_as_it_may() {
    let dir = tempfile::tempdir().unwrap();
    let script = "echo x >> tries; test $(wc -l < tries) -gt 2";
    assert_eq!(code(dir.path(), &["--retries", "1", "--", "sh", "-c", script]), 1);
    assert_eq!(fs::read_to_string(dir.path().join("tries")).unwrap().lines().count(), 2);
    assert_eq!(code(dir.path(), &["--retries", "1", "--", "sh", "-c", script]), 0);
    assert_eq!(fs::read_to_string(dir.path().join("tries")).unwrap().lines().count(), 3);
}

#[test]
fn a_program_that_uses_the_library_gets_its_settings() {
    let dir = tempfile::tempdir().unwrap();
    let script = "echo $STANDFAST_STORE $STANDFAST_JOB $STANDFAST_INTERVAL";
    let output =
        standfast(dir.path()).args(["--interval", "2min", "--", "sh", "-c", script]).output();
    assert_eq!(String::from_utf8(output.unwrap().stdout).unwrap(), "store test 120000ms\n");
}

#[test]
fn a_program_that_was_ended_on_purpose_stays_so() {
    let dir = tempfile::tempdir().unwrap();
    let script = "trap 'echo told; exit 9' TERM; touch ready; while :; do sleep 0.01; done";
    let mut command = standfast(dir.path());
    command.args(["--retries", "5", "--", "sh", "-c", script]).stdout(Stdio::piped());
    let child = command.stderr(Stdio::piped()).spawn().unwrap();
    until("it starts", || dir.path().join("ready").exists().then_some(()));
    kill_process(Pid::from_child(&child), Signal::TERM).unwrap();
    let (code, said, remarks) = finish(child);
    assert_eq!((code, said.as_str()), (9, "told\n"), "{remarks}");
}

#[test]
fn a_signal_reaches_a_program_that_listens_and_no_other() {
    let dir = tempfile::tempdir().unwrap();
    let script = "trap 'echo asked by $STANDFAST_SIGNAL; exit 0' USR2; touch ready; while :; do sleep 0.01; done";
    let mut command = standfast(dir.path());
    command.args(["--signal", "USR2", "--", "sh", "-c", script]).stdout(Stdio::piped());
    let child = command.stderr(Stdio::piped()).spawn().unwrap();
    until("it starts", || dir.path().join("ready").exists().then_some(()));
    kill_process(Pid::from_child(&child), Signal::USR2).unwrap();
    let (code, said, remarks) = finish(child);
    assert_eq!((code, said.as_str()), (0, "asked by USR2\n"), "{remarks}");

    let script = "touch deaf; sleep 0.4";
    let mut command = standfast(dir.path());
    command.args(["--", "sh", "-c", script]).stdout(Stdio::piped()).stderr(Stdio::piped());
    let child = command.spawn().unwrap();
    until("it starts", || dir.path().join("deaf").exists().then_some(()));
    kill_process(Pid::from_child(&child), Signal::USR1).unwrap();
    let (code, _, remarks) = finish(child);
    assert_eq!(code, 0, "{remarks}");
    assert!(remarks.contains("no handler for USR1"), "{remarks}");
}

pub(crate) fn library() -> PathBuf {
    standfast_testkit::built::library("standfast-preload")
}

/// A program that says `begin`, its steps and an answer, and exits with 7.
pub(crate) fn compile_list(dir: &Path) {
    let source =
        concat!(env!("CARGO_MANIFEST_DIR"), "/../../bindings/preload/tests/programs/list.c");
    let built = Command::new("cc").args(["-O2", source, "-o", "list"]).current_dir(dir).status();
    assert!(built.unwrap().success());
}

/// Steps of that program where it is disturbed in the middle.
pub(crate) const LIST_STEPS: &str = "100";

/// Its answer when nobody disturbs it. From then on it waits in the middle, so that it does not come to
/// its end before it is disturbed, until it is [let go](let_list_go).
pub(crate) fn answer_of_list(dir: &Path) -> String {
    let output = Command::new("./list").arg(LIST_STEPS).current_dir(dir).output().unwrap();
    fs::write(dir.join("hold"), "").unwrap();
    last_line(&String::from_utf8(output.stdout).unwrap())
}

pub(crate) fn let_list_go(dir: &Path) {
    fs::remove_file(dir.join("hold")).unwrap();
}

pub(crate) fn last_line(text: &str) -> String {
    text.lines().last().unwrap().to_owned()
}

#[test]
#[cfg(all(target_arch = "x86_64", target_env = "gnu"))]
fn a_preloaded_program_goes_on_from_its_last_checkpoint() {
    let dir = tempfile::tempdir().unwrap();
    compile_list(dir.path());
    let answer = answer_of_list(dir.path());
    let mut command = standfast(dir.path());
    command
        .args(["--preload", "--interval", "100ms", "--retries", "1", "--library"])
        .arg(library());
    let command = command.args(["--", "./list", LIST_STEPS]).stdout(Stdio::piped());
    let child = command.stderr(Stdio::piped()).spawn().unwrap();
    let run = child.id();
    until("a checkpoint", || (checkpoints(dir.path()) > 1).then_some(()));
    kill_process(until("the program", || child_of(run, "list")), Signal::KILL).unwrap();
    let_list_go(dir.path());
    let (code, said, remarks) = finish(child);
    assert_eq!(code, 7, "{remarks}");
    assert!(remarks.contains("killed by signal 9"), "{remarks}");
    assert!(remarks.contains("goes on from checkpoint"), "{remarks}");
    assert_eq!(last_line(&said), answer);
    assert_eq!(said.lines().filter(|line| *line == "begin").count(), 1);
}

/// The node is lost with its store: what was drained is enough, and numbers go on after it.
#[test]
#[cfg(all(target_arch = "x86_64", target_env = "gnu"))]
fn a_preloaded_program_goes_on_from_global_storage() {
    let dir = tempfile::tempdir().unwrap();
    compile_list(dir.path());
    // Runs until a checkpoint of some step is on the node, and is killed. Its words go to a file: a
    // pipe that nobody reads would hold it up.
    let live = |words: &str| {
        let words = dir.path().join(words);
        let mut command = standfast(dir.path());
        command.env("STANDFAST_GLOBAL", "global").stderr(Stdio::piped());
        command.stdout(fs::File::create(&words).unwrap());
        command.args(["--preload", "--interval", "100ms", "--library"]).arg(library());
        let mut run = command.args(["--", "./list", "100000"]).spawn().unwrap();
        let said = || fs::read_to_string(&words).unwrap();
        let has_ended = until("a step", || {
            let has_ended = run.try_wait().unwrap().is_some();
            (has_ended || said().contains("step ")).then_some(has_ended)
        });
        if has_ended {
            panic!("it has ended: {:?}", finish(run));
        }
        // One may have been under way.
        let before = manifests(dir.path());
        let new = || manifests(dir.path()).difference(&before).count() >= 2;
        until("a checkpoint", || new().then_some(()));
        kill_process(until("the program", || child_of(run.id(), "list")), Signal::KILL).unwrap();
        let (code, _, remarks) = finish(run);
        assert_eq!(code, 137, "{remarks}");
        (said(), remarks)
    };
    live("first");
    let drained = drain(dir.path());
    fs::remove_dir_all(dir.path().join("store")).unwrap();

    let (said, remarks) = live("second");
    assert!(remarks.contains(&format!("checkpoint {drained} comes from global")), "{remarks}");
    assert!(remarks.contains(&format!("goes on from checkpoint {drained}")), "{remarks}");
    assert!(said.starts_with("step "), "it has begun again: {}", &said[..said.len().min(40)]);
    assert!(drain(dir.path()) > drained, "what it stores after that is newer");
}

/// Drains to `global`; returns the version that has arrived.
#[cfg(all(target_arch = "x86_64", target_env = "gnu"))]
fn drain(dir: &Path) -> u64 {
    let mut command = Command::new(env!("CARGO_BIN_EXE_standfast"));
    command.current_dir(dir).args(["--store", "store", "drain", "--to", "global", "--json"]);
    let output = command.output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{text}{errors}");
    let lines = text.lines().filter_map(|line| serde_json::from_str(line).ok());
    let mut drained = lines.filter(|line: &serde_json::Value| line["type"] == "drained");
    drained.next().and_then(|line| line["version"].as_u64()).expect("one has arrived")
}

#[test]
#[cfg(all(target_arch = "x86_64", target_env = "gnu"))]
fn a_program_without_the_library_is_left_alone() {
    let dir = tempfile::tempdir().unwrap();
    // The shell hands its process to another program, which the library does not follow.
    let mut command = standfast(dir.path());
    command.args(["--preload", "--interval", "200ms", "--library"]).arg(library());
    let output = command.args(["--", "sh", "-c", "exec sleep 0.7"]).output().unwrap();
    let text = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{text}");
    assert!(text.contains("does not carry the library"), "{text}");
}

#[test]
fn a_library_that_is_not_there_is_named() {
    let dir = tempfile::tempdir().unwrap();
    let output = standfast(dir.path())
        .args(["--preload", "--library", "gone.so", "--", "true"])
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(Kind::Missing.exit_code()));
    assert!(String::from_utf8_lossy(&output.stderr).contains("gone.so"));
}

/// The directory of a CRIU that works here: the one that `STANDFAST_TEST_CRIU` names, or that of
/// `PATH`.
fn working_criu() -> Option<PathBuf> {
    let named = std::env::var_os("STANDFAST_TEST_CRIU").map(PathBuf::from);
    let everywhere = std::env::var_os("PATH").unwrap_or_default();
    let found = std::env::split_paths(&everywhere).map(|dir| dir.join("criu"));
    let criu = named.or_else(|| found.into_iter().find(|path| path.is_file()));
    let Some(criu) = criu else {
        leave_out("criu", "there is no criu in PATH, and STANDFAST_TEST_CRIU names none");
        return None;
    };
    match Command::new(&criu).arg("check").output() {
        Ok(checked) if checked.status.success() => Some(criu.parent().unwrap().to_owned()),
        checked => {
            leave_out("criu", format!("{} does not work here: {checked:?}", criu.display()));
            None
        }
    }
}

#[test]
fn a_process_goes_on_by_criu() {
    let Some(criu) = working_criu() else { return };
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    compile_list(dir);
    let answer = answer_of_list(dir);
    let start = |every: &str| {
        let mut command = standfast(dir);
        let path = format!("{}:{}", criu.display(), std::env::var("PATH").unwrap());
        command.env("PATH", path).args(["--criu", "--interval", every, "--", "./list", LIST_STEPS]);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command.spawn().unwrap()
    };
    let first = start("200ms");
    let run = first.id();
    until("a checkpoint", || (checkpoints(dir) > 0).then_some(()));
    kill_process(until("the program", || child_of(run, "list")), Signal::KILL).unwrap();
    let (code, said, remarks) = finish(first);
    assert_eq!(code, 137, "{remarks}");
    assert!(said.starts_with("begin\n") && !said.contains("answer"), "{said}");

    // Nothing of CRIU's own files is left: they come from the store, which is whole.
    let mut verify = Command::new(assert_cmd::cargo::cargo_bin("standfast"));
    verify.current_dir(dir).args(["--store", "store", "--job", "test", "verify"]);
    assert!(verify.output().unwrap().status.success());
    let_list_go(dir);
    let (code, said, remarks) = finish(start("1h"));
    assert_eq!(code, 7, "{remarks}");
    assert!(remarks.contains("goes on from checkpoint"), "{remarks}");
    assert_eq!(last_line(&said), answer);
    assert!(!said.contains("begin"), "it went on: {said}");
}

/// A stand-in of CRIU: a shell script that is found first.
fn with_criu(dir: &Path, script: &str) -> Command {
    let path = dir.join("bin");
    fs::create_dir_all(&path).unwrap();
    fs::write(path.join("criu"), format!("#!/bin/sh\n{script}\n")).unwrap();
    fs::set_permissions(path.join("criu"), fs::Permissions::from_mode(0o755)).unwrap();
    let mut command = standfast(dir);
    command.env("PATH", format!("{}:{}", path.display(), std::env::var("PATH").unwrap()));
    command
}

#[test]
fn criu_that_is_absent_or_unable_is_told() {
    let dir = tempfile::tempdir().unwrap();
    let unsupported = Some(Kind::Unsupported.exit_code());
    let absent = standfast(dir.path())
        .env("PATH", dir.path())
        .args(["--criu", "--", "/bin/true"])
        .output()
        .unwrap();
    assert_eq!(absent.status.code(), unsupported);
    assert!(String::from_utf8_lossy(&absent.stderr).contains("criu is not installed"));

    let unable = "echo 'Error: the kernel has no such thing' >&2; exit 1";
    let unable =
        with_criu(dir.path(), unable).args(["--criu", "--", "/bin/true"]).output().unwrap();
    assert_eq!(unable.status.code(), unsupported);
    let text = String::from_utf8_lossy(&unable.stderr);
    assert!(text.contains("no such thing") && text.contains("--preload"), "{text}");
    assert!(!dir.path().join("store").exists(), "nothing was begun");
}

/// Its "memory" is the file `state`: a dump copies it, a restore brings it back and goes on.
const CRIU: &str = r#"
case "$1" in
check) exit 0 ;;
dump) while [ $# -gt 0 ]; do [ "$1" = --images-dir ] && cp state "$2/pages-1.img"; shift; done ;;
restore)
    while [ $# -gt 0 ]; do
        [ "$1" = --images-dir ] && cp "$2/pages-1.img" state
        [ "$1" = --pidfile ] && pidfile=$2
        shift
    done
    ./counter & echo $! > "$pidfile" ;;
esac
"#;
const COUNTER: &str = r#"#!/bin/sh
while n=$(cat state); [ "$n" -lt 400 ]; do echo $((n + 1)) > next; mv next state; sleep 0.01; done
exit 5
"#;

#[test]
fn images_of_criu_go_through_the_store_and_back() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    fs::write(dir.join("state"), "1").unwrap();
    fs::write(dir.join("counter"), COUNTER).unwrap();
    fs::set_permissions(dir.join("counter"), fs::Permissions::from_mode(0o755)).unwrap();
    let mut command = with_criu(dir, CRIU);
    command.args(["--criu", "--interval", "100ms", "--retries", "1", "--", "./counter"]);
    let child = command.stderr(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let run = child.id();
    until("a checkpoint", || (checkpoints(dir) > 0).then_some(()));
    kill_process(until("the program", || child_of(run, "counter")), Signal::KILL).unwrap();
    let (code, _, remarks) = finish(child);
    assert_eq!(code, 5, "{remarks}");
    assert!(remarks.contains("goes on from checkpoint"), "{remarks}");
    assert_eq!(fs::read_to_string(dir.join("state")).unwrap().trim(), "400");
}
