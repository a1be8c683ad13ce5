//! What is compressed: pages of real programs where a corpus is named, and generated ones.

use standfast_testkit::command::Random;
use std::collections::HashSet;
use std::path::Path;

use anyhow::{Context, ensure};
use standfast_format::HashKind;
use standfast_reduce::{PageHasher, is_zero};

use crate::listing::entries;

const PAGE_BYTES: usize = 4096;

/// Bytes of one sort, a multiple of 1 MiB.
pub(crate) struct Data {
    pub(crate) name: String,
    pub(crate) bytes: Vec<u8>,
    /// Size of its numbers, 0 if unknown.
    pub(crate) elem: u8,
}

/// Everything there is, `mib` MiB of each.
pub(crate) fn all(corpus: Option<&Path>, mib: usize) -> anyhow::Result<Vec<Data>> {
    let mut all = generated(mib);
    if let Some(dir) = corpus {
        all.extend(programs(dir, mib)?);
    }
    Ok(all)
}

type Make = fn(&mut Random, usize) -> Vec<u8>;

fn generated(mib: usize) -> Vec<Data> {
    let sorts: [(&str, Make, u8); 4] =
        [("noise", noise, 0), ("text", text, 0), ("field", field, 8), ("counts", counts, 4)];
    let mut random = Random::new(0x9E37_79B9_7F4A_7C15);
    let mut all: Vec<Data> = sorts[..3]
        .iter()
        .map(|(name, make, elem)| {
            let bytes = (0..mib).flat_map(|part| make(&mut random, part)).collect();
            Data { name: (*name).into(), bytes, elem: *elem }
        })
        .collect();
    // A stretch of each in turn: what a program with several arrays looks like.
    let mixed = (0..mib).flat_map(|part| sorts[part % sorts.len()].1(&mut random, part)).collect();
    all.push(Data { name: "mixed".into(), bytes: mixed, elem: 0 });
    all
}

const PART: usize = 1 << 20;

fn noise(random: &mut Random, _: usize) -> Vec<u8> {
    random.noise(PART)
}

fn text(random: &mut Random, _: usize) -> Vec<u8> {
    let words = ["rank", "page", "of", "the", "block", "is", "written", "before", "restart", "\n"];
    let mut text = Vec::with_capacity(PART + 32);
    while text.len() < PART {
        let word = random.next_u64();
        text.extend_from_slice(words[word as usize % words.len()].as_bytes());
        if word.is_multiple_of(7) {
            text.extend_from_slice((word >> 40).to_string().as_bytes());
        }
        text.push(b' ');
    }
    text.truncate(PART);
    text
}

/// A smooth field of doubles with some noise in its low bits.
fn field(random: &mut Random, part: usize) -> Vec<u8> {
    let value = |at: usize| {
        let noise = random.next_u64() as f64 / u64::MAX as f64;
        300.0 + ((part * PART / 8 + at) as f64 * 1e-4).sin() + 1e-9 * noise
    };
    (0..PART / 8).map(value).flat_map(f64::to_le_bytes).collect()
}

/// Integers that grow slowly, as offsets of sparse matrices do.
fn counts(random: &mut Random, _: usize) -> Vec<u8> {
    let mut count = 0_u32;
    let mut next = || {
        count += random.next_u64() as u32 % 27;
        count
    };
    (0..PART / 4).flat_map(|_| next().to_le_bytes()).collect()
}

/// Pages of each program that a checkpoint would store: not zero, each once.
pub(crate) fn programs(dir: &Path, mib: usize) -> anyhow::Result<Vec<Data>> {
    let mut all = Vec::new();
    for program in entries(dir)?.into_iter().filter(|path| path.is_dir()) {
        let name = program.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let bytes = pages(&program, mib << 20)?;
        ensure!(!bytes.is_empty(), "{} has no pages", program.display());
        // A small program is repeated: codecs and filters see blocks, not the whole.
        let bytes = bytes.iter().copied().cycle().take(mib << 20).collect();
        all.push(Data { name, bytes, elem: 0 });
    }
    Ok(all)
}

fn pages(program: &Path, bytes_max: usize) -> anyhow::Result<Vec<u8>> {
    let hasher = PageHasher::new(HashKind::Xxh3, &[7; 32]);
    let (mut bytes, mut seen) = (Vec::new(), HashSet::new());
    for checkpoint in entries(program)?.into_iter().rev().filter(|path| path.is_dir()) {
        for file in entries(&checkpoint)? {
            if !file.to_string_lossy().ends_with(".pages.zst") || bytes.len() >= bytes_max {
                continue;
            }
            let what = || format!("reading {}", file.display());
            let all = zstd::decode_all(&std::fs::read(&file).with_context(what)?[..])
                .with_context(what)?;
            for page in all.chunks_exact(PAGE_BYTES).filter(|page| !is_zero(page)) {
                let mut name = [0; 16];
                hasher.hash(page, &mut name);
                if seen.insert(name) {
                    bytes.extend_from_slice(page);
                }
            }
        }
    }
    bytes.truncate(bytes_max);
    Ok(bytes)
}
