//! The program of the experiments: it computes in place on several threads, takes checkpoints after
//! so many steps, and, if it has to, carries some of them to global storage by itself.
//!
//! Its state is a field of rounded numbers and a part that looks like noise, as simulations have:
//! what compresses well and what does not.

use std::io::Write;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::{Instant, SystemTime};

use anyhow::Context;
use serde::{Deserialize, Serialize};
use standfast::{Job, Level, Version};
use standfast_drain::{Drain, Encoding, Flow, Priority, Progress, Retention};
use standfast_restart::Inventory;
use standfast_store::{Options, Store};

use super::slow::Slow;

/// The job's name in all experiments.
pub(crate) const JOB: &str = "levels";

/// Be the program of an experiment
#[derive(clap::Args)]
#[command(hide = true)]
pub(crate) struct Args {
    /// Where the job's store is
    #[arg(long)]
    store: String,
    /// Global storage that a restart may use
    #[arg(long, default_value = "")]
    global: String,
    /// MiB of state
    #[arg(long)]
    mib: usize,
    /// Steps; each writes the whole state
    #[arg(long)]
    steps: u64,
    /// Steps between checkpoints; 0: none are taken
    #[arg(long)]
    every: u64,
    /// Threads that compute
    #[arg(long)]
    threads: usize,
    /// Carry one of so many checkpoints to --target, while the program waits; 0: none
    #[arg(long, default_value_t = 0)]
    carry: u64,
    #[command(flatten)]
    target: Target,
    /// Write through the agent of this directory, which drains to --global
    #[arg(long)]
    agent: Option<PathBuf>,
    /// Begin where the newest checkpoint was, and check every byte of it
    #[arg(long)]
    restart: bool,
}

/// Global storage behind a link.
#[derive(clap::Args, Clone)]
pub(crate) struct Target {
    /// Directory or URL
    #[arg(long)]
    pub(crate) target: Option<String>,
    /// Rate of the link to it, bytes per second; 0: as it is
    #[arg(long, default_value_t = 0.0)]
    pub(crate) rate: f64,
    /// Codec on the way
    #[arg(long, default_value = "zstd:1")]
    pub(crate) codec: String,
}

impl Target {
    /// Opens it.
    pub(crate) fn open(&self) -> anyhow::Result<Arc<dyn Store>> {
        let place = self.target.as_deref().context("--target")?;
        let store = standfast_store::open(&format!("{place}/{JOB}"), &Options::default())?;
        Ok(match self.rate {
            0.0 => store,
            rate => Arc::new(Slow::new(store, rate)),
        })
    }

    /// How blocks are compressed on the way.
    pub(crate) fn encoding(&self, threads: usize) -> anyhow::Result<Encoding> {
        Ok(Encoding { codec: self.codec.parse()?, threads })
    }
}

/// What processes of an experiment tell, a line each.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "kebab-case")]
pub(crate) enum Told {
    /// A checkpoint was taken: its version and when.
    Taken { version: u64, at_s: f64 },
    /// It is durable on the node.
    Durable { version: u64 },
    /// It has arrived in global storage.
    Arrived { version: u64, at_s: f64 },
    /// The steps are done: how long they took, and what of that was waiting for global storage.
    Done { seconds: f64, carrying_s: f64 },
    /// What global storage offers: the newest version, and how many are not whole.
    Verified { newest: u64, broken: u64 },
    /// It came back to this checkpoint; `right`: with the right bytes.
    Back { version: u64, right: bool },
}

impl Told {
    pub(crate) fn tell(&self) {
        let mut out = std::io::stdout().lock();
        // Nobody may be listening any more.
        let _ = writeln!(out, "{}", serde_json::to_string(self).expect("plain data"));
        let _ = out.flush();
    }
}

/// Seconds since 1970.
pub(crate) fn now_s() -> f64 {
    SystemTime::UNIX_EPOCH.elapsed().unwrap_or_default().as_secs_f64()
}

/// The state after a step: known to whoever knows the step.
pub(crate) struct State {
    words: Vec<f64>,
}

/// Of so many words one is noise.
const NOISE: usize = 8;

impl State {
    fn new(mib: usize) -> Self {
        Self { words: vec![0.0; (mib << 20) / 8] }
    }

    /// Brings every word to a step, on several threads.
    fn step(&mut self, step: u64, threads: usize) {
        let part = self.words.len().div_ceil(threads.max(1));
        std::thread::scope(|scope| {
            for (number, words) in self.words.chunks_mut(part).enumerate() {
                scope.spawn(move || advance(words, number * part, step));
            }
        });
    }

    fn is_at(&self, step: u64) -> bool {
        let mut expected = vec![0.0; self.words.len()];
        advance(&mut expected, 0, step);
        expected.iter().zip(&self.words).all(|(a, b)| a.to_bits() == b.to_bits())
    }
}

fn advance(words: &mut [f64], first: usize, step: u64) {
    let time = step as f64 * 1e-3;
    for (at, word) in words.iter_mut().enumerate() {
        let place = first + at;
        *word = match place % (512 * NOISE) < 512 {
            true => {
                let mut bits = (place as u64 ^ step << 40).wrapping_mul(0x9e37_79b9_7f4a_7c15);
                bits ^= bits >> 29;
                f64::from_bits(bits.wrapping_mul(0xbf58_476d_1ce4_e5b9) >> 2)
            }
            false => {
                let x = place as f64 * 1e-5;
                // As many digits as a measurement has.
                ((x + time).sin() * (1.0 + 0.1 * (3.0 * x).cos()) * 4096.0).round() / 4096.0
            }
        };
    }
}

pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    let agent = args.agent.as_ref().map_or(String::new(), |dir| dir.display().to_string());
    let exe = std::env::current_exe()?.display().to_string();
    let mut settings = vec![
        ("store", args.store.as_str()),
        ("job", JOB),
        ("global", if args.global.is_empty() { "off" } else { &args.global }),
        ("codec", "none"),
        ("lab.drain_codec", "zstd:1"),
        ("lab.segment", "8MiB"),
        ("keep", "4"),
    ];
    if args.agent.is_some() {
        settings.extend([
            ("lab.write", "wag-dbi"),
            ("global_keep", "3"),
            ("lab.agent_idle", "20s"),
        ]);
        settings.extend([("lab.agent_dir", agent.as_str()), ("lab.agent_command", exe.as_str())]);
    }
    let job = Job::open(&settings)?;
    let mut state = State::new(args.mib);
    // SAFETY: the state outlives the job, and nobody touches it while the job does.
    unsafe { job.protect("state", state.words.as_mut_ptr().cast(), args.mib << 20, 8) }?;
    let first = if args.restart { come_back(&job, &state)? } else { 0 };
    let mut carrying_s = 0.0;
    let began = Instant::now();
    for step in first + 1..=first + args.steps {
        state.step(step, args.threads);
        if args.every > 0 && step.is_multiple_of(args.every) {
            let version = Version(step);
            job.checkpoint(Some(version))?;
            Told::Taken { version: step, at_s: now_s() }.tell();
            if args.carry > 0 && (step / args.every).is_multiple_of(args.carry) {
                let waiting = Instant::now();
                carry(args, &job, version)?;
                carrying_s += waiting.elapsed().as_secs_f64();
            }
            if args.restart {
                job.wait(version, Level::Local)?;
                Told::Durable { version: step }.tell();
            }
        }
    }
    let seconds = began.elapsed().as_secs_f64();
    job.close()?;
    Told::Done { seconds, carrying_s }.tell();
    Ok(())
}

/// Restarts where there is something to restart from; returns the step.
fn come_back(job: &Job, state: &State) -> anyhow::Result<u64> {
    let Some(restarted) = job.restart()? else { return Ok(0) };
    let version = restarted.version.0;
    Told::Back { version, right: state.is_at(version) }.tell();
    Ok(version)
}

/// The host writes a checkpoint to global storage itself.
fn carry(args: &Args, job: &Job, version: Version) -> anyhow::Result<()> {
    job.wait(version, Level::Local)?;
    let local = standfast_store::open(&format!("{}/{JOB}", args.store), &Options::default())?;
    let target = args.target.open()?;
    let (stop, progress) = (AtomicBool::new(false), Progress::default());
    let flow = Flow::new(&*local, &stop, &progress);
    let drain = Drain::open(&*local, &*target, args.target.encoding(args.threads)?)?;
    drain.carry(Inventory::read(&*local)?.checkpoint(version)?, &flow)?;
    Told::Arrived { version: version.0, at_s: now_s() }.tell();
    Ok(())
}

/// Be the drain of an experiment
#[derive(clap::Args)]
#[command(hide = true)]
pub(crate) struct DrainArgs {
    /// Where the job's store is
    #[arg(long)]
    store: PathBuf,
    #[command(flatten)]
    target: Target,
    /// Threads that read and compress
    #[arg(long, default_value_t = 1)]
    threads: usize,
    /// Go on until killed
    #[arg(long)]
    follow: bool,
    /// Checkpoints kept there; 0: all
    #[arg(long, default_value_t = 0)]
    keep: usize,
    /// How nice it is to other processes
    #[arg(long, default_value_t = Priority::default().nice)]
    nice: i32,
}

/// Drains beside the program, at a lower priority, as the node's agent does.
pub(crate) fn drain(args: &DrainArgs) -> anyhow::Result<()> {
    use standfast_drain::policy::Policy;
    use standfast_drain::{Event, Until};
    Priority { nice: args.nice, ..Priority::default() }.take()?;
    let place = format!("{}/{JOB}", args.store.display());
    let local = loop {
        // The job may be about to begin.
        let local = standfast_store::open(&place, &Options::default())?;
        match standfast_restart::read_header(&*local) {
            Ok(_) => break local,
            Err(error) if !args.follow => return Err(error.into()),
            Err(_) => std::thread::sleep(std::time::Duration::from_millis(20)),
        }
    };
    let encoding = args.target.encoding(args.threads)?;
    let (stop, progress) = (AtomicBool::new(false), Progress::default());
    let flow = Flow::new(&*local, &stop, &progress);
    let until = Until { policy: Policy::Newest, follow: args.follow, tries: 20 };
    let mut tell = |event: Event<'_>| {
        if let Event::Arrived(carried, _) = event {
            Told::Arrived { version: carried.version.0, at_s: now_s() }.tell();
        }
    };
    loop {
        let target = args.target.open()?;
        let keep = Retention { newest: args.keep, every: 0 };
        let opened = Drain::open(&*local, &*target, encoding).map(|drain| drain.keeping(keep));
        let ended = opened.and_then(|drain| drain.run(&until, &flow, &mut tell));
        match ended {
            Ok(()) => return Ok(()),
            // The server may come back, and another drain of this store may end.
            Err(error) if args.follow && error.kind().retry() != standfast_format::Retry::Never => {
                std::thread::sleep(std::time::Duration::from_millis(200));
            }
            Err(error) => return Err(error.into()),
        }
    }
}
