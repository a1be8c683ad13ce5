//! `kill-ranks`: a job of several MPI processes is killed at random instants, again and again, and
//! every restart is checked bit by bit.

use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context, anyhow, bail};
use rustix::process::Pid;
use serde_json::json;
use standfast_testkit::command::{self, draws};

use crate::mpi::Launcher;
use crate::mpi::heard::{Heard, STEPS};

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
    let mut next = draws(seed);
    let mut seen = Seen::default();
    let mut acknowledged = 0;
    for number in 1..=kills + 1 {
        let mut life = start(launcher, ranks, dir.path())?;
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
            acknowledged = acknowledged.max(kill(&mut life, victim)?);
            seen.kills += 1;
        } else {
            kill(&mut life, None)?;
        }
    }
    Ok(seen)
}

fn start(launcher: &Launcher, ranks: usize, store: &Path) -> anyhow::Result<Heard> {
    let store = store.to_str().context("the store's name is text")?;
    let args = ["life", "--store", store, "--steps", &STEPS.to_string()].map(str::to_owned);
    Heard::start(launcher.command(ranks, &args)?)
}

/// Kills one rank, or all, and waits until nobody is left; returns the last acknowledged step.
fn kill(life: &mut Heard, victim: Option<usize>) -> anyhow::Result<u64> {
    let pids: Vec<Pid> = life.pids.iter().filter_map(|pid| Pid::from_raw(*pid)).collect();
    match victim.and_then(|at| pids.get(at)) {
        Some(pid) => command::kill(*pid),
        None => pids.iter().copied().for_each(command::kill),
    }
    life.end()?;
    for pid in pids {
        command::kill_and_wait(pid);
    }
    Ok(life.durable())
}
