//! The GPU: what was found, and what its kernels reach of its own ceilings.

use std::time::Instant;

use standfast_gpu::float::{DeviceFloat, Element};
use standfast_gpu::hash::{DIGEST_BYTES, DeviceHasher};
use standfast_gpu::{Gpu, Result, Unavailable};

use crate::Measured;
use crate::data;
use crate::figure::{Figure, Setting};

/// Bytes on the device at most: several times that are needed with buffers.
const BYTES_MAX: usize = 1 << 30;
const PAGE: usize = 4096;

/// A device as it was found.
#[derive(Clone, Debug, serde::Serialize)]
pub struct FoundGpu {
    /// Always `gpu`.
    #[serde(rename = "type")]
    pub kind: &'static str,
    /// Whether there is one that can be used.
    pub found: bool,
    /// Its name; without one, why there is none.
    pub text: String,
    /// CUDA version of its driver.
    pub driver: Option<String>,
    /// Its compute capability.
    pub capability: Option<String>,
    /// All its memory.
    pub memory_bytes: Option<usize>,
    /// Its memory that is free now.
    pub free_bytes: Option<usize>,
}

/// Looks for a device.
pub fn find_gpu() -> (FoundGpu, Option<Gpu>) {
    describe(Gpu::open())
}

fn describe(opened: std::result::Result<Gpu, Unavailable>) -> (FoundGpu, Option<Gpu>) {
    let nothing = FoundGpu {
        kind: "gpu",
        found: false,
        text: String::new(),
        driver: None,
        capability: None,
        memory_bytes: None,
        free_bytes: None,
    };
    match opened {
        Err(why) => (FoundGpu { text: why.to_string(), ..nothing }, None),
        Ok(gpu) => {
            let found = FoundGpu {
                found: true,
                text: gpu.name().into(),
                driver: Some(gpu.driver().to_string()),
                capability: Some(gpu.capability().to_string()),
                memory_bytes: Some(gpu.memory_bytes()),
                free_bytes: gpu.memory_free_bytes().ok(),
                ..nothing
            };
            (found, Some(gpu))
        }
    }
}

/// Measures copying, the bus, hashing and the float codec.
pub fn bench_gpu(
    gpu: &Gpu,
    setting: &Setting,
    mut each: impl FnMut(Measured),
) -> crate::Result<()> {
    let bytes = setting.bytes.min(BYTES_MAX) / PAGE * PAGE;
    let stream = gpu.stream()?;
    let best = |work: &mut dyn FnMut() -> Result<()>| -> Result<f64> {
        work()?;
        let mut best = f64::MAX;
        for _ in 0..setting.rounds.max(1) {
            let started = Instant::now();
            work()?;
            best = best.min(started.elapsed().as_secs_f64());
        }
        Ok(bytes as f64 / best)
    };
    let unit = data::field(bytes.min(16 << 20), 1e-3);
    let (data, other) = (gpu.allocate("data", bytes)?, gpu.allocate("data", bytes)?);
    for start in (0..bytes).step_by(unit.len()) {
        let part = unit.len().min(bytes - start);
        stream.upload(&unit[..part], data.slice().part(start, part))?;
    }
    let copy = best(&mut || {
        stream.copy(data.slice(), other.slice())?;
        stream.wait()
    })?;
    // Every byte is read and written.
    let copy = 2.0 * copy;
    each(Measured::Figure(Figure::rate("gpu copy", copy).note("read and written")));
    let mut pinned = gpu.pinned("data", bytes)?;
    let bus = best(&mut || stream.download(data.slice(), &mut pinned))?;
    each(Measured::Figure(Figure::rate("gpu to pinned memory", bus)));
    let (digests, marks) = (
        gpu.allocate("digests", bytes / PAGE * DIGEST_BYTES)?,
        gpu.allocate("marks", bytes / PAGE)?,
    );
    let hasher = DeviceHasher::new(&[1; 32]);
    let hash = best(&mut || {
        hasher.queue(&stream, data.slice(), PAGE, None, digests.slice(), marks.slice())?;
        stream.wait()
    })?;
    each(Measured::Figure(Figure::rate("gpu hash, 4 KiB pages", hash).of("gpu copy", copy)));
    let mut codec = DeviceFloat::new(gpu, Element::F64, bytes)?;
    let out = gpu.allocate("encoded", DeviceFloat::out_bytes_max(bytes))?;
    let encode = best(&mut || {
        codec.queue_encode(&stream, data.slice(), out.slice())?;
        stream.wait()
    })?;
    let ratio = bytes as f64 / codec.packed().bytes() as f64;
    let figure = Figure::rate("gpu float codec, noisy f64", encode).of("gpu to pinned memory", bus);
    each(Measured::Figure(figure.note(format!("ratio {ratio:.2}"))));
    Ok(())
}

#[cfg(test)]
mod tests;
