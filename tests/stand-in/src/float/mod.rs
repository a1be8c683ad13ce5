//! The codec for numbers as the device encodes: the reference of `crates/gpu/kernels/float.cu`, step by
//! step, to the same bytes.
//!
//! Sample -> transform and candidate planes -> counts -> frequencies -> segments. Written for
//! clarity: where speed matters a device encodes.

#[cfg(test)]
mod tests;

use standfast_reduce::float::format::{
    CHUNK_HEADER_BYTES, ESCAPED, FREQUENCIES_BYTES, Header, LANES, Mode, PROBABILITY,
    PROBABILITY_BITS, Plane, SEGMENT_BYTES, SEGMENTS, STATE_MIN, STATES_BYTES, SYMBOLS, Transform,
};
use standfast_reduce::float::{CHUNK_BYTES, Element, Packed, aligned, frame};

/// Rounds of a segment that are looked at before anything is decided.
const SAMPLED_ROUNDS: usize = 4;
/// A round's words never take more bytes; a segment whose words come closer to the end of the
/// encoder's slot is stored as it is.
const ROUND_BYTES_MAX: usize = 512;
const SEGMENT_SLOT: usize = STATES_BYTES + SEGMENT_BYTES + 2 * ROUND_BYTES_MAX;

type Counts = [u32; SYMBOLS];

/// Numbers of one chunk as integers.
struct Numbers {
    element: Element,
    values: Vec<u64>,
}

impl Numbers {
    fn of(chunk: &[u8], element: Element) -> Self {
        let values = chunk
            .chunks_exact(element.bytes())
            .map(|bytes| bytes.iter().rev().fold(0, |value, byte| value << 8 | u64::from(*byte)));
        Numbers { element, values: values.collect() }
    }

    fn segment(&self, segment: usize) -> &[u64] {
        let most = SEGMENT_BYTES / self.element.bytes();
        let first = (segment * most).min(self.values.len());
        &self.values[first..(first + most).min(self.values.len())]
    }

    fn segments(&self) -> impl Iterator<Item = &[u64]> {
        (0..SEGMENTS).map(|segment| self.segment(segment))
    }
}

/// Encodes as a device does.
pub fn encode(raw: &[u8], element: Element) -> Vec<u8> {
    let chunks: Vec<Vec<u8>> =
        raw.chunks(CHUNK_BYTES).map(|chunk| encode_chunk(chunk, element)).collect();
    let packed = Packed::new(chunks.iter().map(|chunk| chunk.len() as u32).collect());
    let mut payload = Vec::with_capacity(packed.bytes());
    for chunk in chunks {
        payload.extend(chunk);
        payload.resize(aligned(payload.len()), 0);
    }
    frame(element, raw.len() as u64, &packed, &payload)
}

/// log2 in 1/256 bits, the fraction taken as linear. Kernels have the same, so that references
/// take the same decisions.
pub(crate) fn log2_256(value: u32) -> u32 {
    let whole = value.ilog2();
    whole << 8 | (value << (31 - whole) & 0x7fff_ffff) >> 23
}

/// Numbers that all lanes take in one round.
fn round_elements(element: Element) -> usize {
    LANES * 8 / element.bytes()
}

/// One number of a segment as it is coded.
fn coded(segment: &[u64], at: usize, transform: Transform, element: Element) -> u64 {
    let bits = 8 * element.bytes() as u32;
    let mask = u64::MAX >> (64 - bits);
    let value = segment[at];
    match transform {
        Transform::Rotate => (value << 1 | value >> (bits - 1)) & mask,
        Transform::Delta => {
            let before = if at > 0 { segment[at - 1] } else { 0 };
            let delta = value.wrapping_sub(before) & mask;
            (delta << 1 ^ 0_u64.wrapping_sub(delta >> (bits - 1))) & mask
        }
    }
}

fn plane_of(coded: u64, plane: usize) -> u8 {
    (coded >> (8 * plane)) as u8
}

fn encode_chunk(chunk: &[u8], element: Element) -> Vec<u8> {
    let numbers = Numbers::of(chunk, element);
    let (transform, candidates) = choose(&numbers);
    let mut planes = [Plane::Raw; 8];
    let mut codes: Vec<Code> = Vec::new();
    for plane in (0..element.bytes()).filter(|plane| candidates[*plane]) {
        let counts = count_plane(&numbers, transform, plane);
        let (outcome, code) = decide(&counts);
        planes[plane] = outcome;
        codes.extend(code);
    }
    let mut header = Header {
        mode: Mode::Coded,
        transform,
        element,
        elements: numbers.values.len(),
        planes,
        tail: chunk[numbers.values.len() * element.bytes()..].to_vec(),
        words: [0; SEGMENTS],
    };
    let segments: Vec<Vec<u8>> = (0..SEGMENTS)
        .map(|segment| match encode_segment(numbers.segment(segment), &header, &codes) {
            Some((bytes, words)) => {
                header.words[segment] = words;
                bytes
            }
            None => {
                header.words[segment] = ESCAPED;
                escaped(chunk, &header, segment)
            }
        })
        .collect();
    seal(chunk, header, &codes, &segments)
}

fn seal(chunk: &[u8], mut header: Header, codes: &[Code], segments: &[Vec<u8>]) -> Vec<u8> {
    if header.coded_bytes() >= CHUNK_HEADER_BYTES + chunk.len() {
        header.mode = Mode::Stored;
        return [&header.to_bytes(), chunk].concat();
    }
    let mut bytes = header.to_bytes().to_vec();
    for code in codes {
        bytes.extend(code.frequencies.iter().flat_map(|count| (*count as u16).to_le_bytes()));
    }
    segments.iter().for_each(|segment| bytes.extend(segment));
    assert_eq!(bytes.len(), header.coded_bytes(), "a chunk as its header says");
    bytes
}

/// The transform that makes the sample smaller, and the planes that are worth counting.
fn choose(numbers: &Numbers) -> (Transform, [bool; 8]) {
    let estimates = [Transform::Rotate, Transform::Delta].map(|transform| {
        let mut pays = [false; 8];
        let mut sum = 0;
        for (plane, pays) in pays.iter_mut().enumerate().take(numbers.element.bytes()) {
            let (cost, samples) = sampled_cost(numbers, transform, plane);
            sum += cost;
            *pays = cost < samples * 2048;
        }
        (transform, sum, pays)
    });
    let [rotate, delta] = estimates;
    let best = if delta.1 < rotate.1 { delta } else { rotate };
    (best.0, best.2)
}

/// Bits (in 1/256) of a plane of the sample, 8 a symbol where coding hardly pays; and symbols.
fn sampled_cost(numbers: &Numbers, transform: Transform, plane: usize) -> (u32, u32) {
    let round = round_elements(numbers.element);
    let mut counts = [0; SYMBOLS];
    for segment in numbers.segments() {
        let rounds = segment.len().div_ceil(round);
        let step = (rounds / SAMPLED_ROUNDS).max(1);
        for first in (0..SAMPLED_ROUNDS).map(|k| k * step).filter(|first| *first < rounds) {
            for at in first * round..((first + 1) * round).min(segment.len()) {
                let number = coded(segment, at, transform, numbers.element);
                counts[usize::from(plane_of(number, plane))] += 1;
            }
        }
    }
    let samples: u32 = counts.iter().sum();
    if samples == 0 {
        return (0, 0);
    }
    let weighted: u32 =
        counts.iter().filter(|count| **count > 0).map(|count| count * log2_256(*count)).sum();
    let cost = samples * log2_256(samples) - weighted;
    (if cost > samples * 1920 { samples * 2048 } else { cost }, samples)
}

fn count_plane(numbers: &Numbers, transform: Transform, plane: usize) -> Counts {
    let mut counts = [0; SYMBOLS];
    for segment in numbers.segments() {
        for at in 0..segment.len() {
            let number = coded(segment, at, transform, numbers.element);
            counts[usize::from(plane_of(number, plane))] += 1;
        }
    }
    counts
}

/// A plane's code.
struct Code {
    frequencies: Counts,
    starts: Counts,
}

impl Code {
    fn of(frequencies: Counts) -> Self {
        let mut starts = [0; SYMBOLS];
        let mut sum = 0;
        for (start, frequency) in starts.iter_mut().zip(frequencies) {
            *start = sum;
            sum += frequency;
        }
        Code { frequencies, starts }
    }
}

/// What becomes of a counted plane.
fn decide(counts: &Counts) -> (Plane, Option<Code>) {
    let total: u32 = counts.iter().sum();
    let mut used = (0..SYMBOLS).filter(|symbol| counts[*symbol] > 0);
    if let (Some(only), None) = (used.next(), used.next()) {
        return (Plane::Constant(only as u8), None);
    }
    let frequencies = normalise(counts, total);
    let bits: u32 = (0..SYMBOLS)
        .filter(|symbol| counts[*symbol] > 0)
        .map(|at| counts[at] * ((PROBABILITY_BITS << 8) - log2_256(frequencies[at])))
        .sum();
    if (bits >> 8) / 8 + FREQUENCIES_BYTES as u32 >= total - total / 32 {
        return (Plane::Raw, None);
    }
    (Plane::Coded, Some(Code::of(frequencies)))
}

/// Frequencies that sum to [`PROBABILITY`], at least 1 for every symbol that occurs: the largest
/// factor that stays below it, and what is left for the most frequent symbol.
fn normalise(counts: &Counts, total: u32) -> Counts {
    let scaled = |factor: u32| {
        counts.map(|count| if count > 0 { ((count * factor) >> 20).max(1) } else { 0 })
    };
    let mut high = (PROBABILITY << 20) / total;
    let mut low = high - high / 8;
    while low < high {
        let middle = low + (high - low).div_ceil(2);
        if scaled(middle).iter().sum::<u32>() <= PROBABILITY {
            low = middle;
        } else {
            high = middle - 1;
        }
    }
    let mut frequencies = scaled(low);
    let rest = PROBABILITY - frequencies.iter().sum::<u32>();
    let most = (0..SYMBOLS).rev().max_by_key(|symbol| counts[*symbol]).expect("256 symbols");
    frequencies[most] += rest;
    frequencies
}

/// Raw planes, states and words of a segment; `None` where it does not fit its slot.
fn encode_segment(segment: &[u64], header: &Header, codes: &[Code]) -> Option<(Vec<u8>, u32)> {
    let element = header.element;
    let stride = aligned(segment.len());
    let mut bytes = Vec::new();
    for plane in (0..element.bytes()).filter(|plane| header.planes[*plane] == Plane::Raw) {
        let symbols = (0..segment.len())
            .map(|at| plane_of(coded(segment, at, header.transform, element), plane));
        bytes.extend(symbols);
        bytes.resize(aligned(bytes.len()), 0);
    }
    let coded_planes: Vec<usize> =
        (0..element.bytes()).filter(|plane| header.planes[*plane] == Plane::Coded).collect();
    let (states, words) =
        encode_words(segment, header, &coded_planes, codes, header.raw_planes() * stride)?;
    let count = words.len() as u32;
    if !coded_planes.is_empty() {
        bytes.extend(states.iter().flat_map(|state| state.to_le_bytes()));
        bytes.extend(words.iter().flat_map(|word| word.to_le_bytes()));
        bytes.resize(aligned(bytes.len()), 0);
    }
    Some((bytes, count))
}

/// Codes backwards, so that the decoder goes forwards.
fn encode_words(
    segment: &[u64],
    header: &Header,
    planes: &[usize],
    codes: &[Code],
    raw_bytes: usize,
) -> Option<([u32; LANES], Vec<u16>)> {
    let per_lane = 8 / header.element.bytes();
    let round_elements = round_elements(header.element);
    let mut states = [STATE_MIN; LANES];
    let mut words: Vec<u16> = Vec::new();
    for round in (0..segment.len().div_ceil(round_elements)).rev() {
        if SEGMENT_SLOT - 2 * words.len() < STATES_BYTES + raw_bytes + ROUND_BYTES_MAX {
            return None;
        }
        for within in (0..per_lane).rev() {
            for (plane, code) in planes.iter().zip(codes).rev() {
                for lane in (0..LANES).rev() {
                    let at = round * round_elements + lane * per_lane + within;
                    if at >= segment.len() {
                        continue;
                    }
                    let number = coded(segment, at, header.transform, header.element);
                    let symbol = usize::from(plane_of(number, *plane));
                    push(&mut states[lane], code, symbol, &mut words);
                }
            }
        }
    }
    words.reverse();
    Some((states, words))
}

fn push(state: &mut u32, code: &Code, symbol: usize, words: &mut Vec<u16>) {
    let (frequency, start) = (code.frequencies[symbol], code.starts[symbol]);
    if *state >= frequency << 20 {
        words.push(*state as u16);
        *state >>= 16;
    }
    *state = ((*state / frequency) << PROBABILITY_BITS) + *state % frequency + start;
}

fn escaped(chunk: &[u8], header: &Header, segment: usize) -> Vec<u8> {
    let bytes = header.segment_elements(segment) * header.element.bytes();
    let mut raw = chunk[segment * SEGMENT_BYTES..][..bytes].to_vec();
    raw.resize(aligned(bytes), 0);
    raw
}
