//! Measuring: the ceilings of this machine, and what each stage of a checkpoint reaches of them.
//!
//! Data: a [`Setting`] (how much, where, how often) -> [`Figure`]s for `standfast bench` and
//! [`Bar`]s for `experiments bars`. Every figure that has a ceiling was measured beside it in
//! the same run: machines differ and are noisy, ratios of one run are what can be compared.
//!
//! Method: repeat, alternate the thing measured and its ceiling. In memory the best of each counts:
//! what the machine can do when nobody disturbs it. On the disk the median of each counts: disks
//! vary by themselves, and the ceiling is tried in more ways than the checkpoint.

mod bars;
mod capture;
mod ceiling;
mod data;
mod figure;
mod gpu;
mod memory;
mod stage;

pub use bars::bars;
pub use capture::bench_capture;
pub use figure::{Bar, Better, Error, Figure, Result, Setting};
pub use gpu::{FoundGpu, bench_gpu, find_gpu};
pub use standfast_gpu::Gpu;

/// Something that was measured.
#[derive(Clone, Debug, serde::Serialize)]
#[serde(untagged)]
pub enum Measured {
    /// A figure.
    Figure(Figure),
    /// A figure against its goal.
    Bar(Bar),
}

/// Measures ceilings and stages, handing each over as soon as it is known; the bars that follow
/// from the same run come last.
pub fn bench(setting: &Setting, mut each: impl FnMut(Measured)) -> Result<()> {
    let memory = ceiling::Memory::measure(setting);
    memory.figures().map(Measured::Figure).for_each(&mut each);
    let scan = stage::scan(setting, &memory);
    scan.iter().cloned().map(Measured::Figure).for_each(&mut each);
    stage::compress(setting, &memory).into_iter().map(Measured::Figure).for_each(&mut each);
    let disk = stage::disk(setting)?;
    disk.figures().map(Measured::Figure).for_each(&mut each);
    bars::scan_bars(&scan).map(Measured::Bar).for_each(&mut each);
    bars::disk_bars(&disk).map(Measured::Bar).for_each(&mut each);
    Ok(())
}
