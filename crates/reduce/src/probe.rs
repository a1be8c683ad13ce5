//! The probe: which filter suits a block, and whether compressing it pays at all.
//!
//! Data: a raw block and the size of its numbers, if known -> a filter and how much may be saved,
//! or "store it raw".
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

/// What the sample says of a block in which there is something to gain.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Sampled {
    /// The filter that suits it.
    pub(crate) filter: FilterKind,
    /// What may be left of it.
    pub(crate) share: f32,
    /// Whether only codecs by frequency find anything.
    pub(crate) only_skewed: bool,
}

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
    /// A probe for blocks that `codec` will compress; without one, any codec may.
    pub(crate) fn new(codec: Option<CodecKind>, filters: FilterChoice) -> Self {
        let slow = matches!(codec, Some(CodecKind::Zstd | CodecKind::Deflate));
        Probe {
            filters,
            by_frequency: slow || codec.is_none(),
            piece_bytes: piece_bytes(slow),
            table: CompressTable::small(),
            sample: [0; SAMPLE_BYTES_MAX],
            planes: [0; SAMPLE_BYTES_MAX],
            scratch: [0; SAMPLE_BYTES_MAX],
            packed: [0; get_maximum_output_size(SAMPLE_BYTES_MAX)],
        }
    }

    /// The blocks to come are for slow codecs, or for quick ones.
    pub(crate) fn set_slow(&mut self, slow: bool) {
        self.piece_bytes = piece_bytes(slow);
    }

    /// The filter that suits this block; `None` if the sample says that nothing will be saved.
    pub(crate) fn choose(&mut self, raw: &[u8], elem_hint: u8) -> Option<Sampled> {
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
        let mut only_skewed = false;
        if best.0.is_none() && self.by_frequency && len >= ENTROPY_BYTES_MIN {
            let bytes = entropy_bytes(&self.sample[..len]);
            only_skewed = bytes < enough;
            let filter = match self.filters {
                FilterChoice::Auto => FilterKind::None,
                FilterChoice::Fixed(filter) => filter,
            };
            best = (only_skewed.then_some(filter), bytes);
        }
        let share = best.1 as f32 / len.max(1) as f32;
        best.0.map(|filter| Sampled { filter, share, only_skewed })
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
mod tests {
    use super::*;

    fn random(len: usize) -> Vec<u8> {
        let mut state = 0x9E37_79B9_7F4A_7C15_u64;
        let mut next = || {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            (state >> 32) as u8
        };
        (0..len).map(|_| next()).collect()
    }

    fn noisy_field() -> Vec<u8> {
        let noise = random(8 * 16384);
        let (noise, _) = noise.as_chunks::<8>();
        let value = |(i, noise): (usize, &[u8; 8])| {
            let noise = u64::from_le_bytes(*noise) as f64 / u64::MAX as f64;
            300.0 + (i as f64 * 1e-3).sin() + 1e-6 * noise
        };
        noise.iter().enumerate().flat_map(|pair| value(pair).to_le_bytes()).collect()
    }

    fn chosen(probe: &mut Probe, raw: &[u8], elem_hint: u8) -> Option<FilterKind> {
        probe.choose(raw, elem_hint).map(|sampled| sampled.filter)
    }

    fn numbers(value: impl Fn(f64) -> f64) -> Vec<u8> {
        (0..16384).flat_map(|i| value(f64::from(i)).to_le_bytes()).collect()
    }

    #[test]
    fn numbers_are_sorted_text_is_not_and_noise_is_left_alone() {
        for codec in [Some(CodecKind::Lz4), Some(CodecKind::Zstd), None] {
            let mut probe = Probe::new(codec, FilterChoice::Auto);
            let text = b"and the rest of them went on to the next page ".repeat(3000);
            for hint in [0, 8] {
                let filter = chosen(&mut probe, &noisy_field(), hint);
                assert!(matches!(filter, Some(FilterKind::Shuffle8 | FilterKind::Delta8)));
            }
            assert_eq!(chosen(&mut probe, &text, 0), Some(FilterKind::None));
            for len in [1 << 17, 5000, 4096, 100, 1, 0] {
                assert_eq!(probe.choose(&random(len), 0), None, "{len}");
            }
        }
    }

    #[test]
    fn differences_are_taken_where_neighbours_are_close() {
        let mut probe = Probe::new(Some(CodecKind::Lz4), FilterChoice::Auto);
        let smooth = numbers(|i| (i * 1e-3).sin());
        assert_eq!(chosen(&mut probe, &smooth, 0), Some(FilterKind::Delta8));
        let counting: Vec<u8> = (0_u32..32768).flat_map(|i| (i * 7).to_le_bytes()).collect();
        assert_eq!(chosen(&mut probe, &counting, 0), Some(FilterKind::Delta4));
        let mut far = random(1 << 17);
        far.chunks_exact_mut(8).for_each(|number| number[5..].copy_from_slice(&[0, 0xF0, 0x3F]));
        assert_ne!(chosen(&mut probe, &far, 0), Some(FilterKind::Delta8));
    }

    #[test]
    fn skewed_bytes_count_for_codecs_by_frequency_only() {
        let digits: Vec<u8> = random(1 << 17).iter().map(|byte| b'0' + byte % 32).collect();
        for codec in [Some(CodecKind::Zstd), None] {
            let sampled = Probe::new(codec, FilterChoice::Auto).choose(&digits, 0).unwrap();
            assert!(sampled.only_skewed && sampled.filter == FilterKind::None);
        }
        assert_eq!(Probe::new(Some(CodecKind::Lz4), FilterChoice::Auto).choose(&digits, 0), None);
    }

    #[test]
    fn a_filter_that_is_set_is_the_only_one_tried() {
        let mut probe = Probe::new(None, FilterChoice::Fixed(FilterKind::Shuffle8));
        assert_eq!(chosen(&mut probe, &noisy_field(), 0), Some(FilterKind::Shuffle8));
        assert_eq!(probe.choose(&random(1 << 17), 0), None);
    }

    #[test]
    fn the_sample_reaches_both_ends() {
        for piece_bytes in [PIECE_BYTES_MAX, PIECE_BYTES_MAX / 2] {
            for len in [4097, 4200, 1 << 17, (1 << 17) + 13] {
                let mut raw = vec![0; len];
                raw[0] = 1;
                raw[len - 9] = 2;
                let mut sample = [9; SAMPLE_BYTES_MAX];
                let taken = take_sample(&raw, piece_bytes, &mut sample);
                assert_eq!(taken, PIECES * piece_bytes);
                let last = &sample[taken - piece_bytes..taken];
                assert!(sample[0] == 1 && last.contains(&2), "{piece_bytes} {len}");
            }
        }
    }
}
