//! The bars of the global level.

use standfast_testkit::command::Random;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Instant;

use standfast::{Job, Level};
use standfast_drain::{Drain, Encoding, Flow, Priority, Progress};
use standfast_measure::{Bar, Better};

use crate::bars::Sheet;
use standfast_restart::{Inventory, MemorySink, Rebuild, read_image};
use standfast_store::{Options, Store};

use super::program::JOB;
use super::slow::Slow;
use super::slowdown::{self, Slowdown};
use super::{kills, pause};

const LETTER: &str = "F";
const NO_SERVER: &str = "no S3 server is installed (scripts/deps.sh test)";
/// Rate of the link in the bars of rates, bytes per second.
const LINK_BPS: f64 = 60e6;
/// What is carried over it.
const CARRY_MIB: usize = 192;

/// Measures the bars, handing each over as soon as it is known.
pub(crate) fn bars(quick: bool, dir: &Path, sheet: &mut Sheet) -> anyhow::Result<()> {
    let cores = std::thread::available_parallelism()?.get();
    let pairs = if quick { 7 } else { 51 };
    for (threads, name, goal) in [
        (cores - 1, "slowdown by a drain beside it, a core free", 0.02),
        (cores, "slowdown by a drain beside it, no core free", 0.05),
    ] {
        if threads == 0 {
            continue;
        }
        let nice = Priority::default().nice;
        let Slowdown { slowdown, alone_s, .. } = slowdown::measure(dir, threads, nice, pairs)?;
        sheet.bar(
            Bar::new(LETTER, name, slowdown, Better::Lower, goal)
                .ceiling(alone_s, "s a stretch alone"),
        );
    }
    for codec in ["none", "zstd:1"] {
        let rates = rates(dir, codec)?;
        let name = format!("drain rate, codec {codec}, by the link's");
        let bar = Bar::new(LETTER, name, rates.drained / LINK_BPS, Better::Higher, 0.95);
        sheet.bar(bar.ceiling(rates.raw_drained / 1e6, "MB/s before the codec"));
        let name = format!("recovery from global, codec {codec}, by the link's rate");
        let bar = Bar::new(LETTER, name, rates.recovered / LINK_BPS, Better::Higher, 0.9);
        sheet.bar(bar.ceiling(rates.raw_recovered / 1e6, "MB/s of memory"));
    }
    for stretch in pause::stretches(dir, 128, LINK_BPS)? {
        if stretch.what != pause::IDLE {
            let name = format!("a drain's rate during a {}, by the link's", stretch.what);
            let bar = Bar::new(LETTER, name, stretch.of_link, Better::Lower, 0.1);
            sheet.bar(bar.ceiling(stretch.resumed_ms, "ms until it goes on"));
        }
    }
    let kills = if quick { 10 } else { 200 };
    match kills::campaign(kills, 7, kills::By::Agent)? {
        None => sheet.unmeasured(LETTER, "kills of program, drain and S3 server", NO_SERVER),
        Some(seen) => {
            let name = format!("{kills} kills of program, drain and S3 server: broken or wrong");
            let bad = seen.broken as f64 + f64::from(seen.wrong);
            sheet.bar(Bar::new(LETTER, name, bad, Better::Lower, 0.0));
            let name = format!("{kills} kills: the newest checkpoint arrives in the end");
            sheet.bar(Bar::new(
                LETTER,
                name,
                f64::from(u8::from(seen.complete)),
                Better::Higher,
                1.0,
            ));
        }
    }
    Ok(())
}

/// Bytes per second over the link, compressed and raw, there and back.
struct Rates {
    drained: f64,
    raw_drained: f64,
    recovered: f64,
    raw_recovered: f64,
}

fn rates(dir: &Path, codec: &str) -> anyhow::Result<Rates> {
    let home = tempfile::tempdir_in(dir)?;
    let mut memory = pages();
    let place = home.path().join("local");
    let job = Job::open(&[("store", &place.to_string_lossy()), ("job", JOB), ("codec", "none")])?;
    // SAFETY: the memory outlives the job and is not touched meanwhile.
    unsafe { job.protect("state", memory.as_mut_ptr(), memory.len(), 8) }?;
    let version = job.checkpoint(None)?;
    job.wait(version, Level::Local)?;
    let open = |name: &str| {
        let place = home.path().join(name).join(JOB);
        standfast_store::open(&place.to_string_lossy(), &Options::default())
    };
    let local = open("local")?;
    let far: Arc<dyn Store> = Arc::new(Slow::new(open("global")?, LINK_BPS));
    let threads = std::thread::available_parallelism()?.get();
    let encoding = Encoding { codec: codec.parse()?, threads };
    let (stop, progress) = (AtomicBool::new(false), Progress::default());
    let flow = Flow::new(&*local, &stop, &progress);
    let drain = Drain::open(&*local, &*far, encoding)?;
    let began = Instant::now();
    drain.carry(Inventory::read(&*local)?.checkpoint(version)?, &flow)?;
    let drained_s = began.elapsed().as_secs_f64();
    let sent = progress.sent.load(Ordering::Relaxed) as f64;

    let inventory = Inventory::read(&*far)?;
    let manifest = inventory.checkpoint(version)?;
    let mut back = vec![0; memory.len()];
    let began = Instant::now();
    let image = read_image(&*far, manifest, standfast_format::Rank(0))?;
    let rebuild = Rebuild::open(&*far, &inventory.header, image, 8)?;
    let sink = MemorySink::new(vec![Some(&mut back[..])]);
    let rebuilt = rebuild.rebuild(&sink, |_| true, &AtomicU64::new(0));
    rebuilt.map_err(standfast_restart::Error::from)?;
    let back_s = began.elapsed().as_secs_f64();
    drop(sink);
    anyhow::ensure!(back == memory, "what came back is something else");
    let stored: u64 = manifest.segments.iter().map(|segment| segment.file_bytes).sum();
    Ok(Rates {
        drained: sent / drained_s,
        raw_drained: memory.len() as f64 / drained_s,
        recovered: stored as f64 / back_s,
        raw_recovered: memory.len() as f64 / back_s,
    })
}

/// Numbers with as many digits as a measurement has, and some noise.
fn pages() -> Vec<u8> {
    let mut random = Random::new(1);
    let words = (0..CARRY_MIB << 17).map(|at| match at % 4096 < 1024 {
        true => random.next_u64(),
        false => (((at as f64 * 1e-4).sin() * 4096.0).round() / 4096.0).to_bits(),
    });
    words.flat_map(u64::to_ne_bytes).collect()
}
