//! Building programs, running them under the library, and watching what they say.

use std::io::{BufRead, BufReader, Lines};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use standfast::Kind;
use standfast::config::{self, Loaded};
use standfast_launch::{Launch, resume};
use standfast_restart::Inventory;
use standfast_testkit::must::or_leave_out;
use tempfile::TempDir;

/// What every program exits with.
pub(crate) const CODE: i32 = 7;
const PATIENCE: Duration = Duration::from_secs(100);

/// A compiled program with a store of its own.
pub(crate) struct Program {
    pub(crate) dir: TempDir,
    pub(crate) path: PathBuf,
    pub(crate) args: Vec<String>,
}

impl Program {
    /// Compiles one of `tests/programs`; `None` where its compiler is not installed.
    pub(crate) fn build(source: &str, args: &[&str]) -> Option<Self> {
        Self::build_with(source, args, &[])
    }

    /// The same with options of the compiler.
    pub(crate) fn build_with(source: &str, args: &[&str], options: &[&str]) -> Option<Self> {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("program");
        compile(source, &path, options)?;
        let args = args.iter().map(|arg| (*arg).to_owned()).collect();
        Some(Self { dir, path, args })
    }

    pub(crate) fn command(&self) -> Command {
        let mut command = Command::new(&self.path);
        command.args(&self.args).current_dir(self.dir.path()).stdout(Stdio::piped());
        command
    }

    /// Its answer when nobody disturbs it and no library is there.
    pub(crate) fn answer(&self) -> String {
        let output = self.command().output().unwrap();
        assert_eq!(output.status.code(), Some(CODE));
        let text = String::from_utf8(output.stdout).unwrap();
        text.lines().last().unwrap().to_owned()
    }

    /// The settings: a store of its own, as small as may be.
    pub(crate) fn loaded(&self) -> Loaded {
        let store = self.dir.path().join("store").to_string_lossy().into_owned();
        let settings = [("store", store.as_str()), ("job", "test"), ("lab.threads", "1")];
        let owned: Vec<(String, String)> =
            settings.iter().map(|(name, value)| ((*name).into(), (*value).into())).collect();
        Loaded::load(&owned).unwrap()
    }

    /// Starts it under the library, from its beginning.
    pub(crate) fn start(&self) -> Running {
        Running::new(self.launch().spawn(self.command(), None).unwrap())
    }

    /// Starts it from its newest checkpoint.
    pub(crate) fn resume(&self) -> Running {
        let prepared = self.prepare().unwrap().expect("a checkpoint");
        assert_eq!(prepared.passed_over, []);
        Running::new(self.launch().spawn(self.command(), Some(&prepared)).unwrap())
    }

    /// Reads its newest checkpoint. The twin that has committed it may still be closing the store.
    pub(crate) fn prepare(&self) -> standfast_launch::Result<Option<resume::Prepared>> {
        let end = Instant::now() + PATIENCE;
        loop {
            match resume::prepare(&self.loaded(), &[]) {
                Err(error) if error.kind() == Kind::Busy && Instant::now() < end => {
                    std::thread::sleep(Duration::from_millis(5));
                }
                prepared => return prepared,
            }
        }
    }

    /// How it is started.
    pub(crate) fn launch(&self) -> Launch {
        Launch { library: library(), loaded: self.loaded(), signal: config::Signal::USR1 }
    }

    /// Committed checkpoints.
    pub(crate) fn checkpoints(&self) -> usize {
        standfast::location::open_job(&self.loaded().config)
            .ok()
            .and_then(|store| Inventory::read(&*store).ok())
            .map_or(0, |inventory| inventory.checkpoints.len())
    }

    /// Waits until there are so many checkpoints.
    pub(crate) fn wait_for_checkpoints(&self, count: usize) {
        let end = Instant::now() + PATIENCE;
        while self.checkpoints() < count {
            assert!(Instant::now() < end, "no checkpoint was made");
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}

/// Cargo leaves the library beside the tests of its package.
pub(crate) fn library() -> PathBuf {
    let tests = std::env::current_exe().unwrap();
    let library = tests.parent().unwrap().join("libstandfast_preload.so");
    assert!(library.is_file(), "{}", library.display());
    library
}

/// Compiles; `None` where the compiler is not installed. C must be there.
pub(crate) fn compile(source: &str, to: &Path, options: &[&str]) -> Option<()> {
    let (compiler, part) = match source.rsplit_once('.').unwrap().1 {
        "c" => ("cc", None),
        "cpp" => ("c++", Some("c++")),
        _ => ("gfortran", Some("fortran")),
    };
    if let Some(part) = part {
        or_leave_out(part, Command::new(compiler).arg("--version").output())?;
    }
    let package = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut command = Command::new(compiler);
    command.args(["-O2", "-Wall", "-pthread", "-I"]).arg(package.join("include"));
    // Libraries are looked for by what comes before them.
    command.arg(package.join("tests/programs").join(source)).args(options).arg("-o").arg(to);
    let output = command.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    Some(())
}

/// A program that runs.
pub(crate) struct Running {
    process: Child,
    lines: Lines<BufReader<ChildStdout>>,
    said: Vec<String>,
}

impl Running {
    pub(crate) fn new(mut process: Child) -> Self {
        let lines = BufReader::new(process.stdout.take().unwrap()).lines();
        Self { process, lines, said: Vec::new() }
    }

    /// Waits until it says this; fails if it ends before.
    pub(crate) fn hear(&mut self, wanted: &str) {
        for line in self.lines.by_ref() {
            let line = line.unwrap();
            let found = line == wanted;
            self.said.push(line);
            if found {
                return;
            }
        }
        panic!("it ended without saying {wanted:?}: {:?}", self.said);
    }

    /// Asks for a checkpoint.
    fn signal(&self) {
        kill_process(Pid::from_child(&self.process), Signal::USR1).unwrap();
    }

    /// Asks for a checkpoint and lets it go on for one step; then it stands still, so that it does
    /// not come to its end before the checkpoint is written.
    pub(crate) fn checkpoint_before(&mut self, step: &str) {
        self.signal();
        self.hear(step);
        kill_process(Pid::from_child(&self.process), Signal::STOP).unwrap();
    }

    /// Kills it for real, in the middle of its work.
    pub(crate) fn kill(mut self) {
        use std::os::unix::process::ExitStatusExt;
        self.process.kill().unwrap();
        let status = self.process.wait().unwrap();
        assert_eq!(status.signal(), Some(9), "it was to die in mid-run: {:?}", self.said);
    }

    /// Its last words, all of them, and its exit code.
    pub(crate) fn finish(mut self) -> (Vec<String>, Option<i32>) {
        self.said.extend(self.lines.by_ref().map(Result::unwrap));
        (std::mem::take(&mut self.said), self.process.wait().unwrap().code())
    }
}
