//! What each step of reduction reaches of this machine's memory bandwidth, in one run.
//!
//! `cargo run --release -p standfast-reduce --example reduce_speed [MIB]` (default 1024 MiB: far
//! beyond the caches). Every figure is the best of several passes over the same memory, one
//! thread; the shares compare with the read bandwidth of the same run.

use std::hint::black_box;
use std::time::Instant;

use standfast_format::{FilterKind, HashKind};
use standfast_reduce::{
    BlockDecoder, BlockEncoder, FilterChoice, PageHasher, is_zero, shuffle, unshuffle,
};

const PAGE: usize = 4096;
const BLOCK: usize = 128 << 10;
const PASSES: usize = 5;
const CODECS: [&str; 4] = ["lz4", "zstd:1", "zstd:3", "deflate:1"];

fn main() {
    let mib = std::env::args().nth(1).map_or(1024, |text| text.parse().expect("MIB is a number"));
    let table = ceilings(mib << 20);
    pages(&table, mib << 20);
    shuffles(&table);
    println!("\nblocks of 128 KiB, one thread: encode, decode, ratio (raw blocks of all)");
    let bytes = (mib << 20) / 16;
    for (name, data) in [
        ("noisy f64 field", noisy(bytes)),
        ("smooth f64 field", smooth(bytes)),
        ("random", random(bytes)),
    ] {
        println!("{name}");
        for codec in CODECS {
            for filter in ["none", "shuffle8", "auto"] {
                blocks(&table, codec, filter, &data);
            }
        }
    }
}

/// Prints figures beside the ceiling.
struct Table {
    read: f64,
}

impl Table {
    fn line(&self, name: &str, rate: f64) {
        println!("{name:28} {rate:7.2} GB/s {:6.1} % of read", 100.0 * rate / self.read);
    }
}

/// Best rate of several passes of `work`, in GB/s.
fn best(bytes: usize, mut work: impl FnMut()) -> f64 {
    let pass = |_| {
        let start = Instant::now();
        work();
        start.elapsed().as_secs_f64()
    };
    bytes as f64 / 1e9 / (0..PASSES).map(pass).fold(f64::MAX, f64::min)
}

fn ceilings(bytes: usize) -> Table {
    let src = random(bytes);
    let mut dst = random(bytes);
    let read = best(bytes, || {
        black_box(sum(black_box(&src)));
    });
    let table = Table { read };
    table.line("read", read);
    table.line("memcpy", best(bytes, || black_box(&mut dst).copy_from_slice(black_box(&src))));
    table
}

fn pages(table: &Table, bytes: usize) {
    let mut memory = random(bytes);
    for kind in HashKind::ALL {
        let hasher = PageHasher::new(*kind, &[7; 32]);
        let mut digests = vec![0; bytes / PAGE * hasher.bytes()];
        let rate = best(bytes, || hasher.hash_pages(&memory, PAGE, &mut digests));
        table.line(&format!("hash {kind}"), rate);
        let rate = best(bytes, || {
            for (page, digest) in
                memory.chunks_exact(PAGE).zip(digests.chunks_exact_mut(hasher.bytes()))
            {
                hasher.hash(page, digest);
            }
        });
        table.line(&format!("hash {kind}, one by one"), rate);
    }
    // Written, not freshly mapped: untouched memory is one shared zero page.
    black_box(&mut memory).fill(0);
    let rate = best(bytes, || {
        assert!(black_box(&memory).chunks_exact(PAGE).all(is_zero));
    });
    table.line("zero pages", rate);
}

fn shuffles(table: &Table) {
    // Blocks are shuffled out of and into the cache: the codec reads them at once.
    let src = random(BLOCK);
    let mut dst = vec![0; BLOCK];
    let repeats = 2000;
    for elem in [4, 8] {
        let rate = best(BLOCK * repeats, || {
            (0..repeats).for_each(|_| shuffle(elem, black_box(&src), black_box(&mut dst)));
        });
        table.line(&format!("shuffle{elem} in cache"), rate);
        let rate = best(BLOCK * repeats, || {
            (0..repeats).for_each(|_| unshuffle(elem, black_box(&src), black_box(&mut dst)));
        });
        table.line(&format!("unshuffle{elem} in cache"), rate);
    }
}

fn blocks(table: &Table, codec: &str, filter: &str, data: &[u8]) {
    let spec = codec.parse().expect("a codec");
    let choice: FilterChoice = filter.parse().expect("a filter");
    let mut encoder = BlockEncoder::new(spec, choice, BLOCK);
    let mut stored = Vec::new();
    for block in data.chunks(BLOCK) {
        let encoded = encoder.encode(block, 0);
        stored.push((encoded.codec, encoded.filter, encoded.bytes.to_vec(), block.len()));
    }
    let encode = best(data.len(), || {
        for block in data.chunks(BLOCK) {
            black_box(encoder.encode(block, 0));
        }
    });
    let mut decoder = BlockDecoder::new(BLOCK);
    let decode = best(data.len(), || {
        for (codec, filter, bytes, raw_bytes) in &stored {
            black_box(decoder.decode(*codec, *filter, bytes, *raw_bytes).expect("our own bytes"));
        }
    });
    let stored_bytes: usize = stored.iter().map(|block| block.2.len()).sum();
    let raw = stored.iter().filter(|block| block.0 == standfast_format::CodecKind::None).count();
    let shuffled = stored.iter().filter(|block| block.1 != FilterKind::None).count();
    // Raw blocks come back as they are: there is nothing to time.
    let decode = if raw == stored.len() { "-".to_owned() } else { format!("{decode:.2}") };
    println!(
        "  {:20} encode {encode:6.2} GB/s ({:5.1} % of read)  decode {decode:>6}  ratio {:5.2}  \
         raw {raw} shuffled {shuffled} of {}",
        format!("{codec} {filter}"),
        100.0 * encode / table.read,
        data.len() as f64 / stored_bytes as f64,
        stored.len(),
    );
}

/// Reads everything once; with AVX2 where there is AVX2.
fn sum(bytes: &[u8]) -> u64 {
    #[cfg(target_arch = "x86_64")]
    if std::arch::is_x86_feature_detected!("avx2") {
        // SAFETY: the processor has AVX2.
        return unsafe { sum_avx2(bytes) };
    }
    sum_words(bytes)
}

fn sum_words(bytes: &[u8]) -> u64 {
    // Independent sums, so that additions do not wait for each other.
    let mut sums = [0_u64; 32];
    for line in bytes.as_chunks::<256>().0 {
        for (sum, word) in sums.iter_mut().zip(line.as_chunks::<8>().0) {
            *sum = sum.wrapping_add(u64::from_le_bytes(*word));
        }
    }
    sums.iter().fold(0, |all, sum| all.wrapping_add(*sum))
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
fn sum_avx2(bytes: &[u8]) -> u64 {
    use std::arch::x86_64::*;
    let mut sums = [_mm256_setzero_si256(); 8];
    for line in bytes.as_chunks::<256>().0 {
        for (index, sum) in sums.iter_mut().enumerate() {
            // SAFETY: 32 * index + 32 <= 256; the load needs no alignment.
            let lane = unsafe { _mm256_loadu_si256(line.as_ptr().add(32 * index).cast()) };
            *sum = _mm256_add_epi64(*sum, lane);
        }
    }
    let total =
        sums.into_iter().fold(_mm256_setzero_si256(), |all, sum| _mm256_add_epi64(all, sum));
    let mut words = [0_u64; 4];
    // SAFETY: 32 writable bytes; the store needs no alignment.
    unsafe { _mm256_storeu_si256(words.as_mut_ptr().cast(), total) };
    words.iter().fold(0, |all, word| all.wrapping_add(*word))
}

fn random_words() -> impl Iterator<Item = u64> {
    let mut state = 0x9E37_79B9_7F4A_7C15_u64;
    std::iter::repeat_with(move || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state
    })
}

fn random(bytes: usize) -> Vec<u8> {
    random_words().take(bytes / 8).flat_map(u64::to_le_bytes).collect()
}

/// A wave: neighbours resemble each other, no byte repeats exactly.
fn wave(index: usize) -> f64 {
    300.0 + (index as f64 * 1e-4).sin() * 20.0 + (index as f64 * 3.7e-3).cos()
}

/// A field as solvers hold it in single precision, widened: low bytes are quiet.
fn smooth(bytes: usize) -> Vec<u8> {
    (0..bytes / 8).flat_map(|index| f64::from(wave(index) as f32).to_le_bytes()).collect()
}

/// A wave with noise in all low bits.
fn noisy(bytes: usize) -> Vec<u8> {
    random_words()
        .take(bytes / 8)
        .enumerate()
        .flat_map(|(index, word)| {
            (wave(index) * (1.0 + 1e-6 * (word as f64 / u64::MAX as f64))).to_le_bytes()
        })
        .collect()
}
