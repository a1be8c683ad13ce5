//! `kill-ranks`: a job of several MPI processes is killed at random instants, again and again, and
//! every restart is checked bit by bit.

use std::fs::File;
use std::io::{BufRead, BufReader, Read, Seek};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use anyhow::{Context, anyhow, bail};
use rustix::process::{Pid, Signal, kill_process, kill_process_group, test_kill_process};
use serde_json::json;

use crate::mpi::Launcher;

/// Kill a job of several MPI ranks at random instants and check every restart
#[derive(clap::Args)]
pub(crate) struct Args {
    /// How many times
    #[arg(long, default_value_t = 50)]
    kills: u32,
    /// Ranks of the job
    #[arg(long, default_value_t = 8)]
    ranks: usize,
    /// Seed of the instants and victims
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// JSON lines instead of text
    #[arg(long)]
    json: bool,
}

/// What a campaign has seen.
#[derive(Debug, Default)]
pub(crate) struct Seen {
    pub(crate) kills: u32,
    pub(crate) restarts: u32,
    /// Restarts from something older than what was acknowledged, or with wrong bytes.
    pub(crate) wrong: u32,
    pub(crate) last_step: u64,
}

/// More steps than any life lasts.
const STEPS: u64 = 1_000_000;
/// No life takes this long to begin.
const PATIENCE: Duration = Duration::from_secs(120);

pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    let Some(launcher) = Launcher::find()? else { bail!("no mpicc is installed") };
    let seen = campaign(&launcher, args.ranks, args.kills, args.seed, |number, life| {
        if !args.json {
            println!("life {number}: {life}");
        }
    })?;
    let Seen { kills, restarts, wrong, last_step } = seen;
    match args.json {
        true => println!(
            "{}",
            json!({ "type": "kill-ranks", "ranks": args.ranks, "kills": kills,
                    "restarts": restarts, "wrong": wrong, "steps": last_step })
        ),
        false => println!(
            "{} ranks killed {kills} times: {restarts} restarts, {wrong} of them wrong; {last_step} steps",
            args.ranks
        ),
    }
    if wrong > 0 { bail!("{wrong} restarts were wrong") } else { Ok(()) }
}

/// Kills a job so many times, then lets it restart once more.
pub(crate) fn campaign(
    launcher: &Launcher,
    ranks: usize,
    kills: u32,
    seed: u64,
    mut told: impl FnMut(u32, &str),
) -> anyhow::Result<Seen> {
    let dir = tempfile::tempdir()?;
    let mut random = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut next = move |below: u64| {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        random % below
    };
    let mut seen = Seen::default();
    let mut acknowledged = 0;
    for number in 1..=kills + 1 {
        let mut life = Life::start(launcher, ranks, dir.path())?;
        let began = life.begin(ranks);
        if number == 1 {
            began.as_ref().map_err(|error| anyhow!("the job does not run at all: {error:#}"))?;
        }
        let text = match &began {
            Ok(step) => format!("begins after step {step}, {acknowledged} was acknowledged"),
            Err(error) => format!("{error:#}"),
        };
        told(number, &text);
        seen.restarts += u32::from(number > 1);
        match began {
            Ok(step) if step >= acknowledged => seen.last_step = step,
            _ => seen.wrong += 1,
        }
        if number <= kills {
            let delay = Duration::from_millis(20 + next(1500));
            acknowledged = acknowledged.max(life.live_until(Instant::now() + delay));
            // Sometimes one rank, sometimes all at once.
            let victim = (next(3) > 0).then(|| next(ranks as u64) as usize);
            acknowledged = acknowledged.max(life.kill(victim)?);
            seen.kills += 1;
        } else {
            life.kill(None)?;
        }
    }
    Ok(seen)
}

/// One run of the job, from its start to its violent end.
struct Life {
    process: Child,
    lines: Receiver<String>,
    /// Its standard error.
    said: File,
    pids: Vec<Pid>,
    durable: u64,
}

impl Life {
    fn start(launcher: &Launcher, ranks: usize, store: &Path) -> anyhow::Result<Self> {
        let store = store.to_str().context("the store's name is text")?;
        let args = ["life", "--store", store, "--steps", &STEPS.to_string()].map(str::to_owned);
        let mut command = launcher.command(ranks, &args)?;
        // What a killed job says of its end is of interest only if it does not begin again.
        let mut said = tempfile::tempfile()?;
        command.stdout(Stdio::piped()).stderr(said.try_clone()?).process_group(0);
        let mut process = command.spawn()?;
        let stdout = process.stdout.take().expect("its output is a pipe");
        let (sender, lines) = channel();
        std::thread::spawn(move || {
            let lines = BufReader::new(stdout).lines().map_while(Result::ok);
            let _ = lines.map(|line| sender.send(line).is_err()).find(|gone| *gone);
        });
        said.rewind()?;
        Ok(Self { process, lines, said, pids: Vec::new(), durable: 0 })
    }

    /// Waits until all ranks have restarted; the step they came back to.
    fn begin(&mut self, ranks: usize) -> anyhow::Result<u64> {
        let until = Instant::now() + PATIENCE;
        loop {
            let line = match self.lines.recv_timeout(until - Instant::now()) {
                Ok(line) => line,
                Err(RecvTimeoutError::Timeout) => bail!("it does not begin"),
                Err(RecvTimeoutError::Disconnected) => {
                    let mut said = String::new();
                    self.said.rewind()?;
                    self.said.read_to_string(&mut said)?;
                    bail!("it ended before it began: {said}");
                }
            };
            if let Some(step) = line.strip_prefix("begins ") {
                if self.pids.len() != ranks {
                    bail!("{} ranks began, not {ranks}", self.pids.len());
                }
                return Ok(step.parse()?);
            }
            self.hear(&line);
        }
    }

    fn hear(&mut self, line: &str) {
        if let Some(step) = line.strip_prefix("durable ").and_then(|step| step.parse().ok()) {
            self.durable = step;
        }
        if let Some(pid) = line.strip_prefix("pid ").and_then(|pid| pid.parse().ok()) {
            self.pids.extend(Pid::from_raw(pid));
        }
    }

    /// Lets it live; returns the last step it acknowledged.
    fn live_until(&mut self, end: Instant) -> u64 {
        while let Some(left) = end.checked_duration_since(Instant::now()) {
            match self.lines.recv_timeout(left) {
                Ok(line) => self.hear(&line),
                Err(_) => break,
            }
        }
        self.durable
    }

    /// Kills one rank, or all and their launcher, and waits until nobody is left.
    fn kill(&mut self, victim: Option<usize>) -> anyhow::Result<u64> {
        match victim.and_then(|at| self.pids.get(at)) {
            Some(pid) => end(*pid),
            None => self.pids.iter().copied().for_each(end),
        }
        let deadline = Instant::now() + Duration::from_secs(20);
        while self.process.try_wait()?.is_none() && Instant::now() < deadline {
            std::thread::sleep(Duration::from_millis(10));
        }
        let group = Pid::from_raw(self.process.id() as i32).context("its number")?;
        // Most are gone already.
        let _ = kill_process_group(group, Signal::KILL);
        self.process.wait()?;
        for pid in &self.pids {
            end(*pid);
            while test_kill_process(*pid).is_ok() {
                std::thread::sleep(Duration::from_millis(2));
            }
        }
        while let Ok(line) = self.lines.try_recv() {
            self.hear(&line);
        }
        Ok(self.durable)
    }
}

/// Kills a process that may be gone already.
fn end(pid: Pid) {
    let _ = kill_process(pid, Signal::KILL);
}
