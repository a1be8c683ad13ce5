//! Stores made through the library, and the command run on them.

use std::path::{Path, PathBuf};

use assert_cmd::Command;
use serde_json::Value;
use standfast::{Job, Level, Protected};
use tempfile::TempDir;

/// A name that a terminal must not be given as it is.
pub(crate) const NASTY: &str = "a/b \u{202e}c";
/// Doubles in the region "field".
pub(crate) const FIELD: usize = 64 * 512;

/// A job "heat" with three checkpoints: 64 pages of noise, 32 zero pages, 16 equal pages.
/// Checkpoint 2 changes 4 pages, checkpoint 3 one more and removes "late".
pub(crate) struct Fixture {
    pub(crate) dir: TempDir,
    /// Contents of "field" in checkpoints 1, 2 and 3.
    pub(crate) fields: Vec<Vec<f64>>,
}

impl Fixture {
    pub(crate) fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let job = open(dir.path());
        let field = job.alloc::<f64>("field", FIELD).unwrap();
        let _zeros = job.alloc::<f64>("zeros", 32 * 512).unwrap();
        let same = job.alloc::<f64>(NASTY, 16 * 512).unwrap();
        let late = job.alloc::<u8>("late", 5000).unwrap();
        fill(&mut field.write(), 1);
        same.write().fill(1.5);
        late.write().fill(7);
        let mut fields = vec![checkpoint(&job, &field)];
        fill(&mut field.write()[8 * 512..12 * 512], 2);
        fields.push(checkpoint(&job, &field));
        field.write()[0] = -1.0;
        drop(late);
        fields.push(checkpoint(&job, &field));
        job.close().unwrap();
        Self { dir, fields }
    }

    /// The store of the job.
    pub(crate) fn store(&self) -> PathBuf {
        self.dir.path().join("heat")
    }

    /// Files below a directory of the store, sorted.
    pub(crate) fn files(&self, below: &str) -> Vec<PathBuf> {
        let mut found = Vec::new();
        collect(&self.store().join(below), &mut found);
        found
            .retain(|path| !path.ends_with("manifests/header") && !path.ends_with("copies/header"));
        found.sort();
        found
    }

    pub(crate) fn run(&self, args: &[&str]) -> Ran {
        run(self.dir.path(), args)
    }
}

pub(crate) fn open(dir: &Path) -> Job {
    // One encoder: blocks lie in the order of their slots, which tests of damage count on.
    let settings = [
        ("store", dir.to_str().unwrap()),
        ("job", "heat"),
        ("codec", "none"),
        ("lab.threads", "1"),
    ];
    Job::open(&settings).unwrap()
}

fn checkpoint(job: &Job, field: &Protected<f64>) -> Vec<f64> {
    let version = job.checkpoint(None).unwrap();
    job.wait(version, Level::Local).unwrap();
    field.read().to_vec()
}

fn fill(field: &mut [f64], seed: u64) {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    for value in field {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        *value = (state >> 11) as f64;
    }
}

fn collect(dir: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() { collect(&path, found) } else { found.push(path) }
    }
}

/// What a run of the command gave.
pub(crate) struct Ran {
    pub(crate) code: i32,
    pub(crate) out: String,
    pub(crate) err: String,
}

impl Ran {
    /// The JSON lines, each with a type.
    pub(crate) fn lines(&self) -> Vec<Value> {
        let lines = self.out.lines().map(|line| serde_json::from_str(line).unwrap());
        lines.inspect(|line: &Value| assert!(line["type"].is_string(), "{line}")).collect()
    }

    /// The JSON lines of one type.
    pub(crate) fn of(&self, kind: &str) -> Vec<Value> {
        self.lines().into_iter().filter(|line| line["type"] == kind).collect()
    }
}

pub(crate) fn command(store: &Path) -> Command {
    let mut command = Command::cargo_bin("standfast").unwrap();
    for (name, _) in std::env::vars().filter(|(name, _)| name.starts_with("STANDFAST_")) {
        command.env_remove(name);
    }
    command.env("TZ", "UTC").current_dir(store).arg("--store").arg(store);
    command
}

pub(crate) fn run(store: &Path, args: &[&str]) -> Ran {
    let output = command(store).args(args).output().unwrap();
    Ran {
        code: output.status.code().expect("it was not killed"),
        out: String::from_utf8(output.stdout).unwrap(),
        err: String::from_utf8(output.stderr).unwrap(),
    }
}

/// Text without what differs from run to run: dates, times, rates, ids, the store's place, and
/// the width of columns.
pub(crate) fn steady(text: &str, store: &Path) -> String {
    let text = text.replace(store.to_str().unwrap(), "STORE");
    text.lines().map(|line| steady_line(line) + "\n").collect()
}

fn steady_line(line: &str) -> String {
    let mut words: Vec<String> = Vec::new();
    for word in line.split_whitespace() {
        let (core, comma) = match word.strip_suffix(',') {
            Some(core) => (core, ","),
            None => (word, ""),
        };
        let is_hex = core.len() >= 16 && core.bytes().all(|b| b.is_ascii_hexdigit());
        let is_date = core.len() == 10 && core.as_bytes()[4] == b'-' && core.as_bytes()[7] == b'-';
        let is_clock = core.len() == 8 && core.as_bytes()[2] == b':' && core.as_bytes()[5] == b':';
        let last_is_number = words.last().is_some_and(|last: &String| last.parse::<f64>().is_ok());
        if is_hex {
            words.push(format!("ID{comma}"));
        } else if is_date {
            words.push("DATE".into());
        } else if is_clock {
            words.push(format!("CLOCK{comma}"));
        } else if last_is_number && (["ns", "ms", "s"].contains(&core) || core.ends_with("/s")) {
            words.pop();
            words.push(if core.ends_with("/s") { "RATE".into() } else { "TIME".into() });
        } else {
            words.push(word.to_owned());
        }
    }
    words.join(" ")
}
