//! Sizes as people write them: `64MiB`, `4 KiB`, `200MB`, `4096`.
//!
//! Why no crate for it: they show sizes rounded, and a value that is shown must be read again.

use std::fmt;
use std::str::FromStr;

/// A number of bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ByteSize(pub u64);

/// Units of manufacturers, which are read and not shown.
const DECIMAL_UNITS: [(&str, u64); 4] =
    [("TB", 1_000_000_000_000), ("GB", 1_000_000_000), ("MB", 1_000_000), ("KB", 1000)];

const UNITS: [(&str, u64); 5] =
    [("TiB", 1 << 40), ("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10), ("B", 1)];

impl FromStr for ByteSize {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let text = text.trim();
        let digits = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
        let (number, unit) = (&text[..digits], text[digits..].trim());
        let refuse = || format!("{text:?} is not a size such as 4096, 64KiB, 256MiB or 1GiB");
        let factor = match unit {
            "" => 1,
            "K" | "k" => 1 << 10,
            "M" | "m" => 1 << 20,
            "G" | "g" => 1 << 30,
            unit => {
                let mut units = UNITS.iter().chain(&DECIMAL_UNITS);
                units.find(|(name, _)| name.eq_ignore_ascii_case(unit)).ok_or_else(refuse)?.1
            }
        };
        let number: u64 = number.parse().map_err(|_| refuse())?;
        number.checked_mul(factor).map(ByteSize).ok_or_else(refuse)
    }
}

impl fmt::Display for ByteSize {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (unit, factor) =
            UNITS.iter().find(|(_, factor)| self.0 >= *factor).copied().unwrap_or(("B", 1));
        if self.0.is_multiple_of(factor) {
            write!(f, "{}{unit}", self.0 / factor)
        } else {
            write!(f, "{}B", self.0)
        }
    }
}

#[cfg(test)]
mod tests;
