//! Arithmetic of GF(2^8) with the polynomial x^8 + x^4 + x^3 + x^2 + 1 (0x11d), by logarithms.
//!
//! Addition is exclusive or; 2 generates all elements but zero. This is the definition that
//! every kernel must agree with, and what matrices are made with.

const POLYNOMIAL: u16 = 0x11d;

struct Tables {
    /// Powers of 2, twice over, so that a sum of two logarithms needs no reduction.
    power: [u8; 512],
    logarithm: [u8; 256],
}

static TABLES: Tables = tables();

const fn tables() -> Tables {
    let mut tables = Tables { power: [0; 512], logarithm: [0; 256] };
    let mut value: u16 = 1;
    let mut exponent = 0;
    while exponent < 255 {
        tables.power[exponent] = value as u8;
        tables.power[exponent + 255] = value as u8;
        tables.logarithm[value as usize] = exponent as u8;
        value <<= 1;
        if value > 255 {
            value ^= POLYNOMIAL;
        }
        exponent += 1;
    }
    tables
}

/// The product.
pub fn multiply(a: u8, b: u8) -> u8 {
    if a == 0 || b == 0 {
        return 0;
    }
    let logarithm = |element: u8| usize::from(TABLES.logarithm[usize::from(element)]);
    TABLES.power[logarithm(a) + logarithm(b)]
}

/// The element whose product with `a` is 1.
///
/// # Panics
/// For zero, which has none.
pub fn inverse(a: u8) -> u8 {
    assert_ne!(a, 0, "zero has no inverse");
    TABLES.power[255 - usize::from(TABLES.logarithm[usize::from(a)])]
}

/// All products of a factor, by the other one.
pub(crate) fn products(factor: u8) -> [u8; 256] {
    std::array::from_fn(|value| multiply(value as u8, factor))
}

#[cfg(test)]
mod tests;
