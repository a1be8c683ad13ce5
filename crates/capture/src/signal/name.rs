//! Signals that may ask for a checkpoint, by name and by number.

use std::fmt;
use std::str::FromStr;

/// A signal that a program can do without: neither one that ends it nor one that reports a fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Signal(i32);

impl Signal {
    /// `SIGUSR1`, the usual one.
    pub const USR1: Self = Self(libc::SIGUSR1);

    /// Its number.
    pub fn number(self) -> i32 {
        self.0
    }
}

const NAMES: [(&str, i32); 8] = [
    ("USR1", libc::SIGUSR1),
    ("USR2", libc::SIGUSR2),
    ("HUP", libc::SIGHUP),
    ("URG", libc::SIGURG),
    ("WINCH", libc::SIGWINCH),
    ("IO", libc::SIGIO),
    ("PWR", libc::SIGPWR),
    ("XCPU", libc::SIGXCPU),
];

impl FromStr for Signal {
    type Err = String;

    /// Takes a name such as `USR1` or `SIGUSR1`, or a number. The last three real-time signals are
    /// not taken: by one of them the preload library stops threads.
    fn from_str(text: &str) -> Result<Self, String> {
        let upper = text.to_ascii_uppercase();
        let name = upper.strip_prefix("SIG").unwrap_or(&upper);
        let number: Option<i32> = name.parse().ok();
        let found = NAMES.iter().find(|(of, signal)| *of == name || Some(*signal) == number);
        let realtime =
            number.filter(|number| (libc::SIGRTMIN()..libc::SIGRTMAX() - 2).contains(number));
        found.map(|(_, signal)| *signal).or(realtime).map(Self).ok_or_else(|| {
            let names: Vec<&str> = NAMES.iter().map(|(name, _)| *name).collect();
            format!("not one of {}, or the number of a real-time signal", names.join(", "))
        })
    }
}

impl fmt::Display for Signal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match NAMES.iter().find(|(_, number)| *number == self.0) {
            Some((name, _)) => f.write_str(name),
            None => self.0.fmt(f),
        }
    }
}

#[cfg(test)]
mod tests;
