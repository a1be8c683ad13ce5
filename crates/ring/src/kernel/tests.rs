use proptest::prelude::*;

use super::*;
use crate::field::multiply;

fn bytes(count: usize, seed: usize) -> Vec<u8> {
    let mut state = seed as u64 + 1;
    std::iter::repeat_with(|| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963);
        (state >> 56) as u8
    })
    .take(count)
    .collect()
}

/// The definition, by the field alone.
fn naive(matrix: &Matrix, sources: &[&[u8]], before: &[Vec<u8>]) -> Vec<Vec<u8>> {
    let mut out = before.to_vec();
    for (row, out) in out.iter_mut().enumerate() {
        for (column, source) in sources.iter().enumerate() {
            let factor = matrix.cell(row, column);
            out.iter_mut().zip(*source).for_each(|(sum, &byte)| *sum ^= multiply(factor, byte));
        }
    }
    out
}

fn available() -> impl Iterator<Item = Kernel> {
    Kernel::ALL.into_iter().filter(|kernel| kernel.is_available())
}

fn check(rows: usize, columns: usize, length: usize, skew: usize, seed: usize) {
    let matrix = {
        let cells = bytes(rows * columns, seed);
        Matrix::new(rows, columns, |row, column| cells[row * columns + column])
    };
    // Skewed starts: no kernel may rely on alignment.
    let held: Vec<Vec<u8>> = (0..columns).map(|c| bytes(length + skew, seed + c)).collect();
    let sources: Vec<&[u8]> = held.iter().map(|source| &source[skew..]).collect();
    let before: Vec<Vec<u8>> = (0..rows).map(|row| bytes(length, seed + 77 + row)).collect();
    let zeros = vec![vec![0; length]; rows];
    for kernel in available() {
        let combine = Combine::with_kernel(&matrix, kernel);
        let name = kernel.name();
        let mut out = before.clone();
        let mut slices: Vec<&mut [u8]> = out.iter_mut().map(Vec::as_mut_slice).collect();
        combine.set(&mut slices, &sources);
        assert_eq!(out, naive(&matrix, &sources, &zeros), "{name} {rows} {columns} {length}");
        let mut out = before.clone();
        let mut slices: Vec<&mut [u8]> = out.iter_mut().map(Vec::as_mut_slice).collect();
        combine.add(&mut slices, &sources);
        assert_eq!(out, naive(&matrix, &sources, &before), "{name} {rows} {columns} {length}");
    }
}

#[test]
fn every_factor_multiplies_every_byte() {
    let all: Vec<u8> = (0..=255).collect();
    for kernel in available() {
        for factor in 0..=255 {
            let combine = Combine::with_kernel(&Matrix::new(1, 1, |_, _| factor), kernel);
            let mut out = vec![0; 256];
            combine.set(&mut [&mut out], &[&all]);
            let expected: Vec<u8> = all.iter().map(|&byte| multiply(factor, byte)).collect();
            assert_eq!(out, expected, "{} {factor}", kernel.name());
        }
    }
}

#[test]
fn every_number_of_rows_and_every_short_length_is_right() {
    for rows in 1..=9 {
        for length in [0, 1, 31, 32, 33, 63, 64, 65, 127, 128, 129, 200] {
            check(rows, 3, length, 1, rows * 1000 + length);
        }
    }
}

#[test]
fn matrices_larger_than_a_pass_are_right() {
    for (rows, columns, length) in
        [(8, 16, 40_000), (9, 17, 40_001), (128, 128, 200), (1, 33, 16_384), (17, 1, 16_385)]
    {
        check(rows, columns, length, 0, rows + columns);
    }
}

#[test]
fn no_sources_make_zeros_or_change_nothing() {
    let combine = Combine::new(&Matrix::new(2, 0, |_, _| 0));
    let (mut one, mut two) = (vec![1; 5], vec![2; 5]);
    combine.add(&mut [&mut one, &mut two], &[]);
    assert_eq!((&one, &two), (&vec![1; 5], &vec![2; 5]));
    combine.set(&mut [&mut one, &mut two], &[]);
    assert_eq!((one, two), (vec![0; 5], vec![0; 5]));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn any_shape_is_right(
        rows in 1usize..20, columns in 1usize..40, length in 0usize..700, skew in 0usize..64,
        seed in 0usize..1_000_000,
    ) {
        check(rows, columns, length, skew, seed);
    }

    #[test]
    fn adding_is_exclusive_or(one: Vec<u8>, seed in 0usize..1000) {
        let other = bytes(one.len(), seed);
        let mut sum = one.clone();
        add(&mut sum, &other);
        let expected: Vec<u8> = one.iter().zip(&other).map(|(a, b)| a ^ b).collect();
        prop_assert_eq!(sum, expected);
    }
}
