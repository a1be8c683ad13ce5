//! The bars of compression in a pipeline, and of the codec that is chosen live.

use std::path::Path;

use standfast_measure::{Bar, Better};

use crate::bars::Sheet;
use standfast_reduce::{CodecChoice, CodecSpec};
use standfast_write::Pipeline;

use super::BLOCK_BYTES;
use super::alone::{Alone, Order};
use super::data::{self, Data};
use super::trial::{BesideZip, Device, Rounds, Trial, beside_zip, race};

const LETTER: &str = "D";
/// What a fixed choice may be.
const FIXED: [&str; 6] = ["none", "lz4", "zstd:1", "zstd:3", "zstd:9", "deflate:1"];
/// Speeds of the store for the codec `auto`, MB/s.
const STORES: [f64; 3] = [100.0, 400.0, 2000.0];
/// Storing over compressing, where both take about as long.
const ALIKE: [f64; 3] = [0.7, 1.0, 1.4];
/// Compressing takes so long, with bytes between these: then what begins and ends a checkpoint counts
/// as little as it does in a real one, and what disturbs the machine for a moment does too.
const ZIP_S: f64 = 0.3;
const ZIP_BYTES: (usize, usize) = (32 << 20, 1 << 30);
/// Of so many times of a stage by itself the least counts.
const STAGE_ROUNDS: usize = 3;

/// Measures the bars, handing each over as soon as it is known.
pub(crate) fn bars(quick: bool, corpus: Option<&Path>, sheet: &mut Sheet) -> anyhow::Result<()> {
    if corpus.is_none() {
        sheet.unmeasured(LETTER, "pages of real programs", "STANDFAST_CORPUS is not set");
    }
    let all = data::all(corpus, if quick { 64 } else { 128 })?;
    let rounds = Rounds { starts: if quick { 2 } else { 3 }, later: 2 };
    let suited = |data: &&Data| data.name != "noise" && data.name != "counts";
    for data in all.iter().filter(suited) {
        if quick && data.name != "field" && data.name != "CM1" {
            continue;
        }
        let codecs: &[&str] = if quick { &["zstd:1"] } else { &["zstd:1", "deflate:1"] };
        overlap(data, codecs, rounds, sheet)?;
    }
    // Many starts, for the first checkpoint of each knows nothing.
    let rounds =
        if quick { Rounds { starts: 3, later: 2 } } else { Rounds { starts: 5, later: 3 } };
    for data in &all {
        adaptive(data, if quick { &STORES[1..2] } else { &STORES }, rounds, sheet)?;
    }
    Ok(())
}

fn pipelined(codec: impl Into<CodecChoice>, threads: usize, bytes_per_s: f64) -> Trial<'static> {
    let (pipeline, codec) = (Pipeline::Pipelined, codec.into());
    let device = Device::Limited(bytes_per_s);
    Trial { pipeline, codec, block_bytes: BLOCK_BYTES, elem: 0, threads, device, gpu: None }
}

/// The pipeline against its slowest stage, and against the stages one after the other.
fn overlap(data: &Data, codecs: &[&str], rounds: Rounds, sheet: &mut Sheet) -> anyhow::Result<()> {
    for codec in codecs {
        let codec: CodecSpec = codec.parse()?;
        let bytes = &stretch(&data.bytes, codec);
        let alone = Alone::measure(bytes, codec, BLOCK_BYTES, STAGE_ROUNDS)?;
        let order = Order::measure(bytes, codec, BLOCK_BYTES);
        let (mut slowest, mut in_turn) = ((0.0, 0.0), (0.0, 0.0));
        for alike in ALIKE {
            let store_s = alike * alone.zip_s;
            let bytes_per_s = alone.stored_bytes as f64 / store_s;
            let trial = pipelined(codec, 1, bytes_per_s);
            let serial = Trial { pipeline: Pipeline::Serial, ..trial };
            let BesideZip { zip_s, total_s } = beside_zip(&[trial, serial], bytes, codec, rounds)?;
            let stage_s = alone.collect_s.max(zip_s).max(store_s);
            let times = total_s[0] / stage_s;
            if times > slowest.0 {
                slowest = (times, order.times(bytes_per_s));
            }
            let ratio = total_s[0] / total_s[1];
            if ratio > in_turn.0 {
                in_turn = (ratio, stage_s / (alone.collect_s + zip_s + store_s));
            }
        }
        let name = format!("pipelined {codec}, {}, times its slowest stage", data.name);
        let bar = Bar::new(LETTER, name, slowest.0, Better::Lower, 1.15);
        sheet.bar(bar.ceiling(slowest.1, "with blocks in this order"));
        let name = format!("pipelined {codec}, {}, times serial, stages alike", data.name);
        sheet.bar(
            Bar::new(LETTER, name, in_turn.0, Better::Lower, 0.65).ceiling(in_turn.1, "T_P / T_z"),
        );
        bound(data, bytes, codec, &alone, rounds, sheet)?;
    }
    Ok(())
}

/// As much of some bytes as takes long enough to compress, over and over again if there are too few.
fn stretch(bytes: &[u8], codec: CodecSpec) -> Vec<u8> {
    let sample = &bytes[..bytes.len().min(ZIP_BYTES.0)];
    let zip_s = Order::measure(sample, codec, BLOCK_BYTES).zip_s();
    let mib = (sample.len() as f64 * ZIP_S / zip_s) as usize >> 20;
    let wanted = (mib << 20).clamp(ZIP_BYTES.0, ZIP_BYTES.1);
    let mut stretch = bytes.repeat(wanted.div_ceil(bytes.len()));
    stretch.truncate(wanted);
    stretch
}

/// Stores so slow, and so fast, that one stage alone decides. Where compressing decides it has one
/// thread: two cores have no room for a second one beside collecting.
fn bound(
    data: &Data,
    bytes: &[u8],
    codec: CodecSpec,
    alone: &Alone,
    rounds: Rounds,
    sheet: &mut Sheet,
) -> anyhow::Result<()> {
    for (words, threads, store) in [("slow store", 2, 4.0), ("fast store", 1, 0.1)] {
        let store_s = store * alone.zip_s;
        let trial = pipelined(codec, threads, alone.stored_bytes as f64 / store_s);
        let BesideZip { zip_s, total_s } = beside_zip(&[trial], bytes, codec, rounds)?;
        let times = total_s[0] / alone.collect_s.max(zip_s / threads as f64).max(store_s);
        let name = format!("pipelined {codec}, {}, {words}, times its slowest stage", data.name);
        sheet.bar(Bar::new(LETTER, name, times, Better::Lower, 1.15).ceiling(1.0, "times"));
    }
    Ok(())
}

/// The codec `auto` against every fixed one.
fn adaptive(data: &Data, stores: &[f64], rounds: Rounds, sheet: &mut Sheet) -> anyhow::Result<()> {
    let threads = 2;
    for mbps in stores {
        let mut trials = FIXED
            .iter()
            .map(|codec| Ok(pipelined(codec.parse::<CodecSpec>()?, threads, mbps * 1e6)))
            .collect::<anyhow::Result<Vec<Trial<'_>>>>()?;
        trials.push(pipelined(CodecChoice::Auto, threads, mbps * 1e6));
        let bytes = store_stretch(&data.bytes, *mbps);
        let times = race(&trials, bytes, rounds)?;
        let at = format!("{}, store of {mbps:.0} MB/s", data.name);
        let (ratio, best_s) = against_best(&times.later_s);
        let name = format!("codec auto, {at}, times the best fixed one");
        sheet.bar(Bar::new(LETTER, name, ratio, Better::Lower, 1.05).ceiling(1e3 * best_s, "ms"));
        let (ratio, best_s) = against_best(&times.first_s);
        let name = format!("codec auto, {at}, first checkpoint, times the best");
        sheet.bar(Bar::new(LETTER, name, ratio, Better::Lower, 1.05).ceiling(1e3 * best_s, "ms"));
        // A slow store waits for the same incompressible part whatever the codec.
        if data.name == "mixed" && *mbps >= STORES[1] {
            let auto = FIXED.len();
            let mut all: Vec<f64> = (0..auto).map(|at| middle(&times.later_s, at)).collect();
            all.sort_by(f64::total_cmp);
            let name = format!("codec auto, {at}, times the middle fixed one");
            let ratio = middle(&times.later_s, auto) / median(&all, |time_s| *time_s);
            sheet.bar(Bar::new(LETTER, name, ratio, Better::Lower, 0.8));
        }
    }
    Ok(())
}

/// As much of some bytes as a store of this speed takes in a second: what is slow anyway needs no
/// more.
fn store_stretch(bytes: &[u8], mbps: f64) -> &[u8] {
    let mib = (mbps * 1e6) as usize >> 20;
    &bytes[..(mib << 20).clamp(bytes.len().min(64 << 20), bytes.len())]
}

/// The last of each round against the one that is quickest in the middle of its rounds, and that one's
/// time.
fn against_best(rounds: &[Vec<Option<f64>>]) -> (f64, f64) {
    let auto = FIXED.len();
    let by_time = |a: &usize, b: &usize| middle(rounds, *a).total_cmp(&middle(rounds, *b));
    let best = (0..auto).min_by(by_time).expect("some are fixed");
    let both = |row: &Vec<Option<f64>>| Some(row[auto]? / row[best]?);
    let ratios: Vec<f64> = rounds.iter().filter_map(both).collect();
    (median(&ratios, |ratio| *ratio), middle(rounds, best))
}

/// The middle of one's times in the rounds that it took part in.
fn middle(rounds: &[Vec<Option<f64>>], at: usize) -> f64 {
    let times: Vec<f64> = rounds.iter().filter_map(|row| row[at]).collect();
    median(&times, |time_s| *time_s)
}

/// The middle of what rounds give; the mean of both middles.
fn median<T>(rounds: &[T], value: impl Fn(&T) -> f64) -> f64 {
    let mut values: Vec<f64> = rounds.iter().map(value).collect();
    values.sort_by(f64::total_cmp);
    (values[(values.len() - 1) / 2] + values[values.len() / 2]) / 2.0
}
