//! `hosts`: an MPI job over several hosts, each with a store of its own; hosts die with their disks,
//! and the job goes on with the survivors and a replacement.
//!
//! ```text
//! namespaces as hosts ([`network`]) <- mpirun: a daemon on each, messages over TCP
//! life: ring = auto, `durable N` = on the ring -> a host is killed, its disk removed
//!       -> a new, empty host takes its place -> the ring brings back what was lost -> checked
//! ```

mod network;

use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{anyhow, bail};
use serde_json::json;

use standfast_testkit::command::draws;

use crate::kill::Seen;
use crate::mpi::Launcher;
use crate::mpi::heard::{Heard, STEPS};
use network::Network;

/// Kill hosts of an MPI job with their disks and check every restart; needs root
#[derive(clap::Args)]
pub(crate) struct Args {
    /// How many times
    #[arg(long, default_value_t = 10)]
    losses: u32,
    /// Hosts of the job
    #[arg(long, default_value_t = 4)]
    hosts: usize,
    /// Hosts that are lost at a time
    #[arg(long, default_value_t = 1)]
    at_once: usize,
    /// Ranks on each host
    #[arg(long, default_value_t = 2)]
    ranks: usize,
    /// Members of a group on the ring
    #[arg(long, default_value_t = 2)]
    group: usize,
    /// Seed of the instants and victims
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// JSON lines instead of text
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    if args.at_once > args.hosts {
        bail!("there are only {} hosts", args.hosts);
    }
    let launcher = Launcher::find()?.filter(|launcher| launcher.name() == "mpirun.openmpi");
    let obstacle = match &launcher {
        None => Some("Open MPI is not installed".to_owned()),
        Some(_) => network::obstacle(),
    };
    let (Some(launcher), None) = (launcher, &obstacle) else {
        let why = obstacle.unwrap_or_default();
        match args.json {
            true => println!("{}", json!({ "type": "skipped", "why": why })),
            false => println!("skipped: {why}"),
        }
        return Ok(());
    };
    let Seen { kills, restarts, wrong, last_step } = campaign(&launcher, args)?;
    match args.json {
        true => println!(
            "{}",
            json!({ "type": "hosts", "hosts": args.hosts, "ranks": args.hosts * args.ranks,
                    "lost": kills, "restarts": restarts, "wrong": wrong, "steps": last_step })
        ),
        false => println!(
            "{} hosts of {} ranks, {kills} lost: {restarts} restarts, {wrong} of them wrong; {last_step} steps",
            args.hosts, args.ranks
        ),
    }
    if wrong > 0 { bail!("{wrong} restarts were wrong") } else { Ok(()) }
}

fn campaign(launcher: &Launcher, args: &Args) -> anyhow::Result<Seen> {
    let mut network = Network::new(args.hosts)?;
    let mut next = draws(args.seed);
    let mut seen = Seen::default();
    let mut acknowledged = 0;
    for number in 1..=args.losses + 1 {
        let mut life = start(launcher, args, &network)?;
        let began = life.begin(args.hosts * args.ranks);
        if number == 1 {
            began.as_ref().map_err(|error| anyhow!("the job does not run at all: {error:#}"))?;
        }
        if !args.json {
            match &began {
                Ok(step) => println!(
                    "life {number} on {}: begins after step {step}, {acknowledged} was acknowledged",
                    names(&network)
                ),
                Err(error) => println!("life {number} on {}: {error:#}", names(&network)),
            }
        }
        seen.restarts += u32::from(number > 1);
        match began {
            Ok(step) if step >= acknowledged => seen.last_step = step,
            _ => seen.wrong += 1,
        }
        // Something must be on the ring before the first loss.
        let mut end = Instant::now() + Duration::from_millis(200 + next(2000));
        while number == 1 && life.live_until(end) == 0 {
            end = Instant::now() + Duration::from_millis(100);
        }
        acknowledged = acknowledged.max(life.live_until(end));
        if number > args.losses {
            break;
        }
        let lost = victims(args.hosts, args.at_once, &mut next);
        lost.iter().try_for_each(|at| network.kill(*at))?;
        life.end()?;
        acknowledged = acknowledged.max(life.durable());
        seen.kills += lost.len() as u32;
        lost.iter().try_for_each(|at| network.replace(*at))?;
        network.quiet()?;
    }
    Ok(seen)
}

/// Different hosts.
fn victims(hosts: usize, count: usize, next: &mut impl FnMut(u64) -> u64) -> Vec<usize> {
    let mut all: Vec<usize> = (0..hosts).collect();
    (0..count).map(|_| all.remove(next(all.len() as u64) as usize)).collect()
}

fn names(network: &Network) -> String {
    let names: Vec<&str> = network.hosts.iter().map(|host| host.name.as_str()).collect();
    names.join(" ")
}

/// The job over all hosts, with a store on the disk of each.
fn start(launcher: &Launcher, args: &Args, network: &Network) -> anyhow::Result<Heard> {
    let mut command: Command = network.on_switch(launcher.name());
    let slots: Vec<String> =
        network.hosts.iter().map(|host| format!("{}:{}", host.address, args.ranks)).collect();
    command.args(["--host", &slots.join(","), "--map-by", "slot"]);
    let (agent, scratch) = (network.agent(), network.scratch());
    let settings = [
        ("plm", "rsh"),
        ("plm_rsh_agent", &*agent.to_string_lossy()),
        ("plm_rsh_no_tree_spawn", "1"),
        ("orte_tmpdir_base", &*scratch.to_string_lossy()),
        ("pml", "ob1"),
        ("btl", "tcp,self"),
        ("btl_tcp_if_include", network::NETWORK),
        ("oob_tcp_if_include", network::NETWORK),
    ];
    for (name, value) in settings {
        command.args(["--mca", name, value]);
    }
    let group = args.group.to_string();
    for (name, value) in [("STANDFAST_RING", "auto"), ("STANDFAST_LAB_RING_GROUP", group.as_str())]
    {
        command.env(name, value).args(["-x", name]);
    }
    let store = format!("{}/{{node}}", network.disk().display());
    let args_of_ranks =
        ["life", "--ring", "--mib", "1", "--store", &store, "--steps", &STEPS.to_string()];
    let ranks = args.hosts * args.ranks;
    Heard::start(launcher.command_by(command, ranks, &args_of_ranks.map(str::to_owned))?)
}
