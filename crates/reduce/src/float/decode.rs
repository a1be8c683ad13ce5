//! Decoding: bytes from disk back to numbers, on any CPU.
//!
//! The bytes may be hostile. Every length is checked against the chunk before it is used, and
//! memory is bounded by one segment's numbers.

use super::Element;
use super::damaged;
use super::encode::round_elements;
use super::format::{
    CHUNK_HEADER_BYTES, ESCAPED, FREQUENCIES_BYTES, Header, Mode, PROBABILITY, PROBABILITY_BITS,
    Plane, SEGMENTS, STATE_MIN, STATES_BYTES, Transform,
};
use super::packed::aligned;
use crate::error::Result;

/// Decodes a chunk to all of `out`.
pub(super) fn decode_chunk(chunk: &[u8], element: Element, out: &mut [u8]) -> Result<()> {
    let header = Header::parse(chunk, element, out.len())?;
    let mut rest = &chunk[CHUNK_HEADER_BYTES..];
    if header.mode == Mode::Stored {
        out.copy_from_slice(rest);
        return Ok(());
    }
    let (mut numbers, tail) = out.split_at_mut(header.elements * element.bytes());
    tail.copy_from_slice(&header.tail);
    let mut tables = Vec::new();
    for _ in 0..header.coded_planes() {
        let (frequencies, after) = rest.split_at(FREQUENCIES_BYTES);
        tables.push(decoding_table(frequencies)?);
        rest = after;
    }
    for segment in 0..SEGMENTS {
        let (bytes, after) = rest.split_at(header.segment_bytes(segment));
        let (own, others) =
            numbers.split_at_mut(header.segment_elements(segment) * element.bytes());
        if header.words[segment] == ESCAPED {
            own.copy_from_slice(&bytes[..own.len()]);
        } else {
            decode_segment(bytes, &header, segment, &tables, own)?;
        }
        (rest, numbers) = (after, others);
    }
    Ok(())
}

/// For every value of a state's low bits: symbol, frequency, and place within the frequency.
type Table = Vec<(u8, u32, u32)>;

fn decoding_table(frequencies: &[u8]) -> Result<Table> {
    let (frequencies, _) = frequencies.as_chunks::<2>();
    let frequencies = frequencies.iter().map(|bytes| u32::from(u16::from_le_bytes(*bytes)));
    if frequencies.clone().sum::<u32>() != PROBABILITY {
        return Err(damaged("frequencies do not add up"));
    }
    let of_symbol = |(symbol, frequency): (usize, u32)| {
        (0..frequency).map(move |place| (symbol as u8, frequency, place))
    };
    Ok(frequencies.enumerate().flat_map(of_symbol).collect())
}

fn decode_segment(
    bytes: &[u8],
    header: &Header,
    segment: usize,
    tables: &[Table],
    out: &mut [u8],
) -> Result<()> {
    let count = header.segment_elements(segment);
    let mut coded = vec![0_u64; count];
    let mut raw = bytes.chunks(aligned(count).max(1));
    for plane in 0..header.element.bytes() {
        match header.planes[plane] {
            Plane::Coded => {}
            Plane::Constant(value) => {
                coded.iter_mut().for_each(|number| *number |= u64::from(value) << (8 * plane));
            }
            Plane::Raw if count > 0 => {
                let symbols = raw.next().expect("the header counted the raw planes");
                for (number, symbol) in coded.iter_mut().zip(symbols) {
                    *number |= u64::from(*symbol) << (8 * plane);
                }
            }
            Plane::Raw => {}
        }
    }
    if !tables.is_empty() {
        let words = &bytes[header.raw_planes() * aligned(count)..];
        decode_words(words, header, segment, tables, &mut coded)?;
    }
    let mut before = 0;
    for (number, out) in coded.into_iter().zip(out.chunks_exact_mut(header.element.bytes())) {
        before = uncoded(number, before, header.transform, header.element);
        out.copy_from_slice(&before.to_le_bytes()[..out.len()]);
    }
    Ok(())
}

fn decode_words(
    bytes: &[u8],
    header: &Header,
    segment: usize,
    tables: &[Table],
    coded: &mut [u64],
) -> Result<()> {
    let (states, words) = bytes.split_at(STATES_BYTES);
    let (states, _) = states.as_chunks::<4>();
    let mut states: Vec<u32> = states.iter().map(|state| u32::from_le_bytes(*state)).collect();
    let (words, _) = words.as_chunks::<2>();
    let mut words =
        words[..header.words[segment] as usize].iter().map(|word| u16::from_le_bytes(*word));
    let planes: Vec<usize> = (0..8).filter(|plane| header.planes[*plane] == Plane::Coded).collect();
    let per_lane = 8 / header.element.bytes();
    let round_elements = round_elements(header.element);
    for round in 0..coded.len().div_ceil(round_elements) {
        for within in 0..per_lane {
            for (plane, table) in planes.iter().zip(tables) {
                for (lane, state) in states.iter_mut().enumerate() {
                    let at = round * round_elements + lane * per_lane + within;
                    if at < coded.len() {
                        let symbol = pull(state, table, &mut words)?;
                        coded[at] |= u64::from(symbol) << (8 * plane);
                    }
                }
            }
        }
    }
    if words.next().is_some() || states.iter().any(|state| *state != STATE_MIN) {
        return Err(damaged("a segment does not come out even"));
    }
    Ok(())
}

fn pull(state: &mut u32, table: &Table, words: &mut impl Iterator<Item = u16>) -> Result<u8> {
    let (symbol, frequency, place) = table[(*state & (PROBABILITY - 1)) as usize];
    let decoded = frequency.wrapping_mul(*state >> PROBABILITY_BITS).wrapping_add(place);
    *state = decoded;
    if decoded < STATE_MIN {
        let word = words.next().ok_or_else(|| damaged("a segment's words are missing"))?;
        *state = decoded << 16 | u32::from(word);
    }
    Ok(symbol)
}

/// The number that [`coded`] made this of; `before` is the number ahead of it.
fn uncoded(coded: u64, before: u64, transform: Transform, element: Element) -> u64 {
    let bits = 8 * element.bytes() as u32;
    let mask = u64::MAX >> (64 - bits);
    match transform {
        Transform::Rotate => (coded >> 1 | coded << (bits - 1)) & mask,
        Transform::Delta => {
            let delta = coded >> 1 ^ 0_u64.wrapping_sub(coded & 1);
            before.wrapping_add(delta) & mask
        }
    }
}
