use super::*;
use proptest::prelude::*;

const FAMILIES: [Family; 2] = [Family::Cauchy, Family::Vandermonde];

/// Any `k` of the pieces are independent: shown by inverting every choice.
#[test]
fn every_loss_of_small_codes_is_survived() {
    for family in FAMILIES {
        for (k, m) in (1..=6).flat_map(|k| (1..=k).map(move |m| (k, m))) {
            let code = Code::new(family, k, m).unwrap();
            let all: Vec<usize> = (0..k + m).collect();
            let generator = Matrix::new(k + m, k, |row, column| code.generator(row, column));
            for kept in 0u32..1 << (k + m) {
                if kept.count_ones() as usize != k {
                    continue;
                }
                let present: Vec<usize> =
                    all.iter().copied().filter(|piece| kept >> piece & 1 == 1).collect();
                let rebuild = code.rebuild(&present, &all).unwrap();
                let rows = Matrix::new(k, k, |row, column| code.generator(present[row], column));
                assert_eq!(rebuild.times(&rows), generator, "{family:?} {k} {m} {kept:b}");
            }
        }
    }
}

/// The numbers that shards on disk and on devices are made with; they must never change.
#[test]
fn the_cauchy_matrix_is_the_documented_one() {
    let code = Code::new(Family::Cauchy, 4, 2).unwrap();
    let expected = Matrix::new(2, 4, |row, column| inverse(((4 + row) ^ column) as u8));
    assert_eq!(code.parity(), &expected);
    assert_eq!(code.parity().cells(), [71, 167, 122, 186, 167, 71, 186, 122]);
}

#[test]
fn wrong_pieces_are_refused() {
    let code = Code::new(Family::Cauchy, 3, 2).unwrap();
    assert!(Code::new(Family::Cauchy, 0, 2).is_err());
    assert!(Code::new(Family::Vandermonde, 3, 129).is_err());
    assert!(code.rebuild(&[0, 1], &[2]).is_err());
    assert!(code.rebuild(&[0, 1, 1], &[2]).is_err());
    assert!(code.rebuild(&[0, 1, 5], &[2]).is_err());
    assert!(code.rebuild(&[0, 1, 2], &[5]).is_err());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]
    #[test]
    fn losses_of_large_codes_are_survived(
        k in 7usize..=128, share in 0.0f64..1.0, order in any::<u64>(), cauchy: bool,
    ) {
        let m = 1 + (share * (k - 1) as f64) as usize;
        let family = FAMILIES[usize::from(cauchy)];
        let code = Code::new(family, k, m).unwrap();
        let mut pieces: Vec<usize> = (0..k + m).collect();
        let mut state = order;
        for at in (1..pieces.len()).rev() {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            pieces.swap(at, (state >> 33) as usize % (at + 1));
        }
        let (present, lost) = pieces.split_at(k);
        let rebuild = code.rebuild(present, lost).unwrap();
        let kept = Matrix::new(k, k, |row, column| code.generator(present[row], column));
        let gone = Matrix::new(m, k, |row, column| code.generator(lost[row], column));
        prop_assert_eq!(rebuild.times(&kept), gone);
    }
}
