use super::*;

/// Multiplication of polynomials, the definition.
fn by_shifting(a: u8, b: u8) -> u8 {
    let (mut a, mut product) = (u16::from(a), 0);
    for bit in 0..8 {
        if b >> bit & 1 == 1 {
            product ^= a;
        }
        a <<= 1;
        if a > 255 {
            a ^= POLYNOMIAL;
        }
    }
    product as u8
}

#[test]
fn products_and_inverses_are_those_of_the_field() {
    for a in 0..=255 {
        for b in 0..=255 {
            assert_eq!(multiply(a, b), by_shifting(a, b), "{a} times {b}");
        }
        if a != 0 {
            assert_eq!(multiply(a, inverse(a)), 1, "{a}");
        }
    }
}
