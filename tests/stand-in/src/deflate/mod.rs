//! Deflate as the device compresses: the reference of `crates/gpu/kernels/deflate.cu`, step by step,
//! to the same bytes.
//!
//! Written for clarity, not for speed: on a CPU other compressors find more in less time.

mod code;
#[cfg(test)]
mod tests;

use std::ops::Range;

use standfast_format::FilterKind;
use standfast_gpu::deflate::{CHUNK_BYTES, element_bytes};

use crate::float::log2_256;
use code::Code;

/// Positions that are searched at the same time: none sees another's hash.
const TILE: usize = 512;
/// The part that one warp parses; no match crosses its end.
const PART: usize = 4096;
/// Positions that are looked at together while parsing.
const WINDOW: usize = 32;
const STORED_PIECE: usize = 32768;

const TABLE_BITS: u32 = 13;
const DISTANCE_MAX: usize = 32768;
const MATCH_MIN: u32 = 4;
const MATCH_MAX: usize = 258;
const MATCH_SEARCHED: usize = 32;
/// Offsets that are always tried: runs, and numbers of 4 and 8 bytes.
const OFFSETS: [usize; 3] = [1, 4, 8];

const LITERALS: usize = 286;
const DISTANCES: usize = 30;
const END_OF_BLOCK: usize = 256;
/// Estimated bits of a match's symbols, without their extra bits.
const LENGTH_BITS: u32 = 7;
const DISTANCE_BITS: u32 = 5;

/// The order in which RFC 1951 sends the lengths of the code length code.
const LENGTH_ORDER: [usize; 19] =
    [16, 17, 18, 0, 8, 7, 9, 6, 10, 5, 11, 4, 12, 3, 13, 2, 14, 1, 15];

/// A match as it is found: how long, how far back, and what it saves against literals in 1/256
/// bits, at most 0 where it does not pay.
#[derive(Clone, Copy, Debug, Default)]
struct Match {
    length: u32,
    distance: u32,
    gain: i32,
}

#[derive(Clone, Copy, Debug)]
enum Token {
    Literal(u8),
    Match(Match),
}

/// One chunk of at most [`CHUNK_BYTES`], filtered, as a raw Deflate stream.
///
/// Panics if the filter takes differences: devices only shuffle.
pub fn encode_chunk(chunk: &[u8], filter: FilterKind) -> Vec<u8> {
    assert!(chunk.len() <= CHUNK_BYTES, "a chunk of {} bytes", chunk.len());
    match element_bytes(filter) {
        1 => encode(chunk, true),
        element_bytes => {
            let mut planes = vec![0; chunk.len()];
            standfast_reduce::shuffle(element_bytes, chunk, &mut planes);
            encode(&planes, true)
        }
    }
}

/// One chunk of at most [`CHUNK_BYTES`] as a part of a stream: others may follow, or
/// [`END_OF_STREAM`](standfast_gpu::deflate::END_OF_STREAM).
pub fn encode_part(chunk: &[u8]) -> Vec<u8> {
    assert!(chunk.len() <= CHUNK_BYTES, "a chunk of {} bytes", chunk.len());
    encode(chunk, false)
}

/// `last`: whether the stream ends here.
fn encode(chunk: &[u8], last: bool) -> Vec<u8> {
    if chunk.is_empty() {
        return Vec::new();
    }
    let matches = find_matches(chunk);
    let mut tokens = Vec::new();
    for first in (0..chunk.len()).step_by(PART) {
        let end = (first + PART).min(chunk.len());
        parse(chunk, &matches, first..end, &mut tokens);
    }
    let coded = write_block(&tokens, last);
    if coded.len() >= chunk.len() + 5 * chunk.len().div_ceil(STORED_PIECE) {
        return stored(chunk, last);
    }
    coded
}

/// What a literal of a part will cost in 1/256 bits, judged by the whole chunk's bytes.
fn literal_cost(chunk: &[u8], part: Range<usize>) -> u32 {
    let count = |bytes: &[u8]| {
        let mut counts = [0_u32; 256];
        bytes.iter().for_each(|byte| counts[usize::from(*byte)] += 1);
        counts
    };
    let all = log2_256(chunk.len() as u32);
    let (whole, own) = (count(chunk), count(&chunk[part.clone()]));
    let cost: u32 = (0..256)
        .filter(|symbol| own[*symbol] > 0)
        .map(|symbol| own[symbol] * (all - log2_256(whole[symbol])))
        .sum();
    (cost / part.len() as u32).max(256)
}

fn common_bytes(chunk: &[u8], at: usize, distance: usize, limit: usize) -> usize {
    (0..limit).take_while(|i| chunk[at + i] == chunk[at + i - distance]).count()
}

/// The best match of every position.
fn find_matches(chunk: &[u8]) -> Vec<Match> {
    let costs: Vec<u32> = (0..chunk.len())
        .step_by(PART)
        .map(|first| literal_cost(chunk, first..(first + PART).min(chunk.len())))
        .collect();
    // The last two positions of each hash.
    let mut table = vec![0_u32; 1 << TABLE_BITS];
    let mut matches = vec![Match::default(); chunk.len()];
    let hash = |at: usize| {
        let word = chunk[at..].first_chunk::<4>()?;
        Some((u32::from_le_bytes(*word).wrapping_mul(2_654_435_761) >> (32 - TABLE_BITS)) as usize)
    };
    for first in (0..chunk.len()).step_by(TILE) {
        let tile = first..(first + TILE).min(chunk.len());
        let before: Vec<Option<(usize, u32)>> =
            tile.clone().map(|at| hash(at).map(|hash| (hash, table[hash]))).collect();
        for (at, bucket) in tile.zip(before) {
            let Some((hash, bucket)) = bucket else { continue };
            matches[at] = best_match(chunk, at, bucket, costs[at / PART]);
            table[hash] = table[hash].max((at as u32) << 16 | bucket >> 16);
        }
    }
    matches
}

fn best_match(chunk: &[u8], at: usize, bucket: u32, literal_cost: u32) -> Match {
    let part_end = ((at / PART + 1) * PART).min(chunk.len());
    let limit = MATCH_SEARCHED.min(part_end - at);
    let seen = [bucket >> 16, bucket & 0xffff].map(|seen| at.wrapping_sub(seen as usize));
    let (mut best_length, mut best_distance) = (MATCH_MIN - 1, 0);
    for distance in OFFSETS.into_iter().chain(seen) {
        if distance == 0 || distance > DISTANCE_MAX || distance > at {
            continue;
        }
        let length = common_bytes(chunk, at, distance, limit) as u32;
        if length > best_length {
            (best_length, best_distance) = (length, distance as u32);
        }
    }
    if best_distance == 0 {
        return Match::default();
    }
    let cost = LENGTH_BITS + DISTANCE_BITS + distance_symbol(best_distance - 1).extra_bits;
    let gain = (best_length * literal_cost) as i32 - (cost << 8) as i32;
    Match { length: best_length, distance: best_distance, gain }
}

/// Chooses among the matches of a part: the first that pays and that the one after does not beat.
fn parse(chunk: &[u8], matches: &[Match], part: Range<usize>, tokens: &mut Vec<Token>) {
    let mut at = part.start;
    while at < part.end {
        let mut own = matches[at];
        let longest = own.length as usize == MATCH_SEARCHED;
        // A window's last position does not see the next window.
        let last = at % WINDOW == WINDOW - 1 || at + 1 == part.end;
        let after = if last { i32::MIN } else { matches[at + 1].gain };
        if own.gain <= 0 || (!longest && after > own.gain) {
            tokens.push(Token::Literal(chunk[at]));
            at += 1;
            continue;
        }
        if longest {
            let limit = MATCH_MAX.min(part.end - at);
            own.length = common_bytes(chunk, at, own.distance as usize, limit) as u32;
        }
        tokens.push(Token::Match(own));
        at += own.length as usize;
    }
}

/// Bits in the order of Deflate: the first is the lowest of the first byte.
#[derive(Default)]
struct Bits {
    bytes: Vec<u8>,
    pending: u64,
    count: u32,
}

impl Bits {
    fn put(&mut self, value: u32, bits: u32) {
        self.pending |= u64::from(value) << self.count;
        self.count += bits;
        while self.count >= 8 {
            self.bytes.push(self.pending as u8);
            self.pending >>= 8;
            self.count -= 8;
        }
    }

    fn put_symbol(&mut self, code: &Code, symbol: Symbol) {
        self.put(code.bits[symbol.symbol], code.lengths[symbol.symbol]);
        self.put(symbol.extra, symbol.extra_bits);
    }

    fn finish(mut self) -> Vec<u8> {
        if self.count > 0 {
            self.bytes.push(self.pending as u8);
        }
        self.bytes
    }
}

/// A block with codes of its own; if it is not the last one, an empty stored block behind it ends
/// between two bytes.
fn write_block(tokens: &[Token], last: bool) -> Vec<u8> {
    let mut literal_counts = [0; LITERALS];
    let mut distance_counts = [0; DISTANCES];
    literal_counts[END_OF_BLOCK] = 1;
    for token in tokens {
        match token {
            Token::Literal(byte) => literal_counts[usize::from(*byte)] += 1,
            Token::Match(found) => {
                literal_counts[length_symbol(found.length - 3).symbol] += 1;
                distance_counts[distance_symbol(found.distance - 1).symbol] += 1;
            }
        }
    }
    // A block without matches still names one distance.
    if distance_counts.iter().all(|count| *count == 0) {
        distance_counts[0] = 1;
    }
    let literals = Code::of(&literal_counts, 15);
    let distances = Code::of(&distance_counts, 15);
    let mut bits = Bits::default();
    write_header(&mut bits, &literals, &distances, last);
    for token in tokens {
        match token {
            Token::Literal(byte) => bits.put_symbol(&literals, plain(usize::from(*byte))),
            Token::Match(found) => {
                bits.put_symbol(&literals, length_symbol(found.length - 3));
                bits.put_symbol(&distances, distance_symbol(found.distance - 1));
            }
        }
    }
    bits.put_symbol(&literals, plain(END_OF_BLOCK));
    if last {
        return bits.finish();
    }
    bits.put(0, 3);
    let mut bytes = bits.finish();
    bytes.extend([0, 0, 0xff, 0xff]);
    bytes
}

fn plain(symbol: usize) -> Symbol {
    Symbol { symbol, extra_bits: 0, extra: 0 }
}

fn write_header(bits: &mut Bits, literals: &Code, distances: &Code, last: bool) {
    let used = |code: &Code, least: usize| {
        let last = code.lengths.iter().rposition(|length| *length > 0);
        last.map_or(least, |last| (last + 1).max(least))
    };
    let (literal_count, distance_count) = (used(literals, 257), used(distances, 1));
    let items =
        runs(&[&literals.lengths[..literal_count], &distances.lengths[..distance_count]].concat());
    let mut counts = [0; 19];
    items.iter().for_each(|item| counts[item.symbol] += 1);
    let lengths = Code::of(&counts, 7);
    let end = LENGTH_ORDER.iter().rposition(|symbol| lengths.lengths[*symbol] > 0);
    let length_count = end.map_or(4, |end| (end + 1).max(4));

    bits.put(0b100 | u32::from(last), 3);
    bits.put(literal_count as u32 - 257, 5);
    bits.put(distance_count as u32 - 1, 5);
    bits.put(length_count as u32 - 4, 4);
    for symbol in &LENGTH_ORDER[..length_count] {
        bits.put(lengths.lengths[*symbol], 3);
    }
    items.iter().for_each(|item| bits.put_symbol(&lengths, *item));
}

/// Code lengths as runs, RFC 1951 3.2.7.
fn runs(lengths: &[u32]) -> Vec<Symbol> {
    let mut items = Vec::new();
    for run in lengths.chunk_by(|a, b| a == b) {
        let (length, mut rest) = (run[0] as usize, run.len());
        if length == 0 {
            while rest >= 11 {
                let taken = rest.min(138);
                items.push(Symbol { symbol: 18, extra_bits: 7, extra: taken as u32 - 11 });
                rest -= taken;
            }
            if rest >= 3 {
                items.push(Symbol { symbol: 17, extra_bits: 3, extra: rest as u32 - 3 });
                rest = 0;
            }
        } else {
            items.push(plain(length));
            rest -= 1;
            while rest >= 3 {
                let taken = rest.min(6);
                items.push(Symbol { symbol: 16, extra_bits: 2, extra: taken as u32 - 3 });
                rest -= taken;
            }
        }
        items.extend(std::iter::repeat_n(plain(length), rest));
    }
    items
}

fn stored(chunk: &[u8], last: bool) -> Vec<u8> {
    let end = chunk.len().div_ceil(STORED_PIECE) - 1;
    let piece = |(at, piece): (usize, &[u8])| {
        let length = piece.len() as u16;
        let mut bytes = vec![u8::from(last && at == end)];
        bytes.extend(length.to_le_bytes());
        bytes.extend((!length).to_le_bytes());
        bytes.extend(piece);
        bytes
    };
    chunk.chunks(STORED_PIECE).enumerate().flat_map(piece).collect()
}

/// A symbol with extra bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Symbol {
    symbol: usize,
    extra_bits: u32,
    extra: u32,
}

/// The symbol of a match length, given less 3.
fn length_symbol(length: u32) -> Symbol {
    match length {
        255 => Symbol { symbol: 285, extra_bits: 0, extra: 0 },
        0..4 => Symbol { symbol: 257 + length as usize, extra_bits: 0, extra: 0 },
        _ => {
            let extra_bits = length.ilog2() - 2;
            let symbol = 261 + 4 * extra_bits + (length >> extra_bits & 3);
            let extra = length & ((1 << extra_bits) - 1);
            Symbol { symbol: symbol as usize, extra_bits, extra }
        }
    }
}

/// The symbol of a match distance, given less 1.
fn distance_symbol(distance: u32) -> Symbol {
    if distance < 2 {
        return Symbol { symbol: distance as usize, extra_bits: 0, extra: 0 };
    }
    let extra_bits = distance.ilog2() - 1;
    let symbol = 2 + 2 * extra_bits + (distance >> extra_bits & 1);
    let extra = distance & ((1 << extra_bits) - 1);
    Symbol { symbol: symbol as usize, extra_bits, extra }
}
