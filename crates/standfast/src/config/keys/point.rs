//! When a program's `point` takes a checkpoint, and who may ask for one.

use super::Key;
use super::text::time;
use crate::config::time::TimeSpan;

/// How long a program works between checkpoints, where it leaves that to `Job::point`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Interval {
    /// The program decides by itself.
    Off,
    /// As long as costs least, by measured checkpoints and the expected failures.
    Auto,
    /// As long as this.
    Every(TimeSpan),
}

pub(super) const INTERVAL: Key = Key {
    name: "interval",
    help: "When point() takes a checkpoint: off (never), auto (from measured cost and mtti), or after a time such as 90s or 10min",
    default: "off",
    set: |config, text| {
        config.interval = match text {
            "off" => Interval::Off,
            "auto" => Interval::Auto,
            _ => Interval::Every(time(text).map_err(|why| format!("{why}, off or auto"))?),
        };
        Ok(())
    },
    show: |config| match config.interval {
        Interval::Off => "off".into(),
        Interval::Auto => "auto".into(),
        Interval::Every(time) => time.to_string(),
    },
};

pub(super) const MTTI: Key = Key {
    name: "mtti",
    help: "Mean time between failures that is expected of the whole job; the interval auto starts from it",
    default: "24h",
    set: |config, text| {
        config.mtti = time(text)?;
        Ok(())
    },
    show: |config| config.mtti.to_string(),
};

pub(super) const SIGNAL: Key = Key {
    name: "signal",
    help: "Signal to any rank that asks the next point() for a checkpoint: off, a name such as USR1, or the number of a real-time signal",
    default: "off",
    set: |config, text| {
        config.signal = match text {
            "off" => None,
            _ => Some(text.parse().map_err(|why| format!("{text:?} is {why}, or off"))?),
        };
        Ok(())
    },
    show: |config| config.signal.map_or_else(|| "off".into(), |signal| signal.to_string()),
};

pub(super) const ASK: Key = Key {
    name: "ask",
    help: "File by which 'standfast run' asks the next point() of the program it has started for a checkpoint; set by it",
    default: "",
    set: |config, text| {
        config.ask = text.into();
        Ok(())
    },
    show: |config| config.ask.clone(),
};
