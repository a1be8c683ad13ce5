//! `pause`: how a drain gives way while a rank stores a checkpoint and while a restart reads.
//!
//! ```text
//! drain    ====----====----====   checkpoint 1 over a slow link, all the time
//! program      2       1          stores checkpoint 2, then restarts from checkpoint 1
//! ```
//! Of each stretch: how long it lasted, what the drain has sent meanwhile, and how soon after it
//! the drain has gone on.

use standfast_testkit::command::Random;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use serde::Serialize;
use standfast::{Job, Level, Version};
use standfast_drain::{Drain, Encoding, Flow, Progress};
use standfast_restart::Inventory;
use standfast_store::{Options, Store};

use super::program::JOB;
use super::slow::Slow;
use crate::report::Report;

const NAME: &str = "pause";
/// What a stretch is called in which the program does nothing to its checkpoints.
pub(crate) const IDLE: &str = "idle";

/// What a drain sends while a checkpoint is stored and while a restart reads
#[derive(clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    report: Report,
    /// MiB of the program's state
    #[arg(long, default_value_t = 256)]
    mib: usize,
    /// Rate of the link, MB/s
    #[arg(long, default_value_t = 60.0)]
    link: f64,
    /// Directory on the file system to measure
    #[arg(long, default_value_os_t = std::env::temp_dir())]
    dir: PathBuf,
}

/// One stretch of time.
#[derive(Debug, Serialize)]
pub(crate) struct Stretch {
    pub(crate) what: &'static str,
    pub(crate) seconds: f64,
    pub(crate) sent_mib: f64,
    /// Rate of the drain as a share of the link's.
    pub(crate) of_link: f64,
    /// From the end of the stretch until bytes go again.
    pub(crate) resumed_ms: f64,
}

impl fmt::Display for Stretch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{:<12}{:>7.3} s, {:>7.2} MiB sent, {:>5.1} % of the link, on after {:.1} ms",
            self.what,
            self.seconds,
            self.sent_mib,
            100.0 * self.of_link,
            self.resumed_ms
        )
    }
}

pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    let text = format!("{} MiB, link {} MB/s, codec none", args.mib, args.link);
    args.report.note(NAME, &text);
    for stretch in stretches(&args.dir, args.mib, args.link * 1e6)? {
        args.report.point(NAME, &stretch);
    }
    Ok(())
}

/// Runs the program beside a drain and measures each stretch.
pub(crate) fn stretches(dir: &Path, mib: usize, link_bps: f64) -> anyhow::Result<Vec<Stretch>> {
    let home = tempfile::tempdir_in(dir)?;
    let place = home.path().join("local");
    let settings = [("store", &*place.to_string_lossy()), ("job", JOB), ("codec", "none")];
    let mut memory = Random::new(1).noise(mib << 20);
    let job = Job::open(&settings)?;
    // SAFETY: the memory outlives the job, and nobody else touches it.
    unsafe { job.protect("state", memory.as_mut_ptr(), memory.len(), 8) }?;
    let first = job.checkpoint(None)?;
    job.wait(first, Level::Local)?;

    let open = |name: &str| {
        let place = home.path().join(name).join(JOB);
        standfast_store::open(&place.to_string_lossy(), &Options::default())
    };
    let local = open("local")?;
    let far: Arc<dyn Store> = Arc::new(Slow::new(open("global")?, link_bps));
    let encoding = Encoding { codec: "none".parse()?, threads: 1 };
    let (stop, progress) = (AtomicBool::new(false), Progress::default());
    std::thread::scope(|scope| {
        let drain = scope.spawn(|| -> anyhow::Result<()> {
            let flow = Flow::new(&*local, &stop, &progress);
            let manifest = Inventory::read(&*local)?.checkpoint(first)?.clone();
            match Drain::open(&*local, &*far, encoding)?.carry(&manifest, &flow) {
                Ok(_) | Err(standfast_drain::Error::Stopped) => Ok(()),
                Err(error) => Err(error.into()),
            }
        });
        let watch = Watch { progress: &progress, link_bps };
        let measured = watch.program(&job, &mut memory, first);
        stop.store(true, Ordering::Relaxed);
        drain.join().expect("the drain does not panic")?;
        measured
    })
}

/// Watches a drain while the program does something.
struct Watch<'a> {
    progress: &'a Progress,
    link_bps: f64,
}

impl Watch<'_> {
    fn program(
        &self,
        job: &Job,
        memory: &mut [u8],
        first: Version,
    ) -> anyhow::Result<Vec<Stretch>> {
        let nothing = || {
            std::thread::sleep(Duration::from_millis(400));
            anyhow::Ok(())
        };
        self.resumed();
        let before = self.stretch(IDLE, nothing)?;
        memory.iter_mut().step_by(4096).for_each(|byte| *byte ^= 1);
        let stored = self.stretch("checkpoint", || {
            let version = job.checkpoint(None)?;
            Ok(job.wait(version, Level::Local)?)
        })?;
        let between = self.stretch(IDLE, nothing)?;
        let restarted = self.stretch("restart", || Ok(job.restart_from(first).map(drop)?))?;
        let after = self.stretch(IDLE, nothing)?;
        Ok(vec![before, stored, between, restarted, after])
    }

    fn stretch(
        &self,
        what: &'static str,
        work: impl FnOnce() -> anyhow::Result<()>,
    ) -> anyhow::Result<Stretch> {
        let (began, sent) = (Instant::now(), self.sent());
        work()?;
        let seconds = began.elapsed().as_secs_f64();
        let sent = (self.sent() - sent) as f64;
        let of_link = sent / seconds / self.link_bps;
        let sent_mib = sent / f64::from(1 << 20);
        Ok(Stretch { what, seconds, sent_mib, of_link, resumed_ms: self.resumed() })
    }

    fn sent(&self) -> u64 {
        self.progress.sent.load(Ordering::Relaxed)
    }

    /// Waits until the drain sends, a second at most; how long that took.
    fn resumed(&self) -> f64 {
        let (began, sent) = (Instant::now(), self.sent());
        while self.sent() == sent && began.elapsed() < Duration::from_secs(1) {
            std::thread::sleep(Duration::from_micros(200));
        }
        began.elapsed().as_secs_f64() * 1e3
    }
}
