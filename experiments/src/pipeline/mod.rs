//! `pipeline`: how collecting, compressing and storing take turns, over codecs, buffers and stores.
//!
//! Data: pages -> the write path in each of its modes, onto a device of a given speed -> measured
//! times beside those of the model (PCCR's T_u without compression, T_z one stage after the
//! other, T_P all at once), from the times of the stages alone.

pub(crate) mod bars;
pub(crate) mod data;
mod limited;
mod trial;

use std::fmt;
use std::path::PathBuf;

use serde::Serialize;
use standfast_model::pipeline::{Form, Stages};
use standfast_pack::Pipeline;
use standfast_reduce::{CodecChoice, CodecSpec};

use crate::report::Report;
use data::Data;
use trial::{Alone, Trial};

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
    /// Rounds of each measurement; the quickest counts
    #[arg(long, default_value_t = 3)]
    rounds: usize,
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
    /// Compression threads
    #[arg(long, default_value_t = 1)]
    threads: usize,
}

/// One measured combination.
#[derive(Serialize)]
struct Point {
    data: String,
    store_mbps: f64,
    mode: &'static str,
    codec: String,
    buffer_kib: usize,
    threads: usize,
    measured_ms: f64,
    /// T_u, T_z or T_P.
    model_ms: f64,
    blocked_ms: f64,
    stored_share: f64,
}

impl fmt::Display for Point {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{:<8}{:>6.0} MB/s  {:<10}{:<10}{:>5} KiB  {:>8.1} ms  model {:>8.1} ms ({:>4.2})  blocked {:>7.1} ms  stored {:>5.1} %",
            self.data,
            self.store_mbps,
            self.mode,
            self.codec,
            self.buffer_kib,
            self.measured_ms,
            self.model_ms,
            self.measured_ms / self.model_ms,
            self.blocked_ms,
            100.0 * self.stored_share,
        )
    }
}

pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    let codecs = args.codecs.iter().map(|text| Ok(text.parse()?));
    let codecs = codecs.collect::<anyhow::Result<Vec<CodecSpec>>>()?;
    args.report
        .note(NAME, "model: T_u without compression, T_z serial, T_P pipelined; of one rank");
    let wanted = |data: &Data| args.data.is_empty() || args.data.contains(&data.name);
    for data in data::all(args.corpus.as_deref(), args.mib)?.iter().filter(|data| wanted(data)) {
        for mbps in &args.store {
            for codec in &codecs {
                buffers(args, data, *mbps, *codec)?;
            }
            adaptive(args, data, *mbps)?;
        }
    }
    Ok(())
}

/// All modes over the sizes of buffers, and whether their curve has the shape of a U.
fn buffers(args: &Args, data: &Data, mbps: f64, codec: CodecSpec) -> anyhow::Result<()> {
    let mut curve = Vec::new();
    for kib in &args.buffers {
        let alone = Alone::measure(&data.bytes, codec, kib << 10, args.rounds)?;
        for (mode, pipeline) in [
            ("none", Pipeline::None),
            ("serial", Pipeline::Serial),
            ("pipelined", Pipeline::Pipelined),
        ] {
            let trial = Trial {
                pipeline,
                codec: codec.into(),
                block_bytes: kib << 10,
                threads: args.threads,
                bytes_per_s: mbps * 1e6,
            };
            let outcome = trial.best(&data.bytes, args.rounds)?;
            if pipeline == Pipeline::Pipelined {
                curve.push((*kib, outcome.total_s));
            }
            args.report.point(
                NAME,
                &Point {
                    data: data.name.clone(),
                    store_mbps: mbps,
                    mode,
                    codec: codec.to_string(),
                    buffer_kib: *kib,
                    threads: args.threads,
                    measured_ms: 1e3 * outcome.total_s,
                    model_ms: 1e3 * model(&trial, &alone, data.bytes.len())?,
                    blocked_ms: 1e3 * outcome.blocked_s,
                    stored_share: outcome.stored_bytes as f64 / data.bytes.len() as f64,
                },
            );
        }
    }
    tell_curve(args, data, mbps, codec, &curve);
    Ok(())
}

/// Where the least time is: inside, as the paper found it, or at an end.
fn tell_curve(args: &Args, data: &Data, mbps: f64, codec: CodecSpec, curve: &[(usize, f64)]) {
    let Some((best, least)) = curve.iter().copied().min_by(|a, b| a.1.total_cmp(&b.1)) else {
        return;
    };
    let rises = |end: Option<&(usize, f64)>| end.is_some_and(|(_, time)| *time > 1.05 * least);
    let shape = match (rises(curve.first()), rises(curve.last())) {
        (true, true) => "a U",
        (true, false) => "falls and stays",
        (false, true) => "stays and rises",
        (false, false) => "flat",
    };
    let text = format!(
        "{}, {mbps:.0} MB/s, {codec}: time over the buffer's size: {shape}; least at {best} KiB",
        data.name
    );
    args.report.note(NAME, &text);
}

/// The time that the model gives, of one rank that has the store to itself.
fn model(trial: &Trial, alone: &Alone, bytes: usize) -> anyhow::Result<f64> {
    let share = (alone.stored_bytes as f64 / bytes as f64).min(1.0);
    let rate = trial.bytes_per_s;
    let threads = trial.threads.max(1) as f64;
    let stages = |zip_s: f64| Stages::new(bytes as f64, alone.collect_s, zip_s, share, rate, rate);
    Ok(match trial.pipeline {
        Pipeline::None => stages(0.0)?.plain_s(1.0, Form::Continuous),
        Pipeline::Serial => stages(alone.zip_s)?.serial_s(1.0, Form::Continuous),
        Pipeline::Pipelined => stages(alone.zip_s / threads)?.pipelined_s(1.0),
    })
}

/// The codec `auto` at the usual size of a block.
fn adaptive(args: &Args, data: &Data, mbps: f64) -> anyhow::Result<()> {
    let trial = Trial {
        pipeline: Pipeline::Pipelined,
        codec: CodecChoice::Auto,
        block_bytes: BLOCK_BYTES,
        threads: args.threads,
        bytes_per_s: mbps * 1e6,
    };
    let outcome = trial.best(&data.bytes, args.rounds)?;
    let text = format!(
        "{}, {mbps:.0} MB/s, auto: {:.1} ms (first {:.1} ms), blocked {:.1} ms, stored {:.1} %",
        data.name,
        1e3 * outcome.total_s,
        1e3 * outcome.first_s,
        1e3 * outcome.blocked_s,
        100.0 * outcome.stored_bytes as f64 / data.bytes.len() as f64
    );
    args.report.note(NAME, &text);
    Ok(())
}
