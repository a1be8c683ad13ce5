//! The buffers that codecs are measured on.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use standfast_gpu::float::Element;
use standfast_testkit::vectors;

/// Generated once per this many bytes and repeated with other seeds: making numbers is slow.
const UNIT: usize = 16 << 20;

pub(crate) struct Buffer {
    pub(crate) name: &'static str,
    /// What its numbers are, where it holds one kind.
    pub(crate) element: Option<Element>,
    pub(crate) bytes: Vec<u8>,
}

pub(crate) struct Buffers(pub(crate) Vec<Buffer>);

impl Buffers {
    /// Buffers of `bytes` each; the corpus again and again, as far as it fits whole.
    pub(crate) fn new(bytes: usize, corpus: Option<&Path>) -> Result<Self> {
        let mut all = vec![
            Buffer {
                name: "noisy f64",
                element: Some(Element::F64),
                bytes: fill(bytes, vectors::noisy_f64),
            },
            Buffer {
                name: "noisy f32",
                element: Some(Element::F32),
                bytes: fill(bytes, vectors::noisy_f32),
            },
            Buffer {
                name: "bf16 weights",
                element: Some(Element::Bf16),
                bytes: fill(bytes, vectors::bf16_weights),
            },
        ];
        if let Some(dir) = corpus {
            // Copies are much further apart than any match reaches.
            let once = read_corpus(dir)?;
            let repeats = (bytes / once.len().max(1)).max(1);
            all.push(Buffer { name: "corpus", element: None, bytes: once.repeat(repeats) });
        }
        Ok(Buffers(all))
    }

    pub(crate) fn write(&self, dir: &Path) -> Result<()> {
        std::fs::create_dir_all(dir)?;
        for buffer in &self.0 {
            let path = dir.join(buffer.name.replace(' ', "-"));
            std::fs::write(&path, &buffer.bytes).with_context(|| path.display().to_string())?;
        }
        Ok(())
    }
}

/// Every unit with a seed of its own, on all cores.
fn fill(bytes: usize, make: fn(usize, u64) -> Vec<u8>) -> Vec<u8> {
    let mut all = vec![0; bytes];
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let units = bytes.div_ceil(UNIT);
    std::thread::scope(|scope| {
        for (at, part) in all.chunks_mut(units.div_ceil(cores) * UNIT).enumerate() {
            scope.spawn(move || {
                for (within, unit) in part.chunks_mut(UNIT).enumerate() {
                    let seed = (at * units + within + 1) as u64;
                    unit.copy_from_slice(&make(unit.len(), seed));
                }
            });
        }
    });
    all
}

fn read_corpus(dir: &Path) -> Result<Vec<u8>> {
    let mut bytes = Vec::new();
    for path in files(dir)? {
        let raw = std::fs::read(&path).with_context(|| path.display().to_string())?;
        match path.extension().is_some_and(|extension| extension == "zst") {
            true => bytes.extend(zstd::decode_all(raw.as_slice())?),
            false => bytes.extend(raw),
        }
    }
    Ok(bytes)
}

/// All files below, in order, but indices and texts.
fn files(dir: &Path) -> Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(dir).with_context(|| dir.display().to_string())? {
        let path = entry?.path();
        let plain = ["idx", "md", "json"];
        if path.is_dir() {
            found.extend(files(&path)?);
        } else if path.extension().is_none_or(|extension| plain.iter().all(|e| *e != extension)) {
            found.push(path);
        }
    }
    found.sort();
    Ok(found)
}
