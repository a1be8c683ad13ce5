//! Times as people write them: `90s`, `10 min`, `24h`, `250ms`, `3600`.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

/// A length of time, in whole milliseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct TimeSpan(pub Duration);

/// Units that times are shown with, in milliseconds.
const UNITS: [(&str, u64); 4] = [("h", 3_600_000), ("min", 60_000), ("s", 1000), ("ms", 1)];

impl FromStr for TimeSpan {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let text = text.trim();
        let digits = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
        let (number, unit) = (&text[..digits], text[digits..].trim());
        let refuse = || format!("{text:?} is not a time such as 90s, 10min, 24h or 7d");
        let factor = match unit {
            "" => 1000,
            "m" => 60_000,
            "d" => 86_400_000,
            unit => UNITS.iter().find(|(name, _)| *name == unit).ok_or_else(refuse)?.1,
        };
        let number: u64 = number.parse().map_err(|_| refuse())?;
        let millis = number.checked_mul(factor).ok_or_else(refuse)?;
        Ok(Self(Duration::from_millis(millis)))
    }
}

impl fmt::Display for TimeSpan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let millis = self.0.as_millis();
        let fits =
            |factor: u64| millis >= u128::from(factor) && millis.is_multiple_of(u128::from(factor));
        let (unit, factor) =
            UNITS.iter().find(|(_, factor)| fits(*factor)).copied().unwrap_or(("ms", 1));
        write!(f, "{}{unit}", millis / u128::from(factor))
    }
}

#[cfg(test)]
mod tests;
