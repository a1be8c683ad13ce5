//! The bars of the spine: each measured beside its ceiling, against its goal.

use crate::ceiling::Memory;
use crate::figure::{Bar, Better, Figure, Result, Setting};
use crate::stage;

const LETTER: &str = "A";

/// Measures the spine's bars, handing each over as soon as it is known.
pub fn bars(setting: &Setting, mut each: impl FnMut(Bar)) -> Result<()> {
    let memory = Memory::measure(setting);
    scan_bars(&stage::scan(setting, &memory)).for_each(&mut each);
    disk_bars(&stage::disk(setting)?).for_each(each);
    Ok(())
}

/// Bars of the figures that were measured beside the read bandwidth.
pub(crate) fn scan_bars(figures: &[Figure]) -> impl Iterator<Item = Bar> {
    figures.iter().filter_map(|figure| {
        let goal = match figure.name.as_str() {
            "zero pages" => 0.85,
            "hash xxh3" => 0.70,
            _ => return None,
        };
        let name = format!("{}, share of read bandwidth", figure.name);
        let bar = Bar::new(LETTER, name, figure.share()?, Better::Higher, goal);
        Some(bar.ceiling(figure.ceiling?, "GB/s"))
    })
}

/// Bars of whole checkpoints and restarts.
pub(crate) fn disk_bars(disk: &stage::Disk) -> impl Iterator<Item = Bar> {
    let bytes = disk.bytes as f64;
    let rate = |time: std::time::Duration| bytes / time.as_secs_f64() / 1e9;
    let (raw, read) = (disk.raw_durable().1, disk.raw_read());
    let faster = disk.first().as_secs_f64() / disk.second().as_secs_f64();
    let stats = &disk.stats;
    let stored = stats.segment_bytes + stats.image_bytes;
    let metadata = (stored - stats.compressed_bytes) as f64 / stats.captured_bytes as f64;
    let extra = disk.extra_bytes.map(|extra| {
        let beyond = extra.saturating_sub(disk.memory_bytes) as f64 / bytes;
        Bar::new(
            LETTER,
            "memory beyond the setting, share of protected",
            beyond,
            Better::Lower,
            0.03,
        )
        .ceiling(disk.memory_bytes as f64 / (1 << 20) as f64, "MiB set")
    });
    [
        Bar::new(
            LETTER,
            "durable checkpoint, share of raw write+fsync",
            disk.durable_share(),
            Better::Higher,
            0.9,
        )
        .ceiling(rate(raw), "GB/s"),
        Bar::new(LETTER, "1 % changed, times faster than the first", faster, Better::Higher, 10.0)
            .ceiling(rate(raw), "GB/s"),
        Bar::new(LETTER, "metadata, share of protected", metadata, Better::Lower, 0.01),
        Bar::new(LETTER, "restart, share of raw read", disk.restart_share(), Better::Higher, 0.8)
            .ceiling(rate(read), "GB/s"),
    ]
    .into_iter()
    .chain(extra)
}
