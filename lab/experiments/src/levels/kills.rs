//! `levels-kills`: program, agent (or drain) and S3 server killed at random instants, again and again.
//!
//! After every kill what the global level offers is read back page by page. At the end everything is
//! left alone, and the newest checkpoint must arrive. Now and then the node loses its store with the
//! program, and the job must come back from global storage.

use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicU64;
use std::time::{Duration, Instant};

use anyhow::{Context, bail, ensure};
use serde_json::json;
use standfast_restart::{Inventory, check_segment, read_image};
use standfast_store::Options;
use standfast_testkit::S3Server;
use standfast_testkit::command::draws;

pub(crate) use super::drainer::By;
use super::drainer::Drainer;
use super::process::{Process, words};
use super::program::{JOB, Target, Told};

/// Kill program, agent and S3 server at random instants, and check what global storage offers
#[derive(clap::Args)]
pub(crate) struct Args {
    /// How many times
    #[arg(long, default_value_t = 20)]
    kills: u32,
    /// Seed of the instants and victims
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Who drains
    #[arg(long, value_enum, default_value_t = By::Agent)]
    by: By,
    /// JSON lines instead of text
    #[arg(long)]
    json: bool,
}

/// What a campaign has seen.
#[derive(Debug, Default, serde::Serialize)]
pub(crate) struct Seen {
    pub(crate) kills: u32,
    drains: u32,
    programs: u32,
    servers: u32,
    nodes: u32,
    /// Times that the program came back, and from a wiped node.
    restarts: u32,
    /// Restarts with wrong bytes, or older than what was durable on the node.
    pub(crate) wrong: u32,
    /// Checkpoints that global storage offered and that were not whole.
    pub(crate) broken: u64,
    /// Times that the newest in global storage was another than at the look before.
    arrived: u64,
    /// Whether the newest checkpoint arrived in the end.
    pub(crate) complete: bool,
}

/// The last arrival may take several of a drain's longest pauses, on a machine with other things to do.
const PATIENCE: Duration = Duration::from_secs(300);
const INSTANT_MS_MAX: u64 = 700;

pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    let seen = campaign(args.kills, args.seed, args.by)?
        .context("no S3 server is installed: scripts/deps.sh test")?;
    match args.json {
        true => {
            let by = format!("{:?}", args.by).to_lowercase();
            let told = json!({ "type": "levels-kills", "by": by, "seed": args.seed, "seen": seen });
            println!("{told}");
        }
        false => println!("{seen:?}"),
    }
    match seen.wrong > 0 || seen.broken > 0 || !seen.complete {
        true => bail!("the global level does not hold what it promises"),
        false => Ok(()),
    }
}

/// All parts of a running system.
struct Parts {
    dir: PathBuf,
    server: S3Server,
    program: Option<Process>,
    drain: Drainer,
    /// Newest version that was durable on the node.
    durable: u64,
    /// Newest version that global storage offered last.
    offered: u64,
    seen: Seen,
}

/// Kills so many times; `None` where no S3 server is installed.
pub(crate) fn campaign(kills: u32, seed: u64, by: By) -> anyhow::Result<Option<Seen>> {
    let home = tempfile::tempdir()?;
    let Some(server) = S3Server::start(&home.path().join("server")) else { return Ok(None) };
    let mut next = draws(seed);
    let dir = home.path().to_owned();
    let seen = Seen::default();
    let drain = Drainer::new(by, &dir);
    let mut parts = Parts { dir, server, program: None, drain, durable: 0, offered: 0, seen };
    for _ in 0..kills {
        parts.start_missing()?;
        std::thread::sleep(Duration::from_millis(next(INSTANT_MS_MAX)));
        parts.kill(next(8))?;
        parts.verify()?;
    }
    parts.finish()?;
    Ok(Some(parts.seen))
}

impl Parts {
    fn local(&self) -> PathBuf {
        self.dir.join("local")
    }

    fn start_missing(&mut self) -> anyhow::Result<()> {
        let (store, target) = (self.local(), self.server.url("campaign"));
        let environment = self.server.environment();
        self.drain.start_missing(&store, &target, &environment)?;
        if self.program.as_mut().is_none_or(Process::has_ended) {
            // One that ended by itself could not come back: its server was down.
            self.take_program();
            let mut own = words(&[&"levels-program", &"--restart", &"--store", &store.display()]);
            own.extend(words(&[&"--global", &target, &"--mib", &2, &"--threads", &1]));
            own.extend(words(&[&"--steps", &1_000_000, &"--every", &1]));
            own.extend(self.drain.words());
            self.program = Some(Process::start(&own, &environment)?);
        }
        Ok(())
    }

    fn kill(&mut self, victim: u64) -> anyhow::Result<()> {
        self.seen.kills += 1;
        match victim {
            0..3 => {
                self.seen.drains += 1;
                self.drain.kill()?;
            }
            3..5 => {
                self.seen.programs += 1;
                self.take_program();
            }
            5..7 => {
                self.seen.servers += 1;
                self.server.kill();
                self.server.start_again();
            }
            _ => {
                self.take_program();
                self.drain.kill()?;
                let store = self.local();
                // What has not arrived is lost with the node, and only that.
                if store.exists() && self.verify()? > 0 {
                    self.seen.nodes += 1;
                    self.drain.lose()?;
                    std::fs::remove_dir_all(store)?;
                    self.durable = 0;
                }
            }
        }
        Ok(())
    }

    fn take_program(&mut self) {
        for line in self.program.take().map_or(Vec::new(), Process::kill) {
            match line {
                Told::Durable { version } => self.durable = self.durable.max(version),
                Told::Back { version, right } => {
                    self.seen.restarts += 1;
                    self.seen.wrong += u32::from(!right || version < self.durable);
                }
                _ => {}
            }
        }
    }

    /// Reads back what global storage offers; returns the newest.
    fn verify(&mut self) -> anyhow::Result<u64> {
        let target = self.server.url("campaign");
        let own = words(&[&"levels-verify", &"--target", &target]);
        let told = Process::start(&own, &self.server.environment())?.wait()?;
        let verified = told.iter().find_map(|line| match line {
            Told::Verified { newest, broken } => Some((*newest, *broken)),
            _ => None,
        });
        let (newest, broken) = verified.context("the verifier tells nothing")?;
        self.seen.broken += broken;
        self.seen.arrived += u64::from(std::mem::replace(&mut self.offered, newest) != newest);
        Ok(newest)
    }

    /// Leaves everything alone until the newest checkpoint has arrived.
    fn finish(&mut self) -> anyhow::Result<()> {
        // A program that has lost its agent writes by itself; the next life has one again.
        self.take_program();
        let end = Instant::now() + PATIENCE;
        loop {
            self.start_missing()?;
            if self.drain.has_program() {
                break;
            }
            ensure!(Instant::now() < end, "the program does not come back");
            std::thread::sleep(Duration::from_millis(50));
        }
        std::thread::sleep(Duration::from_secs(1));
        self.take_program();
        let end = Instant::now() + PATIENCE;
        while !self.seen.complete && Instant::now() < end {
            // What was handed to the agent may become a checkpoint after the program's end.
            self.seen.complete = self.verify()? == newest_of(&self.local())?;
            std::thread::sleep(Duration::from_millis(200));
        }
        self.drain.kill()?;
        Ok(())
    }
}

fn newest_of(store: &Path) -> anyhow::Result<u64> {
    let store = standfast_store::open(&format!("{}/{JOB}", store.display()), &Options::default())?;
    Ok(Inventory::read(&*store)?.checkpoints.first().map_or(0, |manifest| manifest.version.0))
}

/// Be the verifier of an experiment
#[derive(clap::Args)]
#[command(hide = true)]
pub(crate) struct VerifyArgs {
    #[command(flatten)]
    target: Target,
}

/// Reads back every page of every checkpoint on offer.
pub(crate) fn verify(args: &VerifyArgs) -> anyhow::Result<()> {
    let store = args.target.open()?;
    let inventory = match Inventory::read(&*store) {
        Ok(inventory) => inventory,
        Err(standfast_restart::Unreadable::NoStore(_)) => {
            Told::Verified { newest: 0, broken: 0 }.tell();
            return Ok(());
        }
        Err(error) => return Err(error.into()),
    };
    let mut broken = inventory.damaged.len() as u64;
    for manifest in &inventory.checkpoints {
        let findings = AtomicU64::new(0);
        let found = |why: &dyn std::fmt::Display| {
            eprintln!("checkpoint {}: {why}", manifest.version);
            findings.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        };
        for segment in &manifest.segments {
            match standfast_write::SegmentReader::open(&*store, inventory.header.id, segment) {
                Ok(reader) => {
                    let done = AtomicU64::new(0);
                    check_segment(&reader, &inventory.header, 2, &done, |error| found(&error));
                }
                Err(error) => found(&error),
            }
        }
        for image in &manifest.images {
            if let Err(error) = read_image(&*store, manifest, image.rank) {
                found(&error);
            }
        }
        // One that was pruned while it was read is no longer on offer.
        let gone = || -> anyhow::Result<bool> {
            let now = Inventory::read(&*store)?;
            Ok(!now.checkpoints.iter().any(|own| own.attempt == manifest.attempt))
        };
        if findings.into_inner() > 0 && !gone()? {
            broken += 1;
        }
    }
    let newest = inventory.checkpoints.first().map_or(0, |manifest| manifest.version.0);
    Told::Verified { newest, broken }.tell();
    Ok(())
}
