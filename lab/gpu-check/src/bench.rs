//! What the kernels reach, beside the device's own ceilings from the same run.

use std::collections::HashMap;
use std::path::Path;
use std::time::Instant;

use anyhow::{Context, Result};
use gpu_check::pipeline::{Codec, HostPipeline, Source};
use standfast_capture::{Device, DeviceRegion, Drained, Which};
use standfast_format::{CodecKind, FilterKind, HashKind};
use standfast_gpu::deflate::{self, DeviceDeflate};
use standfast_gpu::erasure::{Code, DeviceErasure, Family, Matrix};
use standfast_gpu::float::{self, DeviceFloat, Element};
use standfast_gpu::hash::{DIGEST_BYTES, DeviceHasher};
use standfast_gpu::memory::{self, Choice, Settings};
use standfast_gpu::{DeviceBuffer, DeviceSlice, Gpu, Packed, Stream};
use standfast_reduce::{BlockDecoder, BlockEncoder, CodecSpec, FilterChoice};

use crate::buffers::{Buffer, Buffers};
use crate::check::put;
use crate::report::{Better, Ceiling, Report};

const ROUNDS: usize = 9;
const PAGE: usize = 4096;
const KEY: [u8; 32] = [0x5f; 32];
/// Data of the erasure codes, all shards together.
const ERASURE_BYTES: usize = 4 << 30;
/// A piece of the host pipeline.
const PIECE: usize = 64 << 20;

/// Speeds and ratios of another compressor on the same buffers.
pub(crate) struct Peer(HashMap<(String, String), (f64, f64)>);

impl Peer {
    pub(crate) fn read(path: &Path) -> Result<Self> {
        let text = std::fs::read_to_string(path).with_context(|| path.display().to_string())?;
        let mut found = HashMap::new();
        for line in text.lines() {
            let line: serde_json::Value = serde_json::from_str(line)?;
            let word = |name: &str| line[name].as_str().unwrap_or_default().to_owned();
            if let (Some(rate), Some(ratio)) = (line["gb_s"].as_f64(), line["ratio"].as_f64()) {
                found.insert((word("buffer").replace('-', " "), word("codec")), (rate, ratio));
            }
        }
        Ok(Peer(found))
    }

    fn of(&self, buffer: &str, codec: &str) -> Option<(f64, f64)> {
        self.0.get(&(buffer.to_owned(), codec.to_owned())).copied()
    }
}

pub(crate) fn all(
    gpu: &Gpu,
    buffers: &Buffers,
    region_bytes: u64,
    peer: Option<&Peer>,
    report: &mut Report,
) -> Result<()> {
    let stream = gpu.stream()?;
    // Noisy bits, as real memory has: constants would cost the memory less power.
    let noise = &buffers.0[0].bytes;
    let copy = copy_bandwidth(&stream, noise)?;
    report.bench("copy bandwidth", copy, "GB/s", "4 GiB within the device, read and written")?;
    erasure_codes(&stream, noise, copy, report)?;
    crate::star::bench(&stream, noise, report)?;
    for buffer in &buffers.0 {
        match buffer.element {
            Some(element) => floats(&stream, buffer, element, copy, report)?,
            None => float_figures(&stream, buffer, report)?,
        }
        deflates(&stream, buffer, peer, report)?;
    }
    region(&stream, &buffers.0[0], region_bytes, copy, report)?;
    for buffer in &buffers.0 {
        host(gpu, buffer, report)?;
    }
    Ok(())
}

/// Median seconds of a piece of work, after two rounds to warm up.
pub(crate) fn seconds(stream: &Stream, mut work: impl FnMut() -> Result<()>) -> Result<f64> {
    let mut times = Vec::new();
    for round in 0..ROUNDS + 2 {
        let started = Instant::now();
        work()?;
        stream.wait()?;
        if round >= 2 {
            times.push(started.elapsed().as_secs_f64());
        }
    }
    times.sort_by(f64::total_cmp);
    Ok(times[ROUNDS / 2])
}

pub(crate) fn rate(bytes: usize, seconds: f64) -> f64 {
    bytes as f64 / seconds / 1e9
}

fn copy_bandwidth(stream: &Stream, noise: &[u8]) -> Result<f64> {
    let bytes = 4 << 30;
    let from = repeat(stream, noise, bytes)?;
    let to = stream.gpu().allocate("a copy", bytes)?;
    let time = seconds(stream, || Ok(stream.copy(from.slice(), to.slice())?))?;
    Ok(rate(2 * bytes, time))
}

/// Fills device memory with a buffer again and again.
fn repeat(stream: &Stream, buffer: &[u8], bytes: usize) -> Result<DeviceBuffer> {
    let to = stream.gpu().allocate("data", bytes)?;
    let first = buffer.len().min(bytes);
    stream.upload(&buffer[..first], to.first(first))?;
    let mut at = first;
    while at < bytes {
        let part = first.min(bytes - at);
        stream.copy(to.first(part), to.slice().part(at, part))?;
        at += part;
    }
    stream.wait()?;
    Ok(to)
}

fn erasure_codes(stream: &Stream, noise: &[u8], copy: f64, report: &mut Report) -> Result<()> {
    let code = Code::new(Family::Cauchy, 8, 8)?;
    let encode = product(stream, noise, code.parity().clone())?;
    let ceiling = Ceiling { value: copy / 2.0, unit: "GB/s of data at copy bandwidth" };
    let name = "Reed-Solomon k=8 m=8, encode, GB/s of data";
    report.bar(name, encode, Better::Higher, 400.0, Some(ceiling))?;

    let present: Vec<usize> = (4..12).collect();
    let decode = product(stream, noise, code.rebuild(&present, &[0, 1, 2, 3])?)?;
    let ceiling = Ceiling { value: copy * 8.0 / 12.0, unit: "GB/s of data at copy bandwidth" };
    let name = "Reed-Solomon k=8 m=8, 4 lost, decode, GB/s of data";
    report.bar(name, decode, Better::Higher, 300.0, Some(ceiling))?;

    let wide = product(stream, noise, Code::new(Family::Cauchy, 128, 128)?.parity().clone())?;
    report.bench("Reed-Solomon k=128 m=128, encode", wide, "GB/s", "of data")
}

/// Data bytes a second of one matrix product.
fn product(stream: &Stream, noise: &[u8], matrix: Matrix) -> Result<f64> {
    let shard_bytes = ERASURE_BYTES / matrix.columns();
    let data = repeat(stream, noise, ERASURE_BYTES)?;
    let parity = stream.gpu().allocate("shards", shard_bytes * matrix.rows())?;
    let ins: Vec<DeviceSlice<'_>> =
        (0..matrix.columns()).map(|at| data.slice().part(at * shard_bytes, shard_bytes)).collect();
    let outs: Vec<DeviceSlice<'_>> =
        (0..matrix.rows()).map(|at| parity.slice().part(at * shard_bytes, shard_bytes)).collect();
    let erasure = DeviceErasure::new(stream, matrix)?;
    let time = seconds(stream, || Ok(erasure.queue(stream, &ins, &outs)?))?;
    Ok(rate(ERASURE_BYTES, time))
}

/// What the float codec makes of a buffer.
struct FloatOutcome {
    ratio: f64,
    encode: f64,
    decode: f64,
}

fn run_float(stream: &Stream, buffer: &Buffer, element: Element) -> Result<FloatOutcome> {
    let input = put(stream, &buffer.bytes)?;
    let bytes = buffer.bytes.len();
    let out = stream.gpu().allocate("encoded", DeviceFloat::out_bytes_max(bytes))?;
    let mut codec = DeviceFloat::new(stream.gpu(), element, bytes)?;
    let encode = seconds(stream, || Ok(codec.queue_encode(stream, input.slice(), out.slice())?))?;
    let packed = codec.packed();
    let back = stream.gpu().allocate("decoded", bytes)?;
    let decode =
        seconds(stream, || Ok(codec.decode(stream, out.slice(), &packed, back.slice())?))?;
    let mut restored = vec![0; bytes];
    stream.download(back.slice(), &mut restored)?;
    anyhow::ensure!(restored == buffer.bytes, "{} did not come back", buffer.name);
    let stored = packed.bytes() + 4 * packed.sizes().len() + float::STREAM_HEADER_BYTES;
    let ratio = bytes as f64 / stored as f64;
    Ok(FloatOutcome { ratio, encode: rate(bytes, encode), decode: rate(bytes, decode) })
}

/// Memory of mixed contents, taken for numbers.
fn float_figures(stream: &Stream, buffer: &Buffer, report: &mut Report) -> Result<()> {
    for element in Element::ALL {
        let found = run_float(stream, buffer, element)?;
        let title = format!("float codec as {element:?}, {}, compress", buffer.name);
        let note = format!("ratio {:.3}, decompress {:.0} GB/s", found.ratio, found.decode);
        report.bench(&title, found.encode, "GB/s", &note)?;
    }
    Ok(())
}

fn floats(
    stream: &Stream,
    buffer: &Buffer,
    element: Element,
    copy: f64,
    report: &mut Report,
) -> Result<()> {
    let found = run_float(stream, buffer, element)?;
    let goal = match element {
        Element::Bf16 => 1.4,
        _ => 1.25,
    };
    let name = buffer.name;
    let most =
        Ceiling { value: entropy_ratio(&buffer.bytes, element), unit: "entropy of byte planes" };
    let memory = Ceiling { value: copy / 2.0, unit: "GB/s copied" };
    let title = format!("float codec, {name}, ratio");
    report.bar(&title, found.ratio, Better::Higher, goal, Some(most))?;
    let title = format!("float codec, {name}, compress GB/s");
    report.bar(&title, found.encode, Better::Higher, 100.0, Some(memory))?;
    let title = format!("float codec, {name}, decompress GB/s");
    report.bar(&title, found.decode, Better::Higher, 200.0, Some(memory))
}

/// The ratio that the entropy of byte planes allows, the better of both transforms over the whole
/// sample: what a coder of single bytes could reach at best without knowing more.
fn entropy_ratio(bytes: &[u8], element: Element) -> f64 {
    let size = element.bytes();
    let mut counts = vec![[0_u64; 256]; 2 * size];
    let sample = &bytes[..bytes.len().min(64 << 20)];
    let mask = u64::MAX >> (64 - 8 * size);
    let mut before = 0;
    for number in sample.chunks_exact(size) {
        let value = number.iter().rev().fold(0, |value, byte| value << 8 | u64::from(*byte));
        let delta = value.wrapping_sub(before) & mask;
        before = value;
        let rotated = value << 1 | value >> (8 * size - 1);
        let difference = delta << 1 ^ 0_u64.wrapping_sub(delta >> (8 * size - 1));
        for plane in 0..size {
            counts[plane][(rotated >> (8 * plane) & 255) as usize] += 1;
            counts[size + plane][(difference >> (8 * plane) & 255) as usize] += 1;
        }
    }
    let numbers = (sample.len() / size) as f64;
    let bits = |count: &u64| match *count as f64 / numbers {
        0.0 => 0.0,
        share => -share * share.log2(),
    };
    let total = |planes: &[[u64; 256]]| planes.iter().flatten().map(bits).sum::<f64>();
    8.0 * size as f64 / total(&counts[..size]).min(total(&counts[size..]))
}

/// Without a filter, to compare with the peer; and with the one that suits the numbers.
fn deflates(
    stream: &Stream,
    buffer: &Buffer,
    peer: Option<&Peer>,
    report: &mut Report,
) -> Result<()> {
    let (fast, ratio) = deflate_with(stream, buffer, FilterKind::None, report)?;
    for codec in ["nvCOMP Deflate", "nvCOMP GDeflate"] {
        let Some((peer_rate, peer_ratio)) = peer.and_then(|peer| peer.of(buffer.name, codec))
        else {
            continue;
        };
        let title = format!("Deflate, {}, speed against {codec}", buffer.name);
        let ceiling = Ceiling { value: peer_rate, unit: "GB/s of the peer" };
        report.bar(&title, fast / peer_rate, Better::Higher, 2.0, Some(ceiling))?;
        let title = format!("Deflate, {}, ratio against {codec}", buffer.name);
        let ceiling = Ceiling { value: peer_ratio, unit: "ratio of the peer" };
        report.bar(&title, ratio / peer_ratio, Better::Higher, 0.98, Some(ceiling))?;
    }
    let filter = match buffer.element {
        Some(Element::F32) => FilterKind::Shuffle4,
        Some(Element::Bf16) => return Ok(()),
        _ => FilterKind::Shuffle8,
    };
    deflate_with(stream, buffer, filter, report).map(drop)
}

/// GB/s and ratio.
fn deflate_with(
    stream: &Stream,
    buffer: &Buffer,
    filter: FilterKind,
    report: &mut Report,
) -> Result<(f64, f64)> {
    let input = put(stream, &buffer.bytes)?;
    let bytes = buffer.bytes.len();
    let out = stream.gpu().allocate("deflated", DeviceDeflate::out_bytes_max(bytes))?;
    let mut codec = DeviceDeflate::new(stream.gpu(), filter, bytes)?;
    let time = seconds(stream, || Ok(codec.queue_encode(stream, input.slice(), out.slice())?))?;
    let packed = codec.packed();
    let mut streams = vec![0; packed.bytes()];
    stream.download(out.first(packed.bytes()), &mut streams)?;
    check_inflates(buffer, filter, &packed, &streams)?;

    let stored: usize = packed.sizes().iter().map(|size| *size as usize).sum();
    let (fast, ratio) = (rate(bytes, time), bytes as f64 / stored as f64);
    let title = format!("Deflate, {}, filter {filter}, compress", buffer.name);
    report.bench(&title, fast, "GB/s", &format!("ratio {ratio:.3}"))?;
    Ok((fast, ratio))
}

/// Every 64th chunk through the store's decoder, which inflates with libdeflate.
fn check_inflates(
    buffer: &Buffer,
    filter: FilterKind,
    packed: &Packed,
    streams: &[u8],
) -> Result<()> {
    let mut decoder = BlockDecoder::new(deflate::CHUNK_BYTES);
    let chunks = buffer.bytes.chunks(deflate::CHUNK_BYTES).zip(packed.ranges());
    for (chunk, range) in chunks.step_by(64) {
        let block = decoder.decode(CodecKind::Deflate, filter, &streams[range], chunk.len())?;
        anyhow::ensure!(block == chunk, "{} does not inflate", buffer.name);
    }
    Ok(())
}

/// A region, 5 % of its pages changed since the last checkpoint; and hashing alone.
fn region(
    stream: &Stream,
    buffer: &Buffer,
    bytes: u64,
    copy: f64,
    report: &mut Report,
) -> Result<()> {
    let pages = bytes / PAGE as u64;
    let memory = repeat(stream, &buffer.bytes, bytes as usize)?;
    hashing(stream, &memory, copy, report)?;

    let settings = Settings {
        key: KEY,
        hash: HashKind::Xxh3,
        page_bytes: PAGE,
        staging_bytes: bytes as usize / 10,
        choice: Choice::Auto,
    };
    let mut device = memory::open(0, settings)?;
    // SAFETY: the memory outlives the device.
    let own = unsafe { device.register(memory.slice().address(), bytes as usize) }?;
    let found = device.scan(own, None)?;
    anyhow::ensure!(found.changed == pages, "{found:?} of {pages} pages");
    let hashes = device.changed(own, 0, pages)?.hashes;
    let mut blocked = Vec::new();
    let mut staged = 0;
    for round in 0..ROUNDS {
        for page in (0..pages as usize).step_by(20) {
            stream.fill(memory.slice().part(page * PAGE + 64, 3), 0x77 + round as u8)?;
        }
        stream.wait()?;
        device.clear();
        let started = Instant::now();
        let found = device.scan(own, Some(&hashes))?;
        staged = device.stage(own, Which::Changed { first: 0 })?;
        blocked.push(started.elapsed().as_secs_f64() * 1e3);
        anyhow::ensure!(found.changed == pages.div_ceil(20), "{found:?} of {pages} pages");
        anyhow::ensure!(staged == found.changed, "all fit the staging: {staged}");
    }
    // The first round makes the staging.
    blocked.remove(0);
    blocked.sort_by(f64::total_cmp);
    let gib = bytes >> 30;
    let floor =
        Ceiling { value: bytes as f64 / copy / 1e6, unit: "ms to read it at copy bandwidth" };
    let title = format!("{gib} GiB device region, 5 % changed, blocked ms");
    report.bar(&title, blocked[blocked.len() / 2], Better::Lower, 20.0, Some(floor))?;
    transfer(&mut *device, own, staged, report)
}

fn hashing(stream: &Stream, memory: &DeviceBuffer, copy: f64, report: &mut Report) -> Result<()> {
    for page_bytes in [1 << 10, 1 << 16, 1 << 20] {
        let fast = hash_rate(stream, memory, page_bytes)?;
        let title = format!("hash of {} KiB pages", page_bytes >> 10);
        report.bench(&title, fast, "GB/s", "bytes read")?;
    }
    let fast = hash_rate(stream, memory, PAGE)?;
    report.bench("hash of 4 KiB pages", fast, "GB/s", "bytes read")?;
    let title = "hash of 4 KiB pages, share of copy bandwidth";
    let ceiling = Ceiling { value: copy, unit: "GB/s read and written" };
    report.bar(title, fast / copy, Better::Higher, 0.6, Some(ceiling))
}

fn hash_rate(stream: &Stream, memory: &DeviceBuffer, page_bytes: usize) -> Result<f64> {
    let hasher = DeviceHasher::new(&KEY);
    let count = memory.bytes() / page_bytes;
    let digests = stream.gpu().allocate("digests", count * DIGEST_BYTES)?;
    let marks = stream.gpu().allocate("marks", count)?;
    let (pages, fresh, marked) = (memory.slice(), digests.slice(), marks.slice());
    let time =
        seconds(stream, || Ok(hasher.queue(stream, pages, page_bytes, None, fresh, marked)?))?;
    Ok(rate(memory.bytes(), time))
}

/// Compresses the staged pages and brings them over; bytes against what the ratio promises.
fn transfer(
    device: &mut dyn Device,
    region: DeviceRegion,
    staged: u64,
    report: &mut Report,
) -> Result<()> {
    let all: Vec<u32> = (0..staged as u32).collect();
    let bytes = staged as usize * PAGE;
    let (mut time, mut crossed) = (f64::MAX, 0);
    for _ in 0..3 {
        let started = Instant::now();
        let changed = device.changed(region, 0, staged)?;
        crossed = changed.pages.len() * 8 + changed.hashes.len();
        device.drain(&all, 8, true, &mut |drained| {
            let (Drained::Block { bytes, .. } | Drained::Pages(bytes)) = drained;
            crossed += bytes.len();
            true
        })?;
        time = time.min(started.elapsed().as_secs_f64());
    }
    let encoded = crossed - staged as usize * (8 + DIGEST_BYTES);
    // The sample that is tried, besides.
    let all = crossed + (1 << 20);
    let ratio = bytes as f64 / encoded as f64;
    let title = "bytes over the bus, share of changed bytes / ratio";
    let ceiling = Ceiling { value: ratio, unit: "ratio" };
    report.bar(title, all as f64 / encoded as f64, Better::Lower, 1.02, Some(ceiling))?;
    let note =
        format!("{} MiB of changed pages, ratio {ratio:.3}, beside the program", bytes >> 20);
    report.bench("compress and drain changed pages", time * 1e3, "ms", &note)
}

/// Host memory through the device against all cores of the host.
fn host(gpu: &Gpu, buffer: &Buffer, report: &mut Report) -> Result<()> {
    let name = buffer.name;
    let mut pinned = gpu.pinned("data", buffer.bytes.len())?;
    pinned.copy_from_slice(&buffer.bytes);
    let codecs = [
        Some(("Deflate", Codec::Deflate(FilterKind::None))),
        buffer.element.map(|e| ("float", Codec::Float(e))),
    ];
    for (codec_name, codec) in codecs.into_iter().flatten() {
        for (from, is_pinned) in [("pageable", false), ("pinned", true)] {
            let mut pipeline = HostPipeline::new(gpu, codec, PIECE)?;
            let mut best = (f64::MAX, 0);
            for _ in 0..4 {
                let source = match is_pinned {
                    true => Source::Pinned(&pinned),
                    false => Source::Pageable(&buffer.bytes),
                };
                let started = Instant::now();
                let mut bytes = 0;
                pipeline.run(source, |piece| bytes += piece.bytes.len())?;
                let time = started.elapsed().as_secs_f64();
                if time < best.0 {
                    best = (time, bytes);
                }
            }
            let title = format!("host pipeline, gpu {codec_name}, {name}, {from}");
            let ratio = buffer.bytes.len() as f64 / best.1 as f64;
            let note = format!("ratio {ratio:.3}, both transfers included");
            report.bench(&title, rate(buffer.bytes.len(), best.0), "GB/s", &note)?;
        }
    }
    for spec in ["deflate:1", "zstd:1", "lz4"] {
        let (fast, ratio) = on_all_cores(&buffer.bytes, spec)?;
        let title = format!("host pipeline, all cores {spec}, {name}");
        report.bench(&title, fast, "GB/s", &format!("ratio {ratio:.3}, filter chosen live"))?;
    }
    Ok(())
}

/// The engine's own block encoder on every core; GB/s and ratio.
fn on_all_cores(bytes: &[u8], spec: &str) -> Result<(f64, f64)> {
    const BLOCK: usize = 128 << 10;
    let spec: CodecSpec = spec.parse()?;
    let cores = std::thread::available_parallelism()?.get();
    let started = Instant::now();
    let share = bytes.len().div_ceil(cores).next_multiple_of(BLOCK);
    let stored: usize = std::thread::scope(|scope| {
        let threads: Vec<_> = bytes
            .chunks(share)
            .map(|part| {
                scope.spawn(move || {
                    let mut encoder = BlockEncoder::new(spec, FilterChoice::Auto, BLOCK);
                    part.chunks(BLOCK).map(|raw| encoder.encode(raw, 0).bytes.len()).sum::<usize>()
                })
            })
            .collect();
        threads.into_iter().map(|thread| thread.join().expect("no panic")).sum()
    });
    let time = started.elapsed().as_secs_f64();
    Ok((rate(bytes.len(), time), bytes.len() as f64 / stored as f64))
}
