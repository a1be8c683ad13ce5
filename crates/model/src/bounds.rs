//! Range checks of plain numbers, each naming its field.
//!
//! Data: raw numbers from constructors -> the same number, or [`ModelError::Field`].
//!
//! Why plain `f64` and not a type per unit: formulas stay readable; the validated structs of
//! the other modules keep their fields private, so a bad number cannot get past them.
//!
//! Invariants:
//! - NaN and infinities never pass.

use crate::error::{ModelError, Result};

fn reject(field: &str, rule: &'static str, value: f64) -> ModelError {
    ModelError::Field { field: field.to_owned(), rule, value }
}

/// A finite number above zero.
pub fn positive(field: &str, value: f64) -> Result<f64> {
    if value.is_finite() && value > 0.0 {
        Ok(value)
    } else {
        Err(reject(field, "finite and above 0", value))
    }
}

/// A finite number, zero allowed.
pub fn non_negative(field: &str, value: f64) -> Result<f64> {
    if value.is_finite() && value >= 0.0 {
        Ok(value)
    } else {
        Err(reject(field, "finite and not negative", value))
    }
}

/// A probability or share, both ends included.
pub fn share(field: &str, value: f64) -> Result<f64> {
    if (0.0..=1.0).contains(&value) {
        Ok(value)
    } else {
        Err(reject(field, "between 0 and 1", value))
    }
}

/// A share that leaves something: 1 itself is refused.
pub fn share_below_one(field: &str, value: f64) -> Result<f64> {
    if (0.0..1.0).contains(&value) {
        Ok(value)
    } else {
        Err(reject(field, "at least 0 and below 1", value))
    }
}

/// A count of at least one.
pub fn at_least_one(field: &str, value: u64) -> Result<u64> {
    if value >= 1 { Ok(value) } else { Err(reject(field, "at least 1", value as f64)) }
}

#[cfg(test)]
mod tests;
