//! Global storage behind a real S3 server: drained to, killed, looked at, restarted from.
//!
//! One server serves all cases, for starting one takes seconds: those that leave it alone at the same
//! time, and then the one that kills it. What needs the server's credentials in its environment is a process of its own: the command, or this program
//! again as [`program`].

mod program;

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use standfast_testkit::S3Server;

/// One job's directory and what it needs to reach the server.
struct World {
    dir: PathBuf,
    url: String,
    environment: Vec<(&'static str, String)>,
}

impl World {
    fn new(home: &Path, name: &str, server: &S3Server) -> Self {
        let dir = home.join(name);
        std::fs::create_dir(&dir).unwrap();
        Self { dir, url: server.url(name), environment: server.environment() }
    }

    fn clean(&self, program: impl AsRef<std::ffi::OsStr>) -> Command {
        let mut command = Command::new(program);
        for (name, _) in std::env::vars_os() {
            let text = name.to_string_lossy();
            if text.starts_with("STANDFAST_") || text.starts_with("AWS_") {
                command.env_remove(&name);
            }
        }
        command.current_dir(&self.dir).envs(self.environment.iter().cloned());
        command
    }

    fn standfast(&self, args: &[&str]) -> Command {
        let mut command = self.clean(assert_cmd::cargo::cargo_bin("standfast"));
        command.args(["--job", "test"]).args(args);
        command
    }

    #[track_caller]
    fn good(&self, args: &[&str]) -> String {
        good(&self.standfast(args).output().unwrap())
    }

    /// A command on the global store.
    #[track_caller]
    fn far(&self, args: &[&str]) -> String {
        self.good(&[&["--store", self.url.as_str()], args].concat())
    }

    #[track_caller]
    fn program(&self, words: &str) -> String {
        let mut command = self.clean(std::env::current_exe().unwrap());
        command.args(["program::program", "--exact", "--nocapture"]);
        command.env(program::WORDS, words).env("STANDFAST_GLOBAL", &self.url);
        good(&command.output().unwrap())
    }

    fn drain(&self, args: &[&str]) -> Child {
        let all = [&["--store", "local", "--json", "drain", "--to", self.url.as_str()], args];
        let mut command = self.standfast(&all.concat());
        command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap()
    }
}

/// What is tried while the server runs, in a directory and at a place of its own.
type Case = fn(&World);

#[track_caller]
fn good(output: &Output) -> String {
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{text}\n{}", String::from_utf8_lossy(&output.stderr));
    text
}

#[test]
fn a_real_s3_server_as_global_storage() {
    let home = tempfile::tempdir().unwrap();
    let Some(mut server) = S3Server::start(&home.path().join("home")) else { return };
    let cases: [(&str, Case); 3] = [
        ("contract", the_contract_of_stores_holds),
        ("whole", a_job_goes_on_elsewhere_from_global_storage_alone),
        ("killed", killed_drains_complete_in_the_end),
    ];
    std::thread::scope(|scope| {
        for (name, case) in cases {
            let world = World::new(home.path(), name, &server);
            std::thread::Builder::new()
                .name(name.into())
                .spawn_scoped(scope, move || case(&world))
                .unwrap();
        }
    });
    let world = World::new(home.path(), "server", &server);
    a_drain_outlives_its_server(&world, &mut server);
}

fn the_contract_of_stores_holds(world: &World) {
    world.program("contract");
}

fn a_job_goes_on_elsewhere_from_global_storage_alone(world: &World) {
    world.program("checkpoint local 1 4");
    // The newest, and one of the history that it shares pages with.
    world.good(&["--store", "local", "drain", "--to", &world.url, "--every", "2"]);
    let text = world.far(&["--json", "ls"]);
    assert_eq!(text.matches(r#""level":"global""#).count(), 2, "{text}");
    assert!(world.far(&["show", "4"]).contains("checkpoint 4"));
    world.far(&["verify"]);
    world.far(&["export", "4", "--to", "exported"]);
    let exported = std::fs::read(world.dir.join("exported/state.raw")).unwrap();
    assert!(exported == program::bytes(4), "the state, as it was");

    // Another machine: nothing but the place is known there.
    std::fs::rename(world.dir.join("local"), world.dir.join("lost")).unwrap();
    let text = world.program("restart fresh 4");
    assert!(text.contains("rank 0 from global"), "{text}");
    // The same job goes on there, with numbers that go on, and drains to the same place.
    world.program("go-on fresh 5");
    world.good(&["--store", "fresh", "drain", "--to", &world.url]);
    world.far(&["prune", "--keep", "1", "--yes"]);
    world.far(&["verify"]);
    let text = world.far(&["--json", "ls"]);
    assert!(text.contains(r#""version":5"#) && !text.contains(r#""version":4"#), "{text}");
    world.good(&["--store", "other", "fetch", "--from", &world.url]);
    world.program("restart other 5");
    // A segment that the node has lost comes from there, the rest from the node.
    let segments = world.dir.join("other/test/segments");
    let lost = std::fs::read_dir(&segments).unwrap().next().unwrap().unwrap();
    std::fs::remove_file(lost.path()).unwrap();
    assert!(world.program("restart other 5").contains("rank 0 from global"));
}

fn killed_drains_complete_in_the_end(world: &World) {
    world.program("checkpoint local 1 2");
    for life in 0..4 {
        let mut drain = world.drain(&["--rate", "3MB/s"]);
        std::thread::sleep(Duration::from_millis(100 + 150 * life));
        drain.kill().unwrap();
        drain.wait().unwrap();
        let seen = world.standfast(&["--store", &world.url, "verify"]).output().unwrap();
        let missing = standfast::Kind::Missing.exit_code();
        let whole = seen.status.success() || seen.status.code() == Some(missing);
        assert!(whole, "{}", String::from_utf8_lossy(&seen.stdout));
    }
    let text = good(&world.drain(&[]).wait_with_output().unwrap());
    let arrived = text.contains(r#""type":"drained""#) || text.is_empty();
    assert!(arrived, "{text}");
    world.far(&["verify"]);
    world.program("restart fresh 2");
}

fn a_drain_outlives_its_server(world: &World, server: &mut S3Server) {
    world.program("checkpoint local 1 1");
    let mut drain = world.drain(&["--follow", "--rate", "4MB/s"]);
    // In the middle of a segment.
    std::thread::sleep(Duration::from_millis(600));
    server.kill();
    std::thread::sleep(Duration::from_millis(500));
    server.start_again();
    let end = Instant::now() + Duration::from_secs(60);
    let arrived = || {
        let listed = world.standfast(&["--store", &world.url, "--json", "ls"]).output().unwrap();
        String::from_utf8_lossy(&listed.stdout).contains(r#""version":1"#)
    };
    while !arrived() {
        assert!(Instant::now() < end, "the checkpoint does not arrive");
        assert!(drain.try_wait().unwrap().is_none(), "the drain has given up");
        std::thread::sleep(Duration::from_millis(200));
    }
    let pid = rustix::process::Pid::from_raw(drain.id() as i32).unwrap();
    rustix::process::kill_process(pid, rustix::process::Signal::TERM).unwrap();
    assert!(drain.wait().unwrap().success());
    world.far(&["verify"]);
    world.program("restart fresh 1");
}
