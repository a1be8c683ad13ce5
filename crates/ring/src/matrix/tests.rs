use super::*;
use proptest::prelude::*;

fn unit(n: usize) -> Matrix {
    Matrix::new(n, n, |row, column| u8::from(row == column))
}

proptest! {
    #[test]
    fn an_inverse_undoes_its_matrix(n in 1usize..12, cells: [u8; 144]) {
        let matrix = Matrix::new(n, n, |row, column| cells[row * 12 + column]);
        if let Some(inverse) = matrix.inverted() {
            prop_assert_eq!(matrix.times(&inverse), unit(n));
            prop_assert_eq!(inverse.times(&matrix), unit(n));
        }
    }

    #[test]
    fn a_repeated_row_has_no_inverse(n in 2usize..9, cells: [u8; 81]) {
        let twice = Matrix::new(n, n, |row, column| cells[row.max(1) * 9 + column]);
        prop_assert_eq!(twice.inverted(), None);
    }
}
