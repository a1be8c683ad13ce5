//! Moments as people read them: local date and time, and how long ago.

use std::time::{SystemTime, UNIX_EPOCH};

use jiff::Timestamp;
use jiff::tz::TimeZone;

/// Local date and time of nanoseconds since 1970: `2026-03-01 14:05:09`.
pub(crate) fn local(ns: u64) -> String {
    match Timestamp::from_nanosecond(i128::from(ns)) {
        Ok(time) => time.to_zoned(TimeZone::system()).strftime("%Y-%m-%d %H:%M:%S").to_string(),
        Err(_) => "?".into(),
    }
}

/// How long ago, in the unit that fits.
pub(crate) fn age(ns: u64) -> String {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
    match now.checked_sub(ns / 1_000_000_000) {
        Some(seconds) => format!("{} ago", span(seconds)),
        None => "in the future".into(),
    }
}

fn span(seconds: u64) -> String {
    match seconds {
        0..120 => format!("{seconds} s"),
        120..7_200 => format!("{} min", seconds / 60),
        7_200..172_800 => format!("{} h", seconds / 3_600),
        _ => format!("{} d", seconds / 86_400),
    }
}

#[cfg(test)]
mod tests;
