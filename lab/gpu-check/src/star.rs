//! Shards in host memory through the device, and whole stars with its help: the bytes of the CPU, and
//! how fast that is beside it.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use anyhow::{Result, anyhow};
use lab_ring::{Lent, Nowhere};
use standfast_comm::Comm;
use standfast_format::{AttemptId, JobId, Version};
use standfast_gpu::erasure::{
    self, Code, DeviceArithmetic, Family, HostErasure, Input, Matrix, Output, Room,
    STAR_BLOCK_BYTES,
};
use standfast_gpu::{Gpu, Stream};
use standfast_ring::kernel::Combine;
use standfast_ring::topology::Piece;
use standfast_ring::{
    Arithmetic, Cpu, Means, Memory, Options, Order, Outside, Shape, Source, Stamp, Topology,
    encode_with,
};
use standfast_stand_in::DevicePieces;
use standfast_testkit::{Threads, run_threads, vectors};

use crate::bench::{rate, seconds};
use crate::check::put;
use crate::job::Job;
use crate::report::Report;

pub(crate) fn check(gpu: &Gpu, report: &mut Report) -> Result<()> {
    let stream = gpu.stream()?;
    host_products(&stream, report)?;
    stars(gpu, report)
}

/// Products of shards in ordinary, pinned and device memory, the last also at odd addresses.
fn host_products(stream: &Stream, report: &mut Report) -> Result<()> {
    const PIECE: usize = 64 << 10;
    let gpu = stream.gpu();
    let (mut cases, mut wrong) = (0, Vec::new());
    for (k, m) in [(1, 1), (1, 8), (3, 2), (8, 8), (100, 20)] {
        let code = Code::new(Family::Cauchy, k, m)?;
        let mut device = HostErasure::new(gpu, Room { columns: k, rows: m, piece_bytes: PIECE })?;
        for bytes in [1, PIECE - 1, PIECE, 3 * PIECE, 7 * PIECE + 12_345] {
            let data: Vec<Vec<u8>> = (0..k).map(|at| vectors::random(bytes, at as u64)).collect();
            let views: Vec<&[u8]> = data.iter().map(Vec::as_slice).collect();
            let expected = erasure::multiply(code.parity(), &views);
            let joined = data.concat();
            let mut pinned = gpu.pinned("shards", joined.len())?;
            pinned.copy_from_slice(&joined);
            let there = put(stream, &joined)?;
            let mut pinned_rows = gpu.pinned("rows", m * bytes)?;
            for way in ["pageable", "pinned", "device"] {
                let input = |at: usize| match way {
                    "pageable" => Input::Pageable(&data[at]),
                    "pinned" => Input::Pinned(&pinned[at * bytes..][..bytes]),
                    _ => Input::Device(there.slice().part(at * bytes, bytes)),
                };
                let shards: Vec<Input<'_>> = (0..k).map(input).collect();
                let mut rows = vec![vec![0; bytes]; m];
                match way {
                    "pinned" => {
                        let out = pinned_rows.chunks_mut(bytes).map(Output::Pinned);
                        device.multiply(code.parity(), &shards, &mut out.collect::<Vec<_>>())?;
                        rows = pinned_rows.chunks(bytes).map(<[u8]>::to_vec).collect();
                    }
                    _ => {
                        let out = rows.iter_mut().map(|row| Output::Pageable(row));
                        device.multiply(code.parity(), &shards, &mut out.collect::<Vec<_>>())?;
                    }
                }
                cases += 1;
                if rows != expected {
                    wrong.push(format!("{way}, {k}+{m}, {bytes} bytes"));
                }
            }
        }
    }
    report.check("Reed-Solomon of shards in host memory", cases, &wrong)
}

/// Encoding and recovery by a whole job, members of unequal lengths, several nodes lost.
fn stars(gpu: &Gpu, report: &mut Report) -> Result<()> {
    let (mut cases, mut wrong) = (0, Vec::new());
    for (shape, lost, block_bytes, unit) in [
        ((2, 1, 1), &[1][..], 1024, 1000),
        ((4, 2, 2), &[0, 1][..], 4096, 12_345),
        ((6, 3, 2), &[1, 4][..], 128 << 10, 300_001),
        ((16, 8, 8), &[0, 2, 5, 7][..], 128 << 10, 400_000),
        ((20, 10, 10), &[0, 3, 4, 7, 9][..], 1 << 20, 900_000),
        ((4, 2, 2), &[1, 2][..], STAR_BLOCK_BYTES, 5_000_003),
    ] {
        let outside = |why: Outside| anyhow!("{shape:?}: {why}");
        let job = Job::new(shape, block_bytes, |rank| rank * 5 % 4 * unit).map_err(outside)?;
        let expected = job.run(lost, |_| Ok((Memory::default(), Box::new(Cpu) as _)));
        let expected = expected.map_err(outside)?;
        let said = Arc::new(Mutex::new(Vec::new()));
        let arithmetic = || -> Result<DeviceArithmetic, Outside> {
            let device = HostErasure::new(gpu, DeviceArithmetic::ROOM)?;
            let log = Arc::clone(&said);
            let say = move |why| log.lock().unwrap_or_else(PoisonError::into_inner).push(why);
            Ok(DeviceArithmetic::new(device, say))
        };
        let host = job.run(lost, |_| Ok((Memory::default(), Box::new(arithmetic()?) as _)));
        let there = job.run(lost, |_| {
            let pieces = DevicePieces::new(gpu);
            let own = arithmetic()?.with_pieces(pieces.clone());
            Ok((pieces, Box::new(own) as _))
        });
        for (way, found) in [("host", host), ("device", there)] {
            cases += 2;
            match found {
                Ok(found) if found == expected => {}
                Ok(_) => wrong.push(format!("{shape:?}, pieces in {way} memory")),
                Err(why) => wrong.push(format!("{shape:?}, pieces in {way} memory: {why}")),
            }
        }
        wrong.append(&mut said.lock().unwrap_or_else(PoisonError::into_inner));
    }
    report.check("stars: encode and recover with products of the device", cases, &wrong)
}

pub(crate) fn bench(stream: &Stream, noise: &[u8], report: &mut Report) -> Result<()> {
    let code = Code::new(Family::Cauchy, 8, 8)?;
    let present: Vec<usize> = (4..12).collect();
    let decode = code.rebuild(&present, &[0, 1, 2, 3])?;
    let column = Matrix::new(8, 1, |row, _| code.parity().cell(row, 0));
    for (name, matrix, piece_bytes) in [
        ("k=8 m=8, encode", code.parity(), 4 << 20),
        ("k=8 m=8, 4 lost, decode", &decode, 4 << 20),
        ("one member for 8 shards", &column, 1 << 20),
    ] {
        products(stream, noise, matrix, piece_bytes, &format!("host Reed-Solomon {name}"), report)?;
    }
    star_speeds(stream.gpu(), noise, report)
}

/// Data bytes a second of a product of shards in host memory: the device, all cores, one core.
fn products(
    stream: &Stream,
    noise: &[u8],
    matrix: &Matrix,
    piece_bytes: usize,
    name: &str,
    report: &mut Report,
) -> Result<()> {
    let (gpu, columns, rows) = (stream.gpu(), matrix.columns(), matrix.rows());
    // 8 shards' worth of rows at most, as long as the buffer's data.
    let bytes = noise.len() / columns.max(rows);
    let shards: Vec<&[u8]> = noise.chunks_exact(bytes).take(columns).collect();
    let data = columns * bytes;
    let mut out = vec![vec![1; bytes]; rows];
    let expected = {
        let mut out = vec![vec![0; bytes]; rows];
        on_all_cores(matrix, &shards, &mut out)?;
        out
    };
    let mut device = HostErasure::new(gpu, Room { columns, rows, piece_bytes })?;
    let ins: Vec<Input<'_>> = shards.iter().map(|shard| Input::Pageable(shard)).collect();
    let time = seconds(stream, || {
        let mut rows: Vec<Output<'_>> = out.iter_mut().map(|row| Output::Pageable(row)).collect();
        Ok(device.multiply(matrix, &ins, &mut rows)?)
    })?;
    anyhow::ensure!(out == expected, "{name}: another product");
    let note = "of data, both transfers included";
    report.bench(&format!("{name}, gpu, pageable"), rate(data, time), "GB/s", note)?;

    let mut pinned = gpu.pinned("data", data)?;
    pinned.chunks_mut(bytes).zip(&shards).for_each(|(to, shard)| to.copy_from_slice(shard));
    let mut pinned_out = gpu.pinned("rows", rows * bytes)?;
    let ins: Vec<Input<'_>> = pinned.chunks(bytes).map(Input::Pinned).collect();
    let time = seconds(stream, || {
        let mut rows: Vec<Output<'_>> = pinned_out.chunks_mut(bytes).map(Output::Pinned).collect();
        Ok(device.multiply(matrix, &ins, &mut rows)?)
    })?;
    anyhow::ensure!(pinned_out.chunks(bytes).eq(expected.iter()), "{name}: another product");
    report.bench(&format!("{name}, gpu, pinned"), rate(data, time), "GB/s", note)?;

    let time = seconds(stream, || on_all_cores(matrix, &shards, &mut out))?;
    report.bench(&format!("{name}, all cores"), rate(data, time), "GB/s", "of data")?;
    let combine = Combine::new(matrix);
    let time = seconds(stream, || {
        // In blocks that stay in the cache, as the star goes.
        const BLOCK: usize = 128 << 10;
        for at in (0..bytes).step_by(BLOCK) {
            let end = (at + BLOCK).min(bytes);
            let ins: Vec<&[u8]> = shards.iter().map(|shard| &shard[at..end]).collect();
            let mut rows: Vec<&mut [u8]> = out.iter_mut().map(|row| &mut row[at..end]).collect();
            combine.set(&mut rows, &ins);
        }
        Ok(())
    })?;
    report.bench(&format!("{name}, one core"), rate(data, time), "GB/s", "of data")
}

/// Every core takes a stretch of all shards.
fn on_all_cores(matrix: &Matrix, shards: &[&[u8]], out: &mut [Vec<u8>]) -> Result<()> {
    let combine = Combine::new(matrix);
    let cores = std::thread::available_parallelism()?.get();
    let share = shards[0].len().div_ceil(cores).next_multiple_of(4096);
    let mut parts: Vec<Vec<&mut [u8]>> = (0..cores).map(|_| Vec::new()).collect();
    for row in out {
        parts.iter_mut().zip(row.chunks_mut(share)).for_each(|(part, own)| part.push(own));
    }
    std::thread::scope(|scope| {
        for (at, mut rows) in parts.into_iter().enumerate().filter(|(_, part)| !part.is_empty()) {
            let (combine, bytes) = (&combine, rows[0].len());
            scope.spawn(move || {
                let ins: Vec<&[u8]> =
                    shards.iter().map(|shard| &shard[at * share..][..bytes]).collect();
                combine.set(&mut rows, &ins);
            });
        }
    });
    Ok(())
}

/// Ranks of the job that is measured, all on this machine, in groups of 8 with 8 shards.
const RANKS: usize = 16;
const STAMP: Stamp = Stamp { job: JobId([1; 16]), version: Version(1), attempt: AttemptId([2; 8]) };

/// Who multiplies, and where the members are.
#[derive(Clone, Copy, PartialEq)]
enum Way {
    Cpu,
    Host,
    Device,
}

/// Whole stars, their messages, checksums and sums included.
fn star_speeds(gpu: &Gpu, noise: &[u8], report: &mut Report) -> Result<()> {
    let topology = Topology::of_nodes(RANKS, Shape::full(8))?;
    let bytes = (noise.len() / RANKS).min(64 << 20);
    for (name, way, block_bytes) in [
        ("cpu", Way::Cpu, 128 << 10),
        ("cpu", Way::Cpu, STAR_BLOCK_BYTES),
        ("gpu, members in host memory", Way::Host, 128 << 10),
        ("gpu, members in host memory", Way::Host, 1 << 20),
        ("gpu, members in host memory", Way::Host, STAR_BLOCK_BYTES),
        ("gpu, members in device memory", Way::Device, 128 << 10),
        ("gpu, members in device memory", Way::Device, STAR_BLOCK_BYTES),
    ] {
        let options = Options { block_bytes, order: Order::Star };
        let ended = run_threads(RANKS, |comm| {
            let member = &noise[comm.rank() * bytes..][..bytes];
            star_time(&comm, gpu, way, &topology, member, options)
        });
        let times = ended.into_iter().collect::<Result<Vec<f64>>>()?;
        let title = format!("star k=8 m=8, {name}, blocks of {} KiB", block_bytes >> 10);
        let note = "of data, 16 ranks on this machine, messages and sums included";
        report.bench(&title, rate(RANKS * bytes, times[0]), "GB/s", note)?;
    }
    Ok(())
}

/// The least time of a few encodings, from the moment that all ranks are ready.
fn star_time(
    comm: &Threads,
    gpu: &Gpu,
    way: Way,
    topology: &Topology,
    member: &[u8],
    options: Options,
) -> Result<f64> {
    let (group, place) = topology.group_of(comm.rank());
    let pieces = DevicePieces::new(gpu);
    if way == Way::Device {
        let (stream, buffer) = (gpu.stream()?, gpu.allocate("a member", member.len())?);
        stream.upload(member, buffer.slice())?;
        pieces.adopt(Piece { group, index: place as u32 }, stream, buffer);
    }
    let device = || -> Result<DeviceArithmetic> {
        let say = |why| eprintln!("gpu-check: {why}");
        Ok(DeviceArithmetic::new(HostErasure::new(gpu, DeviceArithmetic::ROOM)?, say))
    };
    let mut arithmetic: Box<dyn Arithmetic> = match way {
        Way::Cpu => Box::new(Cpu),
        Way::Host => Box::new(device()?),
        Way::Device => Box::new(device()?.with_pieces(pieces.clone())),
    };
    let (mut lent, mut there) = (Lent(member), pieces);
    let mut best = f64::MAX;
    for _ in 0..4 {
        let source: &mut dyn Source = match way {
            Way::Device => &mut there,
            Way::Cpu | Way::Host => &mut lent,
        };
        let mut means = Means { source, sink: &mut Nowhere, arithmetic: &mut *arithmetic };
        comm.barrier()?;
        let started = Instant::now();
        encode_with(comm, topology, STAMP, member.len() as u64, options, &mut means)?;
        comm.barrier()?;
        best = best.min(started.elapsed().as_secs_f64());
    }
    Ok(best)
}
