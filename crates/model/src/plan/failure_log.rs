//! MTTI from a log of failures.
//!
//! Data: text with one time per line (ISO 8601 or seconds since 1970) -> [`Mtti`].
//!
//! Words after the time, empty lines and lines that start with `#` are ignored. Failures are
//! taken as memoryless, so that the interval follows from a chi-square distribution.
//!
//! Invariants:
//! - Any line that is not a time is an error with its number: a log read halfway gives a wrong
//!   MTTI without anyone noticing.

use serde::Serialize;

use crate::error::{ModelError, Result};

const INPUT: &str = "failure log";
/// Normal quantile of 97.5 %.
const Z: f64 = 1.959_964;

/// Mean time to interrupt with its 95 % interval.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Mtti {
    /// The estimate.
    pub mean_s: f64,
    /// Lower end of the interval.
    pub low_s: f64,
    /// Upper end of the interval.
    pub high_s: f64,
    /// Failures in the log.
    pub failures: usize,
}

/// Reads a log.
pub fn parse(text: &str) -> Result<Mtti> {
    let mut times = Vec::new();
    for (index, line) in text.lines().enumerate() {
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let time = time_of(line).ok_or_else(|| {
            let reason = "expected an ISO 8601 time or seconds since 1970";
            ModelError::line(INPUT, index + 1, reason, line)
        })?;
        times.push(time);
    }
    times.sort_by(f64::total_cmp);
    let span = times.last().zip(times.first()).map_or(0.0, |(b, a)| b - a);
    if times.len() < 2 || span <= 0.0 {
        return Err(ModelError::Incomplete {
            input: INPUT,
            reason: format!("two failures at different times are needed, {} found", times.len()),
        });
    }
    let gaps = (times.len() - 1) as f64;
    let freedom = 2.0 * gaps;
    Ok(Mtti {
        mean_s: span / gaps,
        low_s: 2.0 * span / chi_square(freedom, Z),
        high_s: 2.0 * span / chi_square(freedom, -Z),
        failures: times.len(),
    })
}

/// Chi-square quantile by Wilson and Hilferty's cube.
fn chi_square(freedom: f64, z: f64) -> f64 {
    let part = 2.0 / (9.0 * freedom);
    freedom * (1.0 - part + z * part.sqrt()).max(1e-6).powi(3)
}

fn time_of(line: &str) -> Option<f64> {
    let mut words = line.split_whitespace();
    let first = words.next()?;
    if let Ok(seconds) = first.parse::<f64>() {
        return (seconds.is_finite() && seconds >= 0.0).then_some(seconds);
    }
    let (date, time) = match first.split_once(['T', 't']) {
        Some((date, time)) => (date, Some(time)),
        // A blank may stand for the T.
        None => (first, words.next().filter(|word| word.contains(':'))),
    };
    let day = day_of(date)?;
    Some(86_400.0 * day as f64 + time.map_or(Some(0.0), seconds_of)?)
}

/// Days since 1970 of `YYYY-MM-DD` in the Gregorian calendar.
fn day_of(date: &str) -> Option<i64> {
    let mut parts = date.splitn(3, '-').map(|part| {
        let digits = !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit());
        digits.then(|| part.parse::<i64>().ok()).flatten()
    });
    let (year, month, day) = (parts.next()??, parts.next()??, parts.next()??);
    if !(1..=12).contains(&month) || !(1..=31).contains(&day) || !(1..=9999).contains(&year) {
        return None;
    }
    // Years that start in March put the leap day last.
    let (year, month) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
    Some(365 * year + year / 4 - year / 100 + year / 400 + (153 * month + 2) / 5 + day - 719_469)
}

/// Seconds of `HH:MM[:SS[.fff]]`, with `Z` or an offset, relative to midnight UTC.
fn seconds_of(text: &str) -> Option<f64> {
    let (clock, offset) = match text.find(['Z', 'z', '+', '-']) {
        None => (text, 0.0),
        Some(at) => (&text[..at], offset_of(&text[at..])?),
    };
    Some(clock_of(clock)? - offset)
}

fn offset_of(text: &str) -> Option<f64> {
    let sign = match text.as_bytes()[0] {
        b'+' => 1.0,
        b'-' => -1.0,
        _ => return (text.len() == 1).then_some(0.0),
    };
    let digits = &text[1..];
    let (hours, minutes) = match digits.split_once(':') {
        Some(parts) => parts,
        None => (digits.get(..2)?, digits.get(2..)?),
    };
    let minutes = if minutes.is_empty() { "0" } else { minutes };
    let value = |part: &str| part.parse::<u32>().ok().filter(|v| *v < 60).map(f64::from);
    Some(sign * (3600.0 * value(hours)? + 60.0 * value(minutes)?))
}

fn clock_of(text: &str) -> Option<f64> {
    let mut parts = text.split(':');
    let hours: u32 = parts.next()?.parse().ok().filter(|h| *h < 24)?;
    let minutes: u32 = parts.next()?.parse().ok().filter(|m| *m < 60)?;
    let seconds: f64 = parts.next().map_or(Some(0.0), |s| s.parse().ok())?;
    let valid = (0.0..61.0).contains(&seconds) && parts.next().is_none();
    valid.then(|| f64::from(hours * 3600 + minutes * 60) + seconds)
}

#[cfg(test)]
mod tests;
