//! Every kernel against its reference.

use anyhow::Result;
use gpu_check::pipeline::{Codec, HostPipeline, Source};
use standfast_capture::{ChangedPages, Device, DeviceRegion, Drained, Which};
use standfast_format::{CodecKind, FilterKind, HashKind};
use standfast_gpu::deflate::{self, DeviceDeflate};
use standfast_gpu::erasure::{self, Code, DeviceErasure, Family, Matrix};
use standfast_gpu::float::{self, DeviceFloat, Element};
use standfast_gpu::hash::{DIGEST_BYTES, DeviceHasher, MARK_CHANGED, MARK_ZERO};
use standfast_gpu::memory::{self, Choice, DeviceMemory, Settings};
use standfast_gpu::{DeviceBuffer, Error, Gpu, Stream};
use standfast_reduce::{BlockDecoder, PageHasher};
use standfast_stand_in::{self as reference, Faults, StandIn};
use standfast_testkit::vectors;

use crate::report::Report;

const KEY: [u8; 32] = [0x5f; 32];

pub(crate) fn all(gpu: &Gpu, report: &mut Report) -> Result<()> {
    let stream = gpu.stream()?;
    hashes(&stream, report)?;
    erasure_codes(&stream, report)?;
    crate::star::check(gpu, report)?;
    floats(&stream, report)?;
    damaged_floats(&stream, report)?;
    deflated(&stream, report)?;
    regions(&stream, report)?;
    pipelines(gpu, report)?;
    crate::broker::all(report)?;
    faults(gpu, report)
}

pub(crate) fn put(stream: &Stream, bytes: &[u8]) -> Result<DeviceBuffer> {
    let buffer = stream.gpu().allocate("a test vector", bytes.len())?;
    stream.upload(bytes, buffer.slice())?;
    Ok(buffer)
}

fn get(stream: &Stream, buffer: &DeviceBuffer, bytes: usize) -> Result<Vec<u8>> {
    let mut out = vec![0; bytes];
    stream.download(buffer.first(bytes), &mut out)?;
    Ok(out)
}

/// Digests, zero marks and changed marks, for every page size.
fn hashes(stream: &Stream, report: &mut Report) -> Result<()> {
    let (mut cases, mut wrong) = (0, Vec::new());
    let host = PageHasher::new(HashKind::Xxh3, &KEY);
    let device = DeviceHasher::new(&KEY);
    for shift in 10..=20 {
        let page_bytes = 1 << shift;
        let mut raw = vectors::mixed_pages((page_bytes * 5).max(300 * 1024), shift as u64);
        raw.truncate(raw.len() / page_bytes * page_bytes);
        raw[page_bytes..2 * page_bytes].fill(0);
        let count = raw.len() / page_bytes;
        let mut expected = vec![0; count * DIGEST_BYTES];
        host.hash_pages(&raw, page_bytes, &mut expected);
        // Every third page differs from what was there before.
        let mut before = expected.clone();
        before.chunks_mut(3 * DIGEST_BYTES).for_each(|digest| digest[9] ^= 1);
        let pages = put(stream, &raw)?;
        let old = put(stream, &before)?;
        let digests = stream.gpu().allocate("digests", count * DIGEST_BYTES)?;
        let marks = stream.gpu().allocate("marks", count)?;
        let (fresh, marked) = (digests.slice(), marks.slice());
        device.queue(stream, pages.slice(), page_bytes, Some(old.slice()), fresh, marked)?;
        cases += count;
        if get(stream, &digests, expected.len())? != expected {
            wrong.push(format!("digests of pages of {page_bytes}"));
        }
        let right = (0..count).map(|page| {
            let zero = raw[page * page_bytes..][..page_bytes].iter().all(|byte| *byte == 0);
            let changed = page % 3 == 0;
            (u8::from(zero) * MARK_ZERO) | (u8::from(changed) * MARK_CHANGED)
        });
        if get(stream, &marks, count)? != right.collect::<Vec<u8>>() {
            wrong.push(format!("marks of pages of {page_bytes}"));
        }
    }
    report.check("hash_pages: XXH3-128 of pages of 1 KiB to 1 MiB", cases, &wrong)
}

fn product_differs(stream: &Stream, matrix: &Matrix, shards: &[Vec<u8>]) -> Result<bool> {
    let views: Vec<&[u8]> = shards.iter().map(Vec::as_slice).collect();
    let expected = erasure::multiply(matrix, &views);
    let inputs = shards.iter().map(|shard| put(stream, shard)).collect::<Result<Vec<_>>>()?;
    let bytes = shards[0].len();
    let outputs = (0..matrix.rows())
        .map(|_| stream.gpu().allocate("a shard", bytes))
        .collect::<Result<Vec<_>, _>>()?;
    let ins: Vec<_> = inputs.iter().map(DeviceBuffer::slice).collect();
    let outs: Vec<_> = outputs.iter().map(DeviceBuffer::slice).collect();
    DeviceErasure::new(stream, matrix.clone())?.queue(stream, &ins, &outs)?;
    for (buffer, shard) in outputs.iter().zip(&expected) {
        if get(stream, buffer, bytes)? != *shard {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Encoding and rebuilding, small and largest codes, uneven lengths.
fn erasure_codes(stream: &Stream, report: &mut Report) -> Result<()> {
    let (mut cases, mut wrong) = (0, Vec::new());
    for (k, m, bytes) in [
        (1, 1, 16),
        (2, 1, 1),
        (3, 2, 1000),
        (8, 8, 70_003),
        (5, 13, 4096),
        (100, 20, 777),
        (128, 128, 333),
    ] {
        let code = Code::new(Family::Cauchy, k, m)?;
        let data: Vec<Vec<u8>> = (0..k).map(|at| vectors::random(bytes, at as u64 + 1)).collect();
        let views: Vec<&[u8]> = data.iter().map(Vec::as_slice).collect();
        cases += 1;
        if product_differs(stream, code.parity(), &data)? {
            wrong.push(format!("parity of {k}+{m}, {bytes} bytes"));
        }
        let mut all = data.clone();
        all.extend(erasure::multiply(code.parity(), &views));
        // The first data shards are lost; the last parity shards stand in.
        let lost: Vec<usize> = (0..k.min(m)).collect();
        let present: Vec<usize> = (0..k + m).rev().take(k).collect();
        let kept: Vec<Vec<u8>> = present.iter().map(|at| all[*at].clone()).collect();
        cases += 1;
        if product_differs(stream, &code.rebuild(&present, &lost)?, &kept)? {
            wrong.push(format!("rebuilding {k}+{m}, {bytes} bytes"));
        }
    }
    report.check("multiply_rows: Reed-Solomon", cases, &wrong)
}

/// Encoded on the device: the bytes of the CPU; decoded on the device: the numbers.
fn floats(stream: &Stream, report: &mut Report) -> Result<()> {
    let (mut cases, mut wrong) = (0, Vec::new());
    for (name, raw) in vectors::all() {
        for element in Element::ALL {
            let input = put(stream, &raw)?;
            let out = stream.gpu().allocate("encoded", DeviceFloat::out_bytes_max(raw.len()))?;
            let mut codec = DeviceFloat::new(stream.gpu(), element, raw.len())?;
            codec.queue_encode(stream, input.slice(), out.slice())?;
            stream.wait()?;
            let packed = codec.packed();
            let payload = get(stream, &out, packed.bytes())?;
            let expected = reference::float::encode(&raw, element);
            cases += 1;
            if float::frame(element, raw.len() as u64, &packed, &payload) != expected {
                wrong.push(format!("{name} as {element:?}, encoded"));
            }
            let parsed = float::parse(&expected)?;
            let packed_there = put(stream, parsed.payload)?;
            let decoded = stream.gpu().allocate("decoded", raw.len())?;
            codec.decode(stream, packed_there.slice(), &parsed.packed, decoded.slice())?;
            if get(stream, &decoded, raw.len())? != raw {
                wrong.push(format!("{name} as {element:?}, decoded"));
            }
        }
    }
    report.check("float_encode, float_pack, float_decode", cases, &wrong)
}

/// A changed byte gives an error or other numbers, and never hurts the device.
fn damaged_floats(stream: &Stream, report: &mut Report) -> Result<()> {
    let raw = vectors::noisy_f64(70_000, 3);
    let encoded = reference::float::encode(&raw, Element::F64);
    let parsed = float::parse(&encoded)?;
    let codec = DeviceFloat::new(stream.gpu(), Element::F64, raw.len())?;
    let decoded = stream.gpu().allocate("decoded", raw.len())?;
    let (mut cases, mut wrong) = (0, Vec::new());
    for at in (0..parsed.payload.len()).step_by(251) {
        let mut payload = parsed.payload.to_vec();
        payload[at] ^= 0x41;
        let there = put(stream, &payload)?;
        let device = codec.decode(stream, there.slice(), &parsed.packed, decoded.slice());
        let host =
            float::decode(&float::frame(Element::F64, raw.len() as u64, &parsed.packed, &payload));
        cases += 1;
        let same = match (&device, &host) {
            (Ok(()), Ok(numbers)) => get(stream, &decoded, raw.len())? == *numbers,
            (Err(fault), Err(_)) => !fault.is_device_fault(),
            _ => false,
        };
        if !same {
            wrong.push(format!("byte {at}: device {device:?}, host {:?}", host.map(|_| ())));
        }
    }
    report.check("float_decode of damaged chunks", cases, &wrong)
}

/// Compressed on the device: the bytes of the CPU, and a block that the store decodes.
fn deflated(stream: &Stream, report: &mut Report) -> Result<()> {
    let (mut cases, mut wrong) = (0, Vec::new());
    let mut decoder = BlockDecoder::new(deflate::CHUNK_BYTES);
    for (name, raw) in vectors::all() {
        for filter in [FilterKind::None, FilterKind::Shuffle4, FilterKind::Shuffle8] {
            let input = put(stream, &raw)?;
            let out = stream.gpu().allocate("deflated", DeviceDeflate::out_bytes_max(raw.len()))?;
            let mut codec = DeviceDeflate::new(stream.gpu(), filter, raw.len())?;
            codec.queue_encode(stream, input.slice(), out.slice())?;
            stream.wait()?;
            let packed = codec.packed();
            let bytes = get(stream, &out, packed.bytes())?;
            for (chunk, range) in raw.chunks(deflate::CHUNK_BYTES).zip(packed.ranges()) {
                let found = &bytes[range];
                cases += 1;
                let block = decoder.decode(CodecKind::Deflate, filter, found, chunk.len());
                if block.ok() != Some(chunk) {
                    wrong.push(format!("{name}, {filter}: does not inflate"));
                } else if found != reference::deflate::encode_chunk(chunk, filter) {
                    wrong.push(format!("{name}, {filter}: differs from the reference"));
                }
            }
        }
    }
    for (name, raw) in vectors::all() {
        let input = put(stream, &raw)?;
        let out = stream.gpu().allocate("deflated", DeviceDeflate::out_bytes_max(raw.len()))?;
        let mut codec = DeviceDeflate::parts(stream.gpu(), raw.len())?;
        codec.queue_encode(stream, input.slice(), out.slice())?;
        stream.wait()?;
        let packed = codec.packed();
        let bytes = get(stream, &out, packed.bytes())?;
        for (chunk, range) in raw.chunks(deflate::CHUNK_BYTES).zip(packed.ranges()) {
            cases += 1;
            if bytes[range] != reference::deflate::encode_part(chunk) {
                wrong.push(format!("{name}: a part differs from the reference"));
            }
        }
    }
    report.check("deflate_chunks", cases, &wrong)
}

/// Two scans with changes in between, on the device and on its stand-in: the same pages, hashes and
/// blocks; and what is written back is there.
fn regions(stream: &Stream, report: &mut Report) -> Result<()> {
    let (mut cases, mut wrong) = (0, Vec::new());
    for (page_bytes, bytes, elem) in
        [(4096, 40_000_100, 0), (4096, 17_000_000, 8), (1024, 3_000_001, 2), (1 << 20, 9 << 20, 4)]
    {
        let settings = Settings {
            key: KEY,
            hash: HashKind::Xxh3,
            page_bytes,
            staging_bytes: 16 << 20,
            choice: Choice::Auto,
        };
        let mut raw = match elem {
            2 => vectors::bf16_weights(bytes, 3),
            4 => vectors::noisy_f32(bytes, 3),
            _ => vectors::mixed_pages(bytes, 3),
        };
        let memory = put(stream, &raw)?;
        let mut device = memory::open(0, settings)?;
        let mut stand_in = DeviceMemory::new(StandIn::new(&KEY, Faults::default()), settings, None);
        let own = raw.as_mut_ptr().expose_provenance() as u64;
        // SAFETY: both outlive their devices.
        let (there, here) = unsafe {
            (device.register(memory.slice().address(), bytes)?, stand_in.register(own, bytes)?)
        };
        let mut hashes = vec![0; bytes.div_ceil(page_bytes) * DIGEST_BYTES];
        for round in 0..2 {
            let before = (round > 0).then_some(hashes.as_slice());
            let found = taken(&mut *device, there, before, elem)?;
            let expected = taken(&mut stand_in, here, before, elem)?;
            cases += found.pages.len();
            if found != expected {
                wrong.push(format!("pages of {page_bytes}, scan {round}"));
            }
            for (page, hash) in found.pages.iter().zip(found.hashes.chunks_exact(DIGEST_BYTES)) {
                hashes[*page as usize * DIGEST_BYTES..][..DIGEST_BYTES].copy_from_slice(hash);
            }
            for at in (0..bytes).step_by(19 * page_bytes + 7).chain([bytes - 1]) {
                raw[at] ^= 0x11;
            }
            stream.upload(&raw, memory.slice())?;
        }
        let filling = device.fill()?;
        filling.zeros(there, 0, bytes as u64)?;
        filling.finish()?;
        filling.pages(there, 5, &raw[5..])?;
        filling.finish()?;
        let back = get(stream, &memory, bytes)?;
        if back[..5] != [0; 5] || back[5..] != raw[5..] || !device.messages().is_empty() {
            wrong.push(format!("pages of {page_bytes}: not put back"));
        }
    }
    report.check("device regions: scan, stage, drain, put back", cases, &wrong)
}

/// What a scan found and what came over.
#[derive(PartialEq)]
struct Taken {
    pages: Vec<u64>,
    hashes: Vec<u8>,
    zeroed: Vec<u64>,
    blocks: Vec<(u32, CodecKind, Vec<u8>)>,
}

fn taken(
    device: &mut dyn Device,
    region: DeviceRegion,
    before: Option<&[u8]>,
    elem: u8,
) -> Result<Taken> {
    let found = device.scan(region, before)?;
    let ChangedPages { pages, hashes } = device.changed(region, 0, found.changed)?;
    let (zeroed, mut blocks, mut first) = (device.zeroed(region)?, Vec::new(), 0);
    while first < found.changed {
        let count = device.stage(region, Which::Changed { first })?;
        anyhow::ensure!(count > 0, "staging is empty and holds nothing");
        // All but every seventh: as if that one were known.
        let staged: Vec<u32> = (0..count as u32).filter(|at| at % 7 != 6).collect();
        device.drain(&staged, elem, true, &mut |drained| {
            blocks.push(match drained {
                Drained::Block { pages, codec, bytes, .. } => (pages, codec, bytes.to_vec()),
                Drained::Pages(bytes) => (1, CodecKind::None, bytes.to_vec()),
            });
            true
        })?;
        device.clear();
        first += count;
    }
    Ok(Taken { pages, hashes, zeroed, blocks })
}

/// What goes through the pipeline is what a single call makes of it.
fn pipelines(gpu: &Gpu, report: &mut Report) -> Result<()> {
    const PIECE: usize = 1 << 20;
    let mut wrong = Vec::new();
    let raw = vectors::noisy_f64(7 * PIECE + 12_345, 4);
    let mut pinned = gpu.pinned("a test vector", raw.len())?;
    pinned.copy_from_slice(&raw);
    for (name, source) in
        [("pageable", Source::Pageable(&raw)), ("pinned", Source::Pinned(&pinned))]
    {
        let mut pipeline = HostPipeline::new(gpu, Codec::Float(Element::F64), PIECE)?;
        let mut next = 0;
        pipeline.run(source, |piece| {
            let part = &raw[piece.raw.clone()];
            let framed = float::frame(Element::F64, part.len() as u64, piece.packed, piece.bytes);
            if piece.raw.start != next || framed != reference::float::encode(part, Element::F64) {
                wrong.push(format!("{name}: piece at {}", piece.raw.start));
            }
            next = piece.raw.end;
        })?;
        if next != raw.len() {
            wrong.push(format!("{name}: ends at {next}"));
        }
    }
    report.check("host pipeline", 2, &wrong)
}

/// More memory than any device has: a typed error, and the device works on.
fn faults(gpu: &Gpu, report: &mut Report) -> Result<()> {
    const TOO_MUCH: usize = 1 << 50;
    let mut wrong = Vec::new();
    for _ in 0..3 {
        match gpu.allocate("too much", TOO_MUCH) {
            Err(Error::OutOfMemory { what: "too much", bytes: TOO_MUCH }) => {}
            Err(error) => wrong.push(format!("{error} after running out of memory")),
            Ok(_) => wrong.push("more memory than there is".into()),
        }
    }
    if let Err(error) = gpu.allocate("a little", 64) {
        wrong.push(format!("{error} when there is memory again"));
    }
    report.check("out of device memory, and back", 4, &wrong)
}
