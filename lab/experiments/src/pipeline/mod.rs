//! `pipeline`: how collecting, compressing and storing take turns, over codecs, buffers and stores.
//!
//! Data: pages -> the write path in each of its modes, onto a device of a given speed -> measured
//! times beside those of the model (PCCR's T_u without compression, T_z one stage after the
//! other, T_P all at once), from the times of the stages alone. Where there is a GPU, mode `gpu` is
//! compared too.

mod alone;
pub(crate) mod bars;
pub(crate) mod data;
mod limited;
mod program;
mod sweep;
mod trial;

use std::path::PathBuf;
use std::sync::Arc;

use standfast_gpu::gpu_queue::GpuQueue;

use crate::report::Report;
use data::Data;
use program::Program;
use trial::Device;

const NAME: &str = "pipeline";
/// What blocks are usually made of.
const BLOCK_BYTES: usize = 128 << 10;

/// Compression beside collecting and storing.
#[derive(clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    report: Report,
    /// Directory of the corpus
    #[arg(long, env = "STANDFAST_CORPUS", value_name = "DIR")]
    corpus: Option<PathBuf>,
    /// MiB of each sort of data
    #[arg(long, default_value_t = 32)]
    mib: usize,
    /// Checkpoints of each measurement after a first one; the quickest counts
    #[arg(long, default_value_t = 3)]
    rounds: usize,
    /// Also a store in this directory, with its own speed
    #[arg(long, value_name = "DIR")]
    disk: Option<PathBuf>,
    /// Speeds of the store, MB/s
    #[arg(long, value_delimiter = ',', default_values_t = [100.0, 400.0, 2000.0])]
    store: Vec<f64>,
    /// Codecs to compare
    #[arg(long, value_delimiter = ',', default_values_t = ["lz4".to_owned(), "zstd:1".to_owned(), "deflate:1".to_owned()])]
    codecs: Vec<String>,
    /// Sizes of a buffer, KiB
    #[arg(long, value_delimiter = ',', default_values_t = [1, 2, 4, 8, 16, 32, 64, 128, 1024])]
    buffers: Vec<usize>,
    /// Only data of these names
    #[arg(long, value_delimiter = ',')]
    data: Vec<String>,
    /// A program that computes with so many threads meanwhile
    #[arg(long, default_value_t = 0)]
    program: usize,
    /// Compression threads
    #[arg(long, default_value_t = 1)]
    threads: usize,
}

pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    args.report
        .note(NAME, "model: T_u without compression, T_z serial, T_P pipelined; of one rank");
    if args.corpus.is_none() {
        args.report.note(NAME, "without pages of real programs: STANDFAST_CORPUS is not set");
    }
    let scratch = args.disk.as_ref().map(tempfile::tempdir_in).transpose()?;
    let limited = args.store.iter().map(|mbps| Device::Limited(mbps * 1e6));
    let devices: Vec<Device<'_>> =
        limited.chain(scratch.as_ref().map(|dir| Device::Disk(dir.path()))).collect();
    let program = (args.program > 0).then(|| Program::start(args.program));
    let gpu = GpuQueue::open(|why| eprintln!("{why}")).map(Arc::new);
    let wanted = |data: &Data| args.data.is_empty() || args.data.contains(&data.name);
    for data in data::all(args.corpus.as_deref(), args.mib)?.iter().filter(|data| wanted(data)) {
        sweep::sweep(args, data, (program.as_ref(), gpu.as_ref()), &devices)?;
    }
    Ok(())
}
