//! Runs every kernel against its CPU reference on a real device, then measures.
//!
//!     cargo run --release -p gpu-check --bin gpu-check -- --json results.jsonl
//!
//! Each kernel meets the test vectors that the references meet in CI. Without a device it says
//! what is missing and ends with status 2; a kernel that disagrees with its reference, with 1.
//!
//! For the comparison with nvCOMP: `--write-buffers DIR` leaves the buffers there,
//! `peers/nvcomp.py DIR` measures them, `--peer FILE` reads what it found.

mod bench;
mod broker;
mod buffers;
mod check;
#[path = "../../../crates/gpu/tests/job/mod.rs"]
mod job;
mod report;
mod star;

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Result;
use clap::Parser;
use standfast_gpu::Gpu;

use buffers::Buffers;
use report::Report;

/// Checks and measures the GPU kernels.
#[derive(Parser)]
struct Options {
    /// Also append the lines to this file.
    #[arg(long)]
    json: Option<PathBuf>,
    /// Only check, do not measure.
    #[arg(long)]
    check_only: bool,
    /// Bytes of each buffer that is measured, in MiB.
    #[arg(long, default_value_t = 1024)]
    mib: usize,
    /// Device memory of the region that is captured, in GiB.
    #[arg(long, default_value_t = 16)]
    region_gib: u64,
    /// Pages of real programs: a directory of files, those ending in .zst decompressed.
    #[arg(long)]
    corpus: Option<PathBuf>,
    /// Writes the buffers here and ends.
    #[arg(long)]
    write_buffers: Option<PathBuf>,
    /// What peers/nvcomp.py measured on the same buffers.
    #[arg(long)]
    peer: Option<PathBuf>,
}

fn main() -> Result<ExitCode> {
    let options = Options::parse();
    if let Some(dir) = &options.write_buffers {
        Buffers::new(options.mib << 20, options.corpus.as_deref())?.write(dir)?;
        return Ok(ExitCode::SUCCESS);
    }
    let gpu = match Gpu::open() {
        Ok(gpu) => gpu,
        Err(why) => {
            eprintln!("gpu-check: {why}");
            return Ok(ExitCode::from(2));
        }
    };
    let mut report = Report::new(options.json.as_deref())?;
    report.machine(&gpu)?;
    check::all(&gpu, &mut report)?;
    if !report.all_well() {
        return Ok(ExitCode::FAILURE);
    }
    if !options.check_only {
        let buffers = Buffers::new(options.mib << 20, options.corpus.as_deref())?;
        let peer = options.peer.as_deref().map(bench::Peer::read).transpose()?;
        bench::all(&gpu, &buffers, options.region_gib << 30, peer.as_ref(), &mut report)?;
    }
    Ok(ExitCode::SUCCESS)
}
