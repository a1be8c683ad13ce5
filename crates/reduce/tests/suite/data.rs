//! Bytes of every sort that a codec meets, the same in each run.

/// A short name and the bytes, for messages.
pub(crate) type Sample = (String, Vec<u8>);

type Make = fn(usize) -> Vec<u8>;

/// Every sort of data at every length that matters: nothing, a byte, around a page, a block, more.
pub(crate) fn samples() -> Vec<Sample> {
    let sorts: [(&str, Make); 6] = [
        ("zeros", |len| vec![0; len]),
        ("random", random),
        ("text", text),
        ("smooth", smooth),
        ("noisy", noisy),
        ("mixed", mixed),
    ];
    let mut samples = Vec::new();
    for len in [0, 1, 7, 100, 4095, 4096, 4097, 128 << 10, (128 << 10) + 5, 1 << 20] {
        for (name, make) in sorts {
            samples.push((format!("{name} {len}"), make(len)));
        }
    }
    samples
}

pub(crate) fn random_words() -> impl Iterator<Item = u64> {
    let mut state = 0x9E37_79B9_7F4A_7C15_u64;
    std::iter::repeat_with(move || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state
    })
}

pub(crate) fn random(len: usize) -> Vec<u8> {
    random_words().flat_map(u64::to_le_bytes).take(len).collect()
}

pub(crate) fn text(len: usize) -> Vec<u8> {
    let words = ["rank", "page", "of", "the", "block", "is", "written", "before", "\n"];
    random_words()
        .flat_map(|word| words[word as usize % words.len()].bytes().chain([b' ']))
        .take(len)
        .collect()
}

fn wave(index: usize) -> f64 {
    300.0 + (index as f64 * 1e-4).sin()
}

pub(crate) fn smooth(len: usize) -> Vec<u8> {
    (0..).flat_map(|index| f64::from(wave(index) as f32).to_le_bytes()).take(len).collect()
}

pub(crate) fn noisy(len: usize) -> Vec<u8> {
    let noise = random_words().map(|word| word as f64 / u64::MAX as f64);
    noise
        .enumerate()
        .flat_map(|(index, noise)| (wave(index) + 1e-6 * noise).to_le_bytes())
        .take(len)
        .collect()
}

/// Noise, with a quiet stretch where no sample of a few pieces will look.
pub(crate) fn mixed(len: usize) -> Vec<u8> {
    let mut bytes = random(len);
    bytes[len / 8..len / 4].fill(3);
    bytes
}
