//! Times, sizes, rates and shares as people write them on the command line.
//!
//! Data: `8h`, `64GiB`, `1.5GB/s`, `60%` -> plain numbers in seconds, bytes, bytes per second and
//! shares. Which values make sense is for the planner to say: it knows the fields.

use standfast_admin::model::plan::CodecInput;

const TIMES: &[(&str, f64)] = &[
    ("s", 1.0),
    ("us", 1e-6),
    ("ms", 1e-3),
    ("m", 60.0),
    ("min", 60.0),
    ("h", 3600.0),
    ("d", 86_400.0),
];

const SIZES: &[(&str, f64)] = &[
    ("b", 1.0),
    ("kb", 1e3),
    ("mb", 1e6),
    ("gb", 1e9),
    ("tb", 1e12),
    ("pb", 1e15),
    ("kib", 1024.0),
    ("mib", 1_048_576.0),
    ("gib", 1_073_741_824.0),
    ("tib", 1_099_511_627_776.0),
    ("pib", 1_125_899_906_842_624.0),
];

const BITS: &[(&str, f64)] = &[("kbit", 125.0), ("mbit", 125e3), ("gbit", 125e6), ("tbit", 125e9)];

/// A time in seconds.
pub(super) fn time(text: &str) -> Result<f64, String> {
    let refuse = || "not a time such as 90s, 10min, 8h or 2d".to_owned();
    let (number, unit) = split(text).ok_or_else(refuse)?;
    Ok(number * factor(TIMES, unit, "s").ok_or_else(refuse)?)
}

/// A size in bytes.
pub(super) fn size(text: &str) -> Result<f64, String> {
    let refuse = || "not a size such as 64GiB, 500MB or 4096".to_owned();
    let (number, unit) = split(text).ok_or_else(refuse)?;
    Ok(number * factor(SIZES, unit, "b").ok_or_else(refuse)?)
}

/// A rate in bytes per second.
pub(super) fn rate(text: &str) -> Result<f64, String> {
    let refuse = || "not a rate such as 1.5GB/s, 900MiB/s or 100Gbit/s".to_owned();
    let (number, unit) = split(text).ok_or_else(refuse)?;
    let unit = unit.strip_suffix("/s").unwrap_or(unit);
    let found = factor(SIZES, unit, "b").or_else(|| factor(BITS, unit, "b"));
    Ok(number * found.ok_or_else(refuse)?)
}

/// A share from 0 to 1.
pub(super) fn share(text: &str) -> Result<f64, String> {
    let refuse = || "not a share such as 0.6 or 60%".to_owned();
    match split(text).ok_or_else(refuse)? {
        (number, "") => Ok(number),
        (number, "%") => Ok(number / 100.0),
        _ => Err(refuse()),
    }
}

/// A codec: `NAME=SAVED,COMPRESS,DECOMPRESS`.
pub(super) fn codec(text: &str) -> Result<CodecInput, String> {
    let refuse = || "not NAME=SAVED,COMPRESS,DECOMPRESS such as zstd:1=30%,2GB/s,4GB/s".to_owned();
    let (name, numbers) = text.split_once('=').ok_or_else(refuse)?;
    name.parse::<standfast_admin::CodecSpec>().map_err(|error| error.to_string())?;
    let [saved, compress, decompress] =
        numbers.split(',').collect::<Vec<_>>().try_into().map_err(|_| refuse())?;
    Ok(CodecInput {
        name: name.to_owned(),
        factor: share(saved)?,
        compress_bps: rate(compress)?,
        decompress_bps: rate(decompress)?,
    })
}

fn split(text: &str) -> Option<(f64, &str)> {
    let text = text.trim();
    let number = |c: char| c.is_ascii_digit() || matches!(c, '.' | '-' | '+');
    let (digits, unit) = text.split_at(text.find(|c| !number(c)).unwrap_or(text.len()));
    Some((digits.parse().ok()?, unit.trim()))
}

fn factor(units: &[(&str, f64)], unit: &str, default: &str) -> Option<f64> {
    let unit = if unit.is_empty() { default } else { unit };
    units.iter().find(|(name, _)| name.eq_ignore_ascii_case(unit)).map(|(_, factor)| *factor)
}

#[cfg(test)]
mod tests;
