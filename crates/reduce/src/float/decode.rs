//! Decoding: bytes from disk back to numbers, on any CPU.
//!
//! The bytes may be hostile. Every length is checked against the chunk before it is used, and
//! memory is bounded by one segment's numbers.

use super::Element;
use super::damaged;
use super::format::{
    CHUNK_HEADER_BYTES, ESCAPED, FREQUENCIES_BYTES, Header, LANES, Mode, PROBABILITY,
    PROBABILITY_BITS, Plane, SEGMENT_BYTES, SEGMENTS, STATE_MIN, STATES_BYTES, Transform,
};
use super::packed::aligned;
use crate::error::Result;
use crate::filter::unshuffle;

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
    let mut planes = vec![0; SEGMENT_BYTES];
    for segment in 0..SEGMENTS {
        let (bytes, after) = rest.split_at(header.segment_bytes(segment));
        let (own, others) =
            numbers.split_at_mut(header.segment_elements(segment) * element.bytes());
        if header.words[segment] == ESCAPED {
            own.copy_from_slice(&bytes[..own.len()]);
        } else {
            decode_segment(bytes, &header, segment, &tables, &mut planes, own)?;
        }
        (rest, numbers) = (after, others);
    }
    Ok(())
}

/// For every value of a state's low bits: symbol (8 bits), frequency (12), and place within the
/// frequency (12).
type Table = Box<[u32; PROBABILITY as usize]>;

fn decoding_table(frequencies: &[u8]) -> Result<Table> {
    let (frequencies, _) = frequencies.as_chunks::<2>();
    let frequencies = frequencies.iter().map(|bytes| u32::from(u16::from_le_bytes(*bytes)));
    if frequencies.clone().sum::<u32>() != PROBABILITY {
        return Err(damaged("frequencies do not add up"));
    }
    let of_symbol = |(symbol, frequency): (usize, u32)| {
        (0..frequency).map(move |place| symbol as u32 | frequency << 8 | place << 20)
    };
    let mut table = Box::new([0; PROBABILITY as usize]);
    let entries = frequencies.enumerate().flat_map(of_symbol);
    table.iter_mut().zip(entries).for_each(|(to, entry)| *to = entry);
    Ok(table)
}

/// `planes` is overwritten: room for the planes of a segment.
fn decode_segment(
    bytes: &[u8],
    header: &Header,
    segment: usize,
    tables: &[Table],
    planes: &mut [u8],
    out: &mut [u8],
) -> Result<()> {
    let count = header.segment_elements(segment);
    if count == 0 && tables.is_empty() {
        return Ok(());
    }
    let planes = &mut planes[..out.len()];
    let mut raw = bytes.chunks(aligned(count).max(1));
    for (plane, to) in planes.chunks_exact_mut(count.max(1)).enumerate() {
        match header.planes[plane] {
            Plane::Coded => {}
            Plane::Constant(value) => to.fill(value),
            Plane::Raw => {
                let symbols = raw.next().expect("the header counted the raw planes");
                to.copy_from_slice(&symbols[..count]);
            }
        }
    }
    if !tables.is_empty() {
        let words = &bytes[header.raw_planes() * aligned(count)..];
        decode_words(words, header, segment, tables, planes)?;
    }
    match header.element {
        Element::Bf16 => {
            let (low, high) = planes.split_at(count);
            let pairs = out.as_chunks_mut::<2>().0.iter_mut().zip(low.iter().zip(high));
            pairs.for_each(|(out, (low, high))| *out = [*low, *high]);
        }
        Element::F32 | Element::F64 => unshuffle(header.element.bytes(), planes, out),
    }
    match header.element {
        Element::Bf16 => undo_all::<2>(out, header),
        Element::F32 => undo_all::<4>(out, header),
        Element::F64 => undo_all::<8>(out, header),
    }
    Ok(())
}

/// Undoes the transform of every number.
fn undo_all<const BYTES: usize>(out: &mut [u8], header: &Header) {
    let mut before = 0;
    for number in out.as_chunks_mut::<BYTES>().0 {
        let mut bytes = [0; 8];
        bytes[..BYTES].copy_from_slice(number);
        before = uncoded(u64::from_le_bytes(bytes), before, header.transform, header.element);
        number.copy_from_slice(&before.to_le_bytes()[..BYTES]);
    }
}

fn decode_words(
    bytes: &[u8],
    header: &Header,
    segment: usize,
    tables: &[Table],
    planes: &mut [u8],
) -> Result<()> {
    let (states, words) = bytes.split_at(STATES_BYTES);
    let (states, _) = states.as_chunks::<4>();
    let mut states: [u32; LANES] = std::array::from_fn(|lane| u32::from_le_bytes(states[lane]));
    let (words, _) = words.as_chunks::<2>();
    let mut words = &words[..header.words[segment] as usize];
    let rounds = Rounds { header, count: header.segment_elements(segment), tables };
    match header.element {
        Element::Bf16 => rounds.pull_all::<4>(&mut states, &mut words, planes),
        Element::F32 => rounds.pull_all::<2>(&mut states, &mut words, planes),
        Element::F64 => rounds.pull_all::<1>(&mut states, &mut words, planes),
    }?;
    if !words.is_empty() || states.iter().any(|state| *state != STATE_MIN) {
        return Err(damaged("a segment does not come out even"));
    }
    Ok(())
}

/// What all rounds of a segment have in common.
struct Rounds<'a> {
    header: &'a Header,
    count: usize,
    tables: &'a [Table],
}

impl Rounds<'_> {
    /// Every symbol of the coded planes; each lane has `PER_LANE` numbers a round.
    fn pull_all<const PER_LANE: usize>(
        &self,
        states: &mut [u32; LANES],
        words: &mut &[[u8; 2]],
        planes: &mut [u8],
    ) -> Result<()> {
        let Rounds { header, count, tables } = *self;
        let coded = (0..header.element.bytes())
            .filter(|plane| header.planes[*plane] == Plane::Coded)
            .zip(tables);
        for first in (0..count).step_by(LANES * PER_LANE) {
            // Lanes whose number is beyond the end have none.
            for at in first..(first + PER_LANE).min(count) {
                for (plane, table) in coded.clone() {
                    let to = &mut planes[plane * count..][..count][at..];
                    pull::<PER_LANE>(states, table, words, to)?;
                }
            }
        }
        Ok(())
    }
}

/// A symbol for each lane that has a number left: to every `PER_LANE`th place.
#[inline(always)]
fn pull<const PER_LANE: usize>(
    states: &mut [u32; LANES],
    table: &Table,
    words: &mut &[[u8; 2]],
    to: &mut [u8],
) -> Result<()> {
    // Short of words: zeros stand in, and are found to be missing.
    let mut last = [[0; 2]; LANES];
    let next: &[[u8; 2]; LANES] = match words.first_chunk() {
        Some(next) => next,
        None => {
            last[..words.len()].copy_from_slice(words);
            &last
        }
    };
    let mut taken = 0;
    for (state, to) in states.iter_mut().zip(to.chunks_mut(PER_LANE)) {
        let entry = table[(*state % PROBABILITY) as usize];
        to[0] = entry as u8;
        let frequency = entry >> 8 & 0xfff;
        let decoded = frequency.wrapping_mul(*state >> PROBABILITY_BITS).wrapping_add(entry >> 20);
        let word = u32::from(u16::from_le_bytes(next[taken % LANES]));
        let short = decoded < STATE_MIN;
        *state = if short { decoded << 16 | word } else { decoded };
        taken += usize::from(short);
    }
    *words = words.get(taken..).ok_or_else(|| damaged("a segment's words are missing"))?;
    Ok(())
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
