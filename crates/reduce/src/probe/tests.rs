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
    probe.choose(raw, elem_hint)
}

fn numbers(value: impl Fn(f64) -> f64) -> Vec<u8> {
    (0..16384).flat_map(|i| value(f64::from(i)).to_le_bytes()).collect()
}

#[test]
fn numbers_are_sorted_text_is_not_and_noise_is_left_alone() {
    for codec in [CodecKind::Lz4, CodecKind::Zstd] {
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
    let mut probe = Probe::new(CodecKind::Lz4, FilterChoice::Auto);
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
    let chosen = |codec| Probe::new(codec, FilterChoice::Auto).choose(&digits, 0);
    assert_eq!(chosen(CodecKind::Zstd), Some(FilterKind::None));
    assert_eq!(chosen(CodecKind::Lz4), None);
}

#[test]
fn a_filter_that_is_set_is_the_only_one_tried() {
    let mut probe = Probe::new(CodecKind::Zstd, FilterChoice::Fixed(FilterKind::Shuffle8));
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
