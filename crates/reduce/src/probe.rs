//! The probe: which filter suits a block, and whether compressing it pays at all.
//!
//! Data: a raw block and the size of its numbers, if known -> a filter, or "store it raw".
//!
//! Why LZ4 on a sample: it is the cheapest codec and orders the filters as the others do; a few
//! KiB from several places of the block cost a small part of compressing it whole. What LZ4
//! cannot see are skewed bytes without repetitions (digits, small codes); for codecs that code
//! by frequency the sample's entropy is asked too.
//!
//! Differences are tried only where planes of the same numbers pay: they cost another pass.
//!
//! Invariant: the probe only chooses; any choice stores the block correctly.

use lz4_flex::block::{CompressTable, compress_into_with_table, get_maximum_output_size};
use standfast_format::{CodecKind, FilterKind};

use crate::filter::{FilterChoice, apply};

/// Pieces taken from a block, spread evenly over it.
const PIECES: usize = 4;
/// Longest piece; a multiple of every element size, as is half of it.
const PIECE_BYTES_MAX: usize = 1024;
const SAMPLE_BYTES_MAX: usize = PIECES * PIECE_BYTES_MAX;
/// A block whose sample saves less than this part is stored raw: 3 %.
const SAVING_MIN_PERCENT: usize = 3;

/// A shorter sample has too few bytes to tell noise (256 values, each about as often) from skew.
const ENTROPY_BYTES_MIN: usize = 2048;

/// Of what planes leave, planes of differences must leave less than this.
const DELTA_PERCENT_MAX: usize = 98;

/// Keeps the probe's table and buffers between blocks.
pub(crate) struct Probe {
    filters: FilterChoice,
    /// Whether the codec behind the probe may code bytes by their frequency.
    by_frequency: bool,
    piece_bytes: usize,
    table: CompressTable,
    sample: [u8; SAMPLE_BYTES_MAX],
    planes: [u8; SAMPLE_BYTES_MAX],
    scratch: [u8; SAMPLE_BYTES_MAX],
    packed: [u8; get_maximum_output_size(SAMPLE_BYTES_MAX)],
}

impl Probe {
    /// A probe for blocks that `codec` will compress.
    pub(crate) fn new(codec: CodecKind, filters: FilterChoice) -> Self {
        let slow = matches!(codec, CodecKind::Zstd | CodecKind::Deflate);
        Probe {
            filters,
            by_frequency: slow,
            piece_bytes: piece_bytes(slow),
            table: CompressTable::small(),
            sample: [0; SAMPLE_BYTES_MAX],
            planes: [0; SAMPLE_BYTES_MAX],
            scratch: [0; SAMPLE_BYTES_MAX],
            packed: [0; get_maximum_output_size(SAMPLE_BYTES_MAX)],
        }
    }

    /// The filter that suits this block; `None` if the sample says that nothing will be saved.
    pub(crate) fn choose(&mut self, raw: &[u8], elem_hint: u8) -> Option<FilterKind> {
        let len = take_sample(raw, self.piece_bytes, &mut self.sample);
        let enough = len - (len * SAVING_MIN_PERCENT).div_ceil(100);
        let mut best = (None, enough);
        for filter in candidates(self.filters, elem_hint) {
            self.try_filter(*filter, len, best.1, &mut best);
        }
        if self.filters == FilterChoice::Auto
            && let Some(delta) = best.0.and_then(differences)
        {
            self.try_filter(delta, len, best.1 * DELTA_PERCENT_MAX / 100, &mut best);
        }
        if best.0.is_none() && self.by_frequency && len >= ENTROPY_BYTES_MIN {
            let filter = match self.filters {
                FilterChoice::Auto => FilterKind::None,
                FilterChoice::Fixed(filter) => filter,
            };
            return (entropy_bytes(&self.sample[..len]) < enough).then_some(filter);
        }
        best.0
    }

    /// Makes a filter the best if it leaves fewer bytes than `below`.
    fn try_filter(
        &mut self,
        filter: FilterKind,
        len: usize,
        below: usize,
        best: &mut (Option<FilterKind>, usize),
    ) {
        let bytes = self.packed_bytes(filter, len);
        if bytes < below {
            *best = (Some(filter), bytes);
        }
    }

    /// Length of the first `len` bytes of the sample after filter and LZ4.
    fn packed_bytes(&mut self, filter: FilterKind, len: usize) -> usize {
        let planes = apply(filter, &self.sample[..len], &mut self.planes, &mut self.scratch);
        compress_into_with_table(planes, &mut self.packed, &mut self.table)
            .expect("room for the worst case")
    }
}

/// Where the codec is as quick as the probe, the probe must look at less.
fn piece_bytes(slow: bool) -> usize {
    if slow { PIECE_BYTES_MAX } else { PIECE_BYTES_MAX / 2 }
}

/// Simplest first: it wins a draw.
fn candidates(filters: FilterChoice, elem_hint: u8) -> &'static [FilterKind] {
    match (filters, elem_hint) {
        (FilterChoice::Fixed(filter), _) => {
            let at = FilterKind::ALL.iter().position(|kind| *kind == filter);
            std::slice::from_ref(&FilterKind::ALL[at.expect("ALL has every kind")])
        }
        (FilterChoice::Auto, 4) => &[FilterKind::None, FilterKind::Shuffle4],
        (FilterChoice::Auto, 8) => &[FilterKind::None, FilterKind::Shuffle8],
        (FilterChoice::Auto, _) => &[FilterKind::None, FilterKind::Shuffle8, FilterKind::Shuffle4],
    }
}

/// The filter that sorts differences of the same numbers.
fn differences(filter: FilterKind) -> Option<FilterKind> {
    match filter {
        FilterKind::Shuffle4 => Some(FilterKind::Delta4),
        FilterKind::Shuffle8 => Some(FilterKind::Delta8),
        _ => None,
    }
}

/// Copies the pieces of `raw`, or all of it if it is short, and returns the sample's length.
fn take_sample(raw: &[u8], piece_bytes: usize, sample: &mut [u8; SAMPLE_BYTES_MAX]) -> usize {
    let len = PIECES * piece_bytes;
    if raw.len() <= len {
        sample[..raw.len()].copy_from_slice(raw);
        return raw.len();
    }
    for (index, piece) in sample[..len].chunks_exact_mut(piece_bytes).enumerate() {
        // Pieces start at whole elements, counted from the start of the block.
        let start = ((raw.len() - piece_bytes) * index / (PIECES - 1)) & !7;
        piece.copy_from_slice(&raw[start..][..piece_bytes]);
    }
    len
}

/// Length to which coding each byte by its frequency in `bytes` would bring them.
fn entropy_bytes(bytes: &[u8]) -> usize {
    // Four tables: equal bytes in a row would wait for each other's count.
    let mut counts = [[0_u32; 256]; 4];
    for four in bytes.chunks(4) {
        for (table, byte) in counts.iter_mut().zip(four) {
            table[usize::from(*byte)] += 1;
        }
    }
    let total = bytes.len() as f32;
    let mut bits = 0.0;
    for value in 0..256 {
        let count = counts.iter().map(|table| table[value]).sum::<u32>() as f32;
        if count > 0.0 {
            bits += count * (total / count).log2();
        }
    }
    (bits / 8.0).ceil() as usize
}

#[cfg(test)]
mod tests;
