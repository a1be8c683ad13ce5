//! All modes over codecs, stores and sizes of buffers, beside the model; and the shape of time over
//! the buffer's size, which the paper found to be a U.

use std::fmt;
use std::sync::Arc;

use lab_model::pipeline::{Form, Stages};
use lab_model::plot::{Axis, Body, Chart, Line};
use serde::Serialize;
use standfast_gpu::gpu_queue::{self, GpuQueue};
use standfast_reduce::{CodecChoice, CodecSpec};
use standfast_write::Pipeline;

use super::alone::{Alone, alone_on_gpu};
use super::data::Data;
use super::program::Program;
use super::trial::{Device, Outcome, Rounds, Trial, together};
use super::{Args, BLOCK_BYTES, NAME};

/// One measured combination.
#[derive(Serialize)]
struct Point {
    data: String,
    store: String,
    mode: &'static str,
    codec: String,
    buffer_kib: usize,
    threads: usize,
    mib: usize,
    measured_ms: f64,
    /// T_u, T_z or T_P.
    model_ms: f64,
    first_ms: f64,
    blocked_ms: f64,
    stored_share: f64,
    /// What a program beside it lost, in milliseconds of all its threads.
    #[serde(skip_serializing_if = "Option::is_none")]
    lost_ms: Option<f64>,
}

impl fmt::Display for Point {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{:<8}{:>10}  {:<10}{:<10}{:>5} KiB  {:>8.1} ms  model {:>8.1} ms ({:>4.2})  blocked {:>7.1} ms  stored {:>5.1} %",
            self.data,
            self.store,
            self.mode,
            self.codec,
            self.buffer_kib,
            self.measured_ms,
            self.model_ms,
            self.measured_ms / self.model_ms,
            self.blocked_ms,
            100.0 * self.stored_share,
        )?;
        match self.lost_ms {
            Some(lost_ms) => write!(f, "  lost {lost_ms:>7.1} ms"),
            None => Ok(()),
        }
    }
}

/// Everything about one sort of data.
pub(super) fn sweep(
    args: &Args,
    data: &Data,
    (program, gpu): (Option<&Program>, Option<&Arc<GpuQueue>>),
    devices: &[Device<'_>],
) -> anyhow::Result<()> {
    let codecs = args.codecs.iter().map(|text| Ok(text.parse()?));
    let codecs = codecs.collect::<anyhow::Result<Vec<CodecSpec>>>()?;
    let mut points = Vec::new();
    for kib in &args.buffers {
        let alone = codecs
            .iter()
            .map(|codec| Ok((*codec, Alone::measure(&data.bytes, *codec, kib << 10, args.rounds)?)))
            .collect::<anyhow::Result<Vec<(CodecSpec, Alone)>>>()?;
        for device in devices {
            points.extend(modes((args, data, program), *device, *kib, &alone)?);
        }
    }
    if let Some(gpu) = gpu {
        let alone = alone_on_gpu(&data.bytes, data.elem, gpu, args.rounds)?;
        for device in devices {
            points.extend(on_gpu((args, data, program), *device, gpu, &alone)?);
        }
    }
    points.iter().for_each(|point| args.report.point(NAME, point));
    for device in devices {
        let of_device: Vec<&Point> =
            points.iter().filter(|point| point.store == words(*device)).collect();
        codecs.iter().for_each(|codec| tell_curve(args, data, *device, *codec, &of_device));
        args.report.draw(&figure(data, *device, &of_device))?;
    }
    Ok(())
}

fn words(device: Device<'_>) -> String {
    match device {
        Device::Limited(bytes_per_s) => format!("{:.0} MB/s", bytes_per_s / 1e6),
        Device::Disk(_) => "disk".into(),
    }
}

/// Every mode with every codec, at one size of a buffer and one store.
fn modes(
    (args, data, program): (&Args, &Data, Option<&Program>),
    device: Device<'_>,
    kib: usize,
    alone: &[(CodecSpec, Alone)],
) -> anyhow::Result<Vec<Point>> {
    let trial = |pipeline, codec: CodecChoice| Trial {
        pipeline,
        codec,
        block_bytes: kib << 10,
        elem: data.elem,
        threads: args.threads,
        device,
        gpu: None,
    };
    let mut trials = vec![(trial(Pipeline::None, CodecSpec::NONE.into()), alone[0].1)];
    for (codec, alone) in alone {
        for pipeline in [Pipeline::Serial, Pipeline::Pipelined] {
            trials.push((trial(pipeline, (*codec).into()), *alone));
        }
    }
    let rounds = Rounds { starts: 1, later: args.rounds };
    let mut all: Vec<Trial<'_>> = trials.iter().map(|(trial, _)| *trial).collect();
    // In turn with the others: what disturbs the machine disturbs all of them.
    let auto = trial(Pipeline::Pipelined, CodecChoice::Auto);
    all.extend((kib << 10 == BLOCK_BYTES).then_some(auto));
    let outcomes = together(&all, &data.bytes, program, rounds)?;
    let mut points = Vec::new();
    for ((trial, alone), outcome) in trials.iter().zip(&outcomes) {
        let model_s = model_s(trial, alone, data.bytes.len())?;
        points.push(point(data, program, trial, outcome, model_s));
    }
    if let Some(outcome) = outcomes.get(trials.len()) {
        let least = points.iter().map(|point| point.model_ms).fold(f64::INFINITY, f64::min);
        points.push(point(data, program, &auto, outcome, 1e-3 * least));
    }
    Ok(points)
}

/// Mode `gpu`, always on the device and where the live model says, at the device's block size.
fn on_gpu(
    (args, data, program): (&Args, &Data, Option<&Program>),
    device: Device<'_>,
    gpu: &Arc<GpuQueue>,
    alone: &Alone,
) -> anyhow::Result<Vec<Point>> {
    let trial = |codec: CodecChoice| Trial {
        pipeline: Pipeline::Gpu,
        codec,
        block_bytes: gpu_queue::BLOCK_BYTES,
        elem: data.elem,
        threads: args.threads,
        device,
        gpu: Some(gpu),
    };
    let trials = [trial(CodecSpec::NONE.into()), trial(CodecChoice::Auto)];
    let rounds = Rounds { starts: 1, later: args.rounds };
    let outcomes = together(&trials, &data.bytes, program, rounds)?;
    // The device's time is the time of all who hand it blocks.
    let alone = Alone { zip_s: alone.zip_s * args.threads.max(1) as f64, ..*alone };
    let model_s = model_s(&trials[0], &alone, data.bytes.len())?;
    let both = trials.iter().zip(&outcomes);
    Ok(both.map(|(trial, outcome)| point(data, program, trial, outcome, model_s)).collect())
}

fn point(
    data: &Data,
    program: Option<&Program>,
    trial: &Trial<'_>,
    outcome: &Outcome,
    model_s: f64,
) -> Point {
    Point {
        data: data.name.clone(),
        store: words(trial.device),
        mode: mode(trial.pipeline),
        codec: match trial.codec {
            CodecChoice::Fixed(_) if trial.gpu.is_some() => "device".into(),
            codec => codec.to_string(),
        },
        buffer_kib: trial.block_bytes >> 10,
        threads: trial.threads,
        mib: data.bytes.len() >> 20,
        measured_ms: 1e3 * outcome.total_s,
        model_ms: 1e3 * model_s,
        first_ms: 1e3 * outcome.first_s,
        blocked_ms: 1e3 * outcome.blocked_s,
        stored_share: outcome.stored_bytes as f64 / data.bytes.len() as f64,
        lost_ms: program.map(|_| 1e3 * outcome.lost_s),
    }
}

fn mode(pipeline: Pipeline) -> &'static str {
    match pipeline {
        Pipeline::None => "none",
        Pipeline::Serial => "serial",
        Pipeline::Pipelined => "pipelined",
        Pipeline::Gpu => "gpu",
    }
}

/// The time that the model gives, of one rank that has the store to itself.
fn model_s(trial: &Trial<'_>, alone: &Alone, bytes: usize) -> anyhow::Result<f64> {
    let plain = trial.pipeline == Pipeline::None;
    let stored = if plain { bytes as u64 } else { alone.stored_bytes.min(bytes as u64) };
    let rate = stored as f64 / trial.device.store_s(stored, 2)?;
    let share = stored as f64 / bytes as f64;
    let threads = trial.threads.max(1) as f64;
    let stages = |zip_s: f64| Stages::new(bytes as f64, alone.collect_s, zip_s, share, rate, rate);
    Ok(match trial.pipeline {
        Pipeline::None => stages(0.0)?.plain_s(1.0, Form::Continuous),
        Pipeline::Serial => stages(alone.zip_s)?.serial_s(1.0, Form::Continuous),
        Pipeline::Pipelined | Pipeline::Gpu => stages(alone.zip_s / threads)?.pipelined_s(1.0),
    })
}

/// Where the least time is: inside, as the paper found it, or at an end.
fn tell_curve(args: &Args, data: &Data, device: Device<'_>, codec: CodecSpec, points: &[&Point]) {
    let codec = codec.to_string();
    let curve: Vec<&&Point> =
        points.iter().filter(|point| point.mode == "pipelined" && point.codec == codec).collect();
    let Some(best) = curve.iter().min_by(|a, b| a.measured_ms.total_cmp(&b.measured_ms)) else {
        return;
    };
    let rises =
        |end: Option<&&&Point>| end.is_some_and(|end| end.measured_ms > 1.05 * best.measured_ms);
    let shape = match (rises(curve.first()), rises(curve.last())) {
        (true, true) => "a U",
        (true, false) => "falls and stays",
        (false, true) => "stays and rises",
        (false, false) => "flat",
    };
    let text = format!(
        "{}, {}, {codec}: time over the buffer's size: {shape}; least at {} KiB",
        data.name,
        words(device),
        best.buffer_kib
    );
    args.report.note(NAME, &text);
}

/// Time over the buffer's size: what was measured of every codec, and the model of each.
fn figure(data: &Data, device: Device<'_>, points: &[&Point]) -> Chart {
    let mut lines: Vec<Line> = Vec::new();
    let mut add = |label: String, x: usize, y: f64| {
        let place = lines.iter().position(|line| line.label == label).unwrap_or_else(|| {
            lines.push(Line { label, points: Vec::new() });
            lines.len() - 1
        });
        lines[place].points.push((x as f64, y));
    };
    for point in points.iter().filter(|point| point.codec != "auto") {
        let label = match point.mode {
            "none" => "none".to_owned(),
            mode => format!("{mode} {}", point.codec),
        };
        add(label, point.buffer_kib, point.measured_ms);
        if point.mode == "pipelined" {
            add(format!("T_P {}", point.codec), point.buffer_kib, point.model_ms);
        }
    }
    let values = || lines.iter().flat_map(|line| &line.points);
    let low = values().map(|(_, y)| *y).fold(f64::INFINITY, f64::min);
    let high = values().map(|(_, y)| *y).fold(f64::MIN_POSITIVE, f64::max);
    let last = values().map(|(x, _)| *x).fold(2.0, f64::max);
    let first = values().map(|(x, _)| *x).fold(last / 2.0, f64::min);
    let store = words(device);
    Chart {
        name: format!("{NAME}-{}-{}", data.name, store.replace([' ', '/'], "")),
        title: format!("{}, store: {store}", data.name),
        x: Axis::log("buffer, KiB", first, last),
        y: Axis::log("milliseconds", 0.8 * low, 1.2 * high),
        body: Body::Lines(lines),
    }
}
