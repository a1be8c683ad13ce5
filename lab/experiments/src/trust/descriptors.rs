//! Descriptors that a restart of very many segments has open.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;

use standfast::{Job, Level};
use standfast_testkit::command::Random;

use super::bars::lower;
use crate::bars::Sheet;

const PAGE: usize = 4096;

/// Its row of the bars.
pub(super) fn bars(quick: bool, dir: &Path, sheet: &mut Sheet) -> anyhow::Result<()> {
    let segments = if quick { 2000 } else { 10_000 };
    let most = measure(dir, segments)?;
    let name = format!("descriptors open in a restart of {segments} segments, at most");
    sheet.bar(lower(name, most as f64, 256.0));
    Ok(())
}

/// Takes a checkpoint of one page a segment, and restarts.
fn measure(dir: &Path, segments: usize) -> anyhow::Result<usize> {
    let home = tempfile::tempdir_in(dir)?;
    let store = home.path().to_string_lossy().into_owned();
    let job = Job::open(&[
        ("store", &*store),
        ("job", "many"),
        ("codec", "none"),
        ("lab.page", "4KiB"),
        ("lab.block", "4KiB"),
        ("lab.segment", "4KiB"),
    ])?;
    let memory = job.alloc::<u8>("memory", segments * PAGE)?;
    memory.write().copy_from_slice(&Random::new(3).noise(segments * PAGE));
    let version = job.checkpoint(None)?;
    job.wait(version, Level::Local)?;
    let files = std::fs::read_dir(home.path().join("many/segments"))?.count();
    anyhow::ensure!(files >= segments, "{files} segments instead of {segments}");
    let wanted = memory.read().to_vec();
    memory.write().fill(0);
    let is_over = AtomicBool::new(false);
    let (most, restarted) = std::thread::scope(|scope| {
        let watcher = scope.spawn(|| watch(&is_over));
        let restarted = job.restart();
        is_over.store(true, Relaxed);
        (watcher.join().expect("counting never panics"), restarted)
    });
    restarted?;
    anyhow::ensure!(memory.read()[..] == wanted[..], "another state came back");
    job.close()?;
    Ok(most?)
}

/// The most descriptors that this process has open until it is over.
fn watch(is_over: &AtomicBool) -> std::io::Result<usize> {
    let mut most = 0;
    while !is_over.load(Relaxed) {
        most = most.max(std::fs::read_dir("/proc/self/fd")?.count());
        std::thread::sleep(Duration::from_millis(1));
    }
    Ok(most)
}
