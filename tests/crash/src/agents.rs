//! A real agent of a test: started, looked at, and killed with it.

use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Resource, Rlimit, Signal, kill_process, setrlimit};
use standfast::config::Loaded;
use standfast_agent::Place;
use standfast_testkit::command::{clean, die_with_us, until};

/// What the variable is called that lets an agent stop itself at a failpoint.
pub const STOP_AT: &str = "CRASH_RANK_STOP_AT";

/// A running agent; dropping it kills it.
pub struct Agent {
    /// Where it is.
    pub place: Place,
    child: Child,
}

impl Agent {
    /// Starts one below a directory.
    ///
    /// # Panics
    /// If it does not answer.
    pub fn start(exe: &str, dir: &Path, environment: &[(&str, &str)]) -> Self {
        Self::start_limited(exe, dir, environment, None)
    }

    /// The same with so many descriptors at most.
    ///
    /// # Panics
    /// As [`Agent::start`].
    pub fn start_limited(
        exe: &str,
        dir: &Path,
        environment: &[(&str, &str)],
        descriptors: Option<u64>,
    ) -> Self {
        let place = Place::open(Some(&dir.join("agent"))).expect("a directory of the test's own");
        let mut command = Command::new(exe);
        command.args(["agent", "run", "--dir"]).arg(place.dir()).args(["--idle", "600000ms"]);
        command.stdin(Stdio::null()).stdout(Stdio::null());
        clean(die_with_us(&mut command)).envs(environment.iter().copied());
        if let Some(most) = descriptors {
            let limit = Rlimit { current: Some(most), maximum: Some(most) };
            // SAFETY: one system call between fork and exec.
            unsafe { command.pre_exec(move || Ok(setrlimit(Resource::Nofile, limit)?)) };
        }
        let child = command.spawn().expect("an agent can be started");
        let answers = || standfast_agent::status(&place).is_ok();
        assert!(until(Duration::from_secs(30), answers), "no agent answers");
        Self { place, child }
    }

    /// Its process.
    pub fn pid(&self) -> Pid {
        Pid::from_child(&self.child)
    }

    /// Sends it a signal.
    ///
    /// # Panics
    /// If it has ended.
    pub fn signal(&self, signal: Signal) {
        kill_process(self.pid(), signal).expect("it lives");
    }

    /// Whether its process has ended.
    pub fn has_ended(&mut self) -> bool {
        self.child.try_wait().expect("it is a child").is_some()
    }

    /// What it has told.
    pub fn log(&self) -> String {
        std::fs::read_to_string(self.place.log()).unwrap_or_default()
    }
}

impl Drop for Agent {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Settings of a small job that writes through the agent in a directory.
///
/// # Panics
/// If they are none.
pub fn settings(agent_dir: &Path, store: &Path) -> Loaded {
    let text = |path: &Path| path.to_str().expect("a path of the test's own").to_owned();
    let settings = [
        ("store", text(store)),
        ("job", "job".into()),
        ("lab.agent_dir", text(agent_dir)),
        ("lab.agent_command", "/no/such/command".into()),
        ("lab.write", "wag-dbi".into()),
        ("lab.pool", "256KiB".into()),
        ("lab.block", "16KiB".into()),
        ("lab.threads", "1".into()),
        ("lab.io_threads", "2".into()),
        ("keep", "8".into()),
    ];
    let settings: Vec<(String, String)> =
        settings.into_iter().map(|(name, value)| (name.into(), value)).collect();
    Loaded::load(&settings).expect("settings of the test's own")
}
