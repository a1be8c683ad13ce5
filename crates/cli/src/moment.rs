//! Moments as people read them: local date and time, and how long ago.

use std::time::{SystemTime, UNIX_EPOCH};

/// Local date and time of nanoseconds since 1970: `2026-03-01 14:05:09`.
pub(crate) fn local(ns: u64) -> String {
    let Ok(seconds) = libc::time_t::try_from(ns / 1_000_000_000) else { return "?".into() };
    // SAFETY: `tm` is plain numbers and a pointer that may be null; zeros are a valid value.
    let mut tm: libc::tm = unsafe { std::mem::zeroed() };
    // SAFETY: both pointers are to live values of the right types; localtime_r keeps neither.
    if unsafe { libc::localtime_r(&seconds, &mut tm) }.is_null() {
        return "?".into();
    }
    format!(
        "{:04}-{:02}-{:02} {:02}:{:02}:{:02}",
        tm.tm_year + 1900,
        tm.tm_mon + 1,
        tm.tm_mday,
        tm.tm_hour,
        tm.tm_min,
        tm.tm_sec
    )
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
mod tests {
    use super::*;

    #[test]
    fn spans_take_the_fitting_unit() {
        let texts = [5, 119, 120, 7_199, 7_200, 172_800].map(span);
        assert_eq!(texts, ["5 s", "119 s", "2 min", "119 min", "2 h", "2 d"]);
    }

    #[test]
    fn nonsense_times_have_a_text() {
        assert!(!local(u64::MAX).is_empty());
        assert_eq!(age(u64::MAX), "in the future");
        assert_eq!(local(0).len(), 19);
    }
}
