//! What one rank does; started by the experiment, not by people.

use std::fs::File;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

use anyhow::{Context, bail};
use serde::{Deserialize, Serialize};
use standfast::config;
use standfast::{Job, Level, Protected};
use standfast_agent::Place;
use standfast_comm::Comm;

use super::memory;
use super::pattern::Pattern;
use super::way::{self, Coat, Means};

/// One rank of the comparison.
#[derive(clap::Args)]
pub(crate) struct Args {
    verb: Verb,
    #[arg(long)]
    way: String,
    #[arg(long)]
    pattern: Pattern,
    #[arg(long)]
    mib: usize,
    #[arg(long)]
    store: PathBuf,
    /// Where the agent's socket may be
    #[arg(long)]
    meeting: PathBuf,
    /// Where the results go
    #[arg(long)]
    told: PathBuf,
}

#[derive(Clone, Copy, clap::ValueEnum)]
enum Verb {
    Save,
    Load,
}

/// What a rank tells of saving.
#[derive(Serialize, Deserialize)]
pub(super) struct Saved {
    pub(super) memcpy_s: f64,
    pub(super) savings: Vec<Saving>,
}

/// What a rank tells of one checkpoint.
#[derive(Serialize, Deserialize)]
pub(super) struct Saving {
    pub(super) blocked_s: f64,
    pub(super) durable_s: f64,
    /// Of all ranks together, as the first one counts them.
    pub(super) stored_bytes: u64,
    pub(super) memory_bytes: u64,
}

/// What a rank tells of loading.
#[derive(Serialize, Deserialize)]
pub(super) struct Loaded {
    pub(super) restart_s: f64,
}

pub(crate) fn run(args: &Args, comm: &dyn Comm) -> anyhow::Result<()> {
    let way = way::find(&args.way).with_context(|| format!("no way is called {:?}", args.way))?;
    let numbers = args.mib << 17;
    match &way.means {
        Means::File(coat) => {
            let files = Files { dir: &args.store, rank: comm.rank(), coat: *coat };
            let mut memory = vec![0.0; numbers];
            match args.verb {
                Verb::Save => save(args, comm, &mut Plain { files, memory: &mut memory }),
                Verb::Load => load(args, comm, &mut Plain { files, memory: &mut memory }),
            }
        }
        Means::Job(settings) => {
            let loaded = config::Loaded::load(&pairs(args, settings)?)?;
            let job = Job::open_comm(loaded, comm)?;
            let memory = job.alloc::<f64>("memory", numbers)?;
            let mut ours = Ours { job, memory, place: agent_place(args)? };
            match args.verb {
                Verb::Save => save(args, comm, &mut ours)?,
                Verb::Load => load(args, comm, &mut ours)?,
            }
            drop(ours.memory);
            Ok(ours.job.close()?)
        }
    }
}

fn agent_dir(args: &Args) -> PathBuf {
    args.meeting.join("agent")
}

fn agent_place(args: &Args) -> anyhow::Result<Place> {
    Ok(Place::open(Some(&agent_dir(args)))?)
}

fn pairs(args: &Args, settings: &[(&str, &str)]) -> anyhow::Result<Vec<(String, String)>> {
    let mut pairs: Vec<(String, String)> =
        settings.iter().map(|(name, text)| ((*name).into(), (*text).into())).collect();
    for (name, text) in [
        ("store", args.store.display().to_string()),
        ("job", "compare".to_owned()),
        ("lab.agent_dir", agent_dir(args).display().to_string()),
        ("lab.agent_command", std::env::current_exe()?.display().to_string()),
    ] {
        pairs.push((name.into(), text));
    }
    Ok(pairs)
}

/// A way, as the ranks go it.
trait Going {
    fn memory(&mut self, see: &mut dyn FnMut(&mut [f64]));
    /// Saves; calls back when the program may go on, and returns when all is durable.
    fn save(&mut self, goes_on: &mut dyn FnMut()) -> anyhow::Result<()>;
    fn load(&mut self) -> anyhow::Result<()>;
    /// Whether a checkpoint takes the place of the one before.
    fn replaces(&self) -> bool;
    /// The agent's process.
    fn agent(&self) -> Option<i32>;
}

fn save(args: &Args, comm: &dyn Comm, going: &mut (impl Going + Sync)) -> anyhow::Result<()> {
    let rank = comm.rank();
    going.memory(&mut |memory| args.pattern.fill(memory, rank));
    let mut memcpy_s = f64::INFINITY;
    going.memory(&mut |memory| memcpy_s = memcpy(comm, memory));
    let mut savings = Vec::new();
    let mut before = 0;
    for step in 0..args.pattern.steps() {
        if step > 0 {
            going.memory(&mut |memory| args.pattern.change(memory, step));
        }
        comm.barrier()?;
        let agent = going.agent().filter(|_| rank == 0);
        let began = Instant::now();
        let mut blocked_s = 0.0;
        let (saved, memory_bytes) = memory::watched(
            || agent,
            || going.save(&mut || blocked_s = began.elapsed().as_secs_f64()),
        );
        saved?;
        let durable_s = began.elapsed().as_secs_f64();
        comm.barrier()?;
        let after = disk_bytes(&args.store)?;
        let stored_bytes = if going.replaces() { after } else { after.saturating_sub(before) };
        savings.push(Saving { blocked_s, durable_s, stored_bytes, memory_bytes });
        before = after;
        comm.barrier()?;
    }
    tell(args, rank, &Saved { memcpy_s, savings })
}

fn load(args: &Args, comm: &dyn Comm, going: &mut (impl Going + Sync)) -> anyhow::Result<()> {
    let rank = comm.rank();
    // Memory that a program restarts into has been touched by its own beginning.
    going.memory(&mut |memory| memory.fill(1.0));
    if rank == 0 {
        forget(&args.store)?;
    }
    comm.barrier()?;
    let began = Instant::now();
    going.load()?;
    let restart_s = began.elapsed().as_secs_f64();
    let mut expected = vec![0.0; args.mib << 17];
    args.pattern.fill(&mut expected, rank);
    (1..args.pattern.steps()).for_each(|step| args.pattern.change(&mut expected, step));
    let mut same = false;
    going.memory(&mut |memory| same = memory[..] == expected[..]);
    if !same {
        bail!("rank {rank}: {} brought back something else", args.way);
    }
    tell(args, rank, &Loaded { restart_s })
}

fn tell(args: &Args, rank: usize, told: &impl Serialize) -> anyhow::Result<()> {
    Ok(std::fs::write(args.told.join(rank.to_string()), serde_json::to_vec(told)?)?)
}

/// Copies memory on all ranks at once, the best of three.
fn memcpy(comm: &dyn Comm, memory: &[f64]) -> f64 {
    let mut copy = vec![1.0; memory.len()];
    let once = |_| {
        // A rank that fails here fails in the checkpoint as well.
        let _ = comm.barrier();
        let began = Instant::now();
        copy.copy_from_slice(memory);
        std::hint::black_box(&copy);
        began.elapsed().as_secs_f64()
    };
    (0..3).map(once).fold(f64::INFINITY, f64::min)
}

/// Bytes of all files below a directory.
fn disk_bytes(dir: &Path) -> io::Result<u64> {
    let mut bytes = 0;
    for entry in std::fs::read_dir(dir)? {
        let entry = entry?;
        let about = entry.metadata()?;
        bytes += if about.is_dir() { disk_bytes(&entry.path())? } else { about.len() };
    }
    Ok(bytes)
}

/// Empties the page cache of all files below a directory.
fn forget(dir: &Path) -> io::Result<()> {
    for entry in std::fs::read_dir(dir)? {
        let path = entry?.path();
        if path.is_dir() {
            forget(&path)?;
        } else {
            let file = File::open(&path)?;
            rustix::fs::fadvise(&file, 0, None, rustix::fs::Advice::DontNeed)?;
        }
    }
    Ok(())
}

struct Ours {
    job: Job,
    memory: Protected<f64>,
    place: Place,
}

impl Going for Ours {
    fn memory(&mut self, see: &mut dyn FnMut(&mut [f64])) {
        see(&mut self.memory.write());
    }

    fn save(&mut self, goes_on: &mut dyn FnMut()) -> anyhow::Result<()> {
        let version = self.job.checkpoint(None)?;
        goes_on();
        self.job.wait(version, Level::Local)?;
        let notes = self.job.report(version)?.notes;
        match notes.first() {
            Some(note) => bail!("it was not done as asked for: {note}"),
            None => Ok(()),
        }
    }

    fn load(&mut self) -> anyhow::Result<()> {
        self.job.restart()?.context("there is no checkpoint")?;
        Ok(())
    }

    fn replaces(&self) -> bool {
        false
    }

    fn agent(&self) -> Option<i32> {
        standfast_agent::status(&self.place).ok().map(|status| status.pid as i32)
    }
}

struct Plain<'a> {
    files: Files<'a>,
    memory: &'a mut Vec<f64>,
}

impl Going for Plain<'_> {
    fn memory(&mut self, see: &mut dyn FnMut(&mut [f64])) {
        see(self.memory);
    }

    fn save(&mut self, goes_on: &mut dyn FnMut()) -> anyhow::Result<()> {
        self.files.save(bytes_of(self.memory))?;
        goes_on();
        Ok(())
    }

    fn load(&mut self) -> anyhow::Result<()> {
        self.files.load(bytes_of_mut(self.memory))
    }

    fn replaces(&self) -> bool {
        true
    }

    fn agent(&self) -> Option<i32> {
        None
    }
}

/// A rank's file: written beside the old one, synced, renamed.
#[derive(Clone, Copy)]
struct Files<'a> {
    dir: &'a Path,
    rank: usize,
    coat: Coat,
}

/// A plain program writes and reads in pieces of this size.
const PIECE: usize = 8 << 20;

impl Files<'_> {
    fn path(&self) -> PathBuf {
        self.dir.join(format!("rank-{}", self.rank))
    }

    fn save(&self, memory: &[u8]) -> anyhow::Result<()> {
        let part = self.path().with_extension("part");
        let file = File::create(&part)?;
        match self.coat {
            Coat::Bare => memory.chunks(PIECE).try_for_each(|piece| (&file).write_all(piece))?,
            Coat::Gzip => {
                let mut gzip = Command::new("gzip")
                    .args(["-1", "-c"])
                    .stdin(Stdio::piped())
                    .stdout(file.try_clone()?)
                    .spawn()
                    .context("starting gzip")?;
                gzip.stdin.take().context("its input is a pipe")?.write_all(memory)?;
                if !gzip.wait()?.success() {
                    bail!("gzip failed");
                }
            }
            Coat::Zstd => zstd::stream::copy_encode(memory, &file, 3)?,
        }
        file.sync_all()?;
        std::fs::rename(&part, self.path())?;
        File::open(self.dir)?.sync_all()?;
        Ok(())
    }

    fn load(&self, memory: &mut [u8]) -> anyhow::Result<()> {
        let mut file = File::open(self.path())?;
        match self.coat {
            Coat::Bare => {
                memory.chunks_mut(PIECE).try_for_each(|piece| file.read_exact(piece))?;
            }
            Coat::Gzip => {
                let mut gzip = Command::new("gzip")
                    .args(["-d", "-c"])
                    .stdin(file)
                    .stdout(Stdio::piped())
                    .spawn()
                    .context("starting gzip")?;
                gzip.stdout.take().context("its output is a pipe")?.read_exact(memory)?;
                gzip.wait()?;
            }
            Coat::Zstd => zstd::stream::Decoder::new(file)?.read_exact(memory)?,
        }
        Ok(())
    }
}

fn bytes_of(numbers: &[f64]) -> &[u8] {
    // SAFETY: numbers are bytes, eight each, and any of them may be looked at.
    unsafe { std::slice::from_raw_parts(numbers.as_ptr().cast(), size_of_val(numbers)) }
}

fn bytes_of_mut(numbers: &mut [f64]) -> &mut [u8] {
    // SAFETY: as above, borrowed exclusively, and every pattern of bytes is a number.
    unsafe { std::slice::from_raw_parts_mut(numbers.as_mut_ptr().cast(), size_of_val(numbers)) }
}
