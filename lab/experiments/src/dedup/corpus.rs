//! `dedup-corpus`: pages of real programs, two checkpoints of several ranks.
//!
//! A corpus is a directory of programs, each `PROGRAM/ckptN/rankR.pages.zst` (raw 4 KiB pages) and
//! `rankR.idx` (lines `address length kind offset`: which memory they were). The two checkpoints
//! are those with the lowest and the highest number.
//!
//! Modes are those of the stencil; `incremental` has pages whose content changed since the first
//! checkpoint, or that are new: which ones were written without change is not known here.

use std::collections::{HashMap, HashSet};
use std::fmt;
use std::path::{Path, PathBuf};

use anyhow::{Context, ensure};
use serde::Serialize;
use standfast_format::HashKind;
use standfast_reduce::{PageHasher, is_zero};

use super::job::{self, Way};
use super::names::{HASH_BYTES, Name};
use crate::listing::entries;
use crate::report::Report;

pub(super) const NAME: &str = "dedup-corpus";
const PAGE_BYTES: usize = 4096;

/// Pages of real programs.
#[derive(clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    report: Report,
    /// Directory of the corpus
    #[arg(long, env = "STANDFAST_CORPUS", value_name = "DIR")]
    corpus: Option<PathBuf>,
    /// Threshold of the top-K view
    #[arg(long, default_value_t = 1 << 17)]
    threshold: u32,
}

/// What one rank has at a checkpoint.
struct Memory {
    /// Hash of each page by its address; `None` for zero.
    pages: HashMap<u64, Option<Name>>,
    /// Different pages that are not zero.
    names: Vec<u8>,
}

/// Two checkpoints of a program.
pub(super) struct Program {
    name: String,
    first: Vec<Memory>,
    second: Vec<Memory>,
}

/// What a mode stores of a program's second checkpoint.
#[derive(Serialize)]
struct Point {
    program: String,
    mode: &'static str,
    ranks: usize,
    stored_bytes: u64,
    most_bytes: u64,
    share: f64,
}

impl fmt::Display for Point {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{:<8} {:<15} stored {:>7.2} MB ({:>5.1} %), {:>6.2} MB by the most loaded of {} ranks",
            self.program,
            self.mode,
            self.stored_bytes as f64 / 1e6,
            100.0 * self.share,
            self.most_bytes as f64 / 1e6,
            self.ranks,
        )
    }
}

pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    let Some(dir) = &args.corpus else {
        eprintln!("{NAME}: skipped: no corpus is named (--corpus DIR or STANDFAST_CORPUS)");
        return Ok(());
    };
    for program in programs(dir)? {
        for (mode, stored) in program.modes(args.threshold)? {
            args.report.point(NAME, &program.point(mode, &stored));
        }
        let beyond = program.beyond()?;
        let text = format!("{}: exact stores as many pages as there are", program.name);
        args.report.claim(NAME, text, beyond == 0);
    }
    Ok(())
}

/// All programs of a corpus.
pub(super) fn programs(dir: &Path) -> anyhow::Result<Vec<Program>> {
    let names = entries(dir)?.into_iter().filter(|path| path.is_dir());
    let programs = names.map(|path| Program::read(&path)).collect::<anyhow::Result<Vec<_>>>()?;
    ensure!(!programs.is_empty(), "{} has no programs", dir.display());
    Ok(programs)
}

impl Program {
    fn read(dir: &Path) -> anyhow::Result<Self> {
        let checkpoints: Vec<PathBuf> =
            entries(dir)?.into_iter().filter(|path| path.is_dir()).collect();
        let [first, .., second] = &checkpoints[..] else {
            anyhow::bail!("{} has fewer than two checkpoints", dir.display());
        };
        let name = dir.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let (first, second) = (checkpoint(first)?, checkpoint(second)?);
        ensure!(first.len() == second.len(), "{name}: checkpoints of different ranks");
        Ok(Self { name, first, second })
    }

    /// What it is called.
    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// Pages that each rank stores in each mode.
    fn modes(&self, threshold: u32) -> anyhow::Result<Vec<(&'static str, Vec<u64>)>> {
        let each = |count: fn(&Memory) -> usize| -> Vec<u64> {
            self.second.iter().map(|memory| count(memory) as u64).collect()
        };
        let pairs = self.first.iter().zip(&self.second);
        let changed = pairs.map(|(first, second)| second.changed_since(first)).collect();
        Ok(vec![
            ("full", each(|memory| memory.pages.len())),
            ("incremental", changed),
            ("local", each(|memory| memory.names.len() / HASH_BYTES)),
            ("collective", self.share(Way::TopK(threshold))?.stored),
            ("exact", self.share(Way::Exact)?.stored),
            ("exact, in time", job::run_in_time(&names(&self.first), &names(&self.second))?),
        ])
    }

    fn share(&self, way: Way) -> anyhow::Result<job::Outcome> {
        job::run(self.second.len(), way, 1, |rank| self.second[rank].names.clone())
    }

    /// How many more pages the exact strategy stores than there are different ones.
    pub(super) fn beyond(&self) -> anyhow::Result<i64> {
        Ok(self.share(Way::Exact)?.beyond(&names(&self.second)))
    }

    fn point(&self, mode: &'static str, stored: &[u64]) -> Point {
        let all: usize = self.second.iter().map(|memory| memory.pages.len()).sum();
        let total: u64 = stored.iter().sum();
        Point {
            program: self.name.clone(),
            mode,
            ranks: stored.len(),
            stored_bytes: total * PAGE_BYTES as u64,
            most_bytes: stored.iter().copied().max().unwrap_or(0) * PAGE_BYTES as u64,
            share: total as f64 / all as f64,
        }
    }
}

fn names(memories: &[Memory]) -> Vec<&[u8]> {
    memories.iter().map(|memory| memory.names.as_slice()).collect()
}

impl Memory {
    fn changed_since(&self, first: &Self) -> u64 {
        let changed = |(at, name): &(&u64, &Option<Name>)| first.pages.get(at) != Some(name);
        self.pages.iter().filter(changed).count() as u64
    }

    fn read(pages: &Path) -> anyhow::Result<Self> {
        let what = || format!("reading {}", pages.display());
        let compressed = std::fs::read(pages).with_context(what)?;
        let bytes = zstd::decode_all(&compressed[..]).with_context(what)?;
        let index = pages.to_string_lossy().replace(".pages.zst", ".idx");
        let index = std::fs::read_to_string(&index).with_context(|| format!("reading {index}"))?;
        let hasher = PageHasher::new(HashKind::Xxh3, &[7; 32]);
        let mut memory = Self { pages: HashMap::new(), names: Vec::new() };
        let mut seen = HashSet::new();
        for line in index.lines().filter(|line| !line.starts_with('#')) {
            let (address, offset, length) = stretch(line).with_context(|| format!("{line:?}"))?;
            let part = bytes.get(offset..offset + length).with_context(|| format!("{line:?}"))?;
            for (at, page) in (address..).step_by(PAGE_BYTES).zip(part.chunks_exact(PAGE_BYTES)) {
                let mut name = Name::default();
                hasher.hash(page, &mut name);
                let zero = is_zero(page);
                memory.pages.insert(at, (!zero).then_some(name));
                if !zero && seen.insert(name) {
                    memory.names.extend_from_slice(&name);
                }
            }
        }
        Ok(memory)
    }
}

/// Address, offset in the file and length of a line of the index.
fn stretch(line: &str) -> Option<(u64, usize, usize)> {
    let mut words = line.split_whitespace();
    let address = words.next()?;
    let length = words.next()?.parse().ok()?;
    let offset = words.nth(1)?.parse().ok()?;
    let digits = address.strip_prefix("0x").unwrap_or(address);
    Some((u64::from_str_radix(digits, 16).ok()?, offset, length))
}

fn checkpoint(dir: &Path) -> anyhow::Result<Vec<Memory>> {
    let files = entries(dir)?;
    let files = files.iter().filter(|path| path.to_string_lossy().ends_with(".pages.zst"));
    files.map(|path| Memory::read(path)).collect()
}
