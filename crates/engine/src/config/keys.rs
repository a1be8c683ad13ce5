//! Every setting, defined once: its name, what it means, how to read it and how to show it.
//!
//! The file, the environment, the API, `standfast config` and the reference in the docs all go
//! through this table, so a setting cannot exist in one of them and not in another.

use std::fmt::Display;
use std::str::FromStr;
use std::time::Duration;

use standfast_format::{
    BLOCK_BYTES_MAX, FilterKind, HashKind, PAGE_BYTES_MAX, PAGE_BYTES_MIN, name,
};
use standfast_reduce::{CodecSpec, FilterChoice};
use standfast_store::Io;

use super::size::ByteSize;
use super::time::TimeSpan;

/// What pages are compared with before they are stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dedup {
    /// With nothing: every page is stored.
    Off,
    /// With zero and with the other pages of the same checkpoint.
    Local,
    /// Also with the pages of earlier checkpoints.
    Time,
}

/// How changed pages are found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Track {
    /// By the kernel where it can and where it pays, by hashing elsewhere.
    Auto,
    /// By the kernel, wherever it can.
    Uffd,
    /// By hashing every page.
    Hash,
}

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

/// The effective settings of a job.
#[derive(Clone, Debug, PartialEq)]
pub struct Config {
    /// Where jobs keep their stores.
    pub store: String,
    /// Name of the job: a directory below `store`.
    pub job: String,
    /// Unit of comparison and deduplication.
    pub page: ByteSize,
    /// How pages are recognised.
    pub hash: HashKind,
    /// What pages are compared with.
    pub dedup: Dedup,
    /// How changed pages are found.
    pub track: Track,
    /// How blocks are compressed.
    pub codec: CodecSpec,
    /// What is done to blocks before.
    pub filter: FilterChoice,
    /// Pages compressed together.
    pub block: ByteSize,
    /// Memory for captured pages on their way to the store.
    pub pool: ByteSize,
    /// Largest segment.
    pub segment: ByteSize,
    /// Threads that hash, and threads that compress; 0: one per core, at most 4.
    pub threads: usize,
    /// How the local directory is written and read.
    pub io: Io,
    /// Writes in flight.
    pub io_threads: usize,
    /// Checkpoints kept; 0: all.
    pub keep: u32,
    /// When `Job::point` takes a checkpoint.
    pub interval: Interval,
    /// Expected time between failures of the job, for the interval `auto`.
    pub mtti: TimeSpan,
}

/// One setting.
pub struct Key {
    /// Its name in file, environment (`STANDFAST_` and capitals) and API.
    pub name: &'static str,
    /// What it means, in a sentence.
    pub help: &'static str,
    /// Its default, as text.
    pub default: &'static str,
    pub(super) set: fn(&mut Config, &str) -> Result<(), String>,
    /// Its value in a configuration, as text.
    pub show: fn(&Config) -> String,
}

/// All settings.
pub const KEYS: &[Key] = &[
    Key {
        name: "store",
        help: "Directory (or URL) below which every job has its store",
        default: "standfast-store",
        set: |config, text| {
            if text.is_empty() {
                return Err("it is empty".into());
            }
            config.store = text.into();
            Ok(())
        },
        show: |config| config.store.clone(),
    },
    Key {
        name: "job",
        help: "Name of the job; a restart finds the checkpoints of the same name",
        default: "job",
        set: |config, text| {
            name::check_job(text).map_err(|error| error.to_string())?;
            config.job = text.into();
            Ok(())
        },
        show: |config| config.job.clone(),
    },
    Key {
        name: "page",
        help: "Unit of comparison and deduplication: a power of two from 1KiB to 1MiB",
        default: "4KiB",
        set: |config, text| {
            let size: ByteSize = text.parse()?;
            let range = u64::from(PAGE_BYTES_MIN)..=u64::from(PAGE_BYTES_MAX);
            if !size.0.is_power_of_two() || !range.contains(&size.0) {
                return Err(format!("{text:?} is not a power of two from 1KiB to 1MiB"));
            }
            config.page = size;
            Ok(())
        },
        show: |config| config.page.to_string(),
    },
    Key {
        name: "hash",
        help: "How pages are recognised: xxh3 (fast), blake3 (cryptographic) or sha1",
        default: "xxh3",
        set: |config, text| {
            config.hash =
                HashKind::from_name(text).ok_or_else(|| one_of(text, "xxh3, blake3, sha1"))?;
            Ok(())
        },
        show: |config| config.hash.to_string(),
    },
    Key {
        name: "dedup",
        help: "What pages are compared with: off, local (this checkpoint), time (also earlier ones)",
        default: "time",
        set: |config, text| {
            config.dedup = match text {
                "off" => Dedup::Off,
                "local" => Dedup::Local,
                "time" => Dedup::Time,
                _ => return Err(one_of(text, "off, local, time")),
            };
            Ok(())
        },
        show: |config| {
            match config.dedup {
                Dedup::Off => "off",
                Dedup::Local => "local",
                Dedup::Time => "time",
            }
            .into()
        },
    },
    Key {
        name: "track",
        help: "How changed pages are found: auto, uffd (by the kernel), hash (looks at every page; for memory that devices write)",
        default: "auto",
        set: |config, text| {
            config.track = match text {
                "auto" => Track::Auto,
                "uffd" => Track::Uffd,
                "hash" => Track::Hash,
                _ => return Err(one_of(text, "auto, uffd, hash")),
            };
            Ok(())
        },
        show: |config| {
            match config.track {
                Track::Auto => "auto",
                Track::Uffd => "uffd",
                Track::Hash => "hash",
            }
            .into()
        },
    },
    Key {
        name: "codec",
        help: "How new pages are compressed: none, lz4, zstd[:1-19], deflate[:1-12]",
        default: "lz4",
        set: |config, text| assign(&mut config.codec, text),
        show: |config| config.codec.to_string(),
    },
    Key {
        name: "filter",
        help: "Rearrangement before compressing: auto (tried per block), none, shuffle4, shuffle8",
        default: "auto",
        set: |config, text| {
            config.filter = match text {
                "auto" => FilterChoice::Auto,
                _ => FilterChoice::Fixed(
                    FilterKind::from_name(text)
                        .ok_or_else(|| one_of(text, "auto, none, shuffle4, shuffle8"))?,
                ),
            };
            Ok(())
        },
        show: |config| match config.filter {
            FilterChoice::Auto => "auto".into(),
            FilterChoice::Fixed(kind) => kind.to_string(),
        },
    },
    Key {
        name: "block",
        help: "Pages compressed together: at least one page, at most 16MiB",
        default: "128KiB",
        set: |config, text| assign(&mut config.block, text),
        show: |config| config.block.to_string(),
    },
    Key {
        name: "pool",
        help: "Memory for captured pages on their way to the store; at least four blocks",
        default: "64MiB",
        set: |config, text| assign(&mut config.pool, text),
        show: |config| config.pool.to_string(),
    },
    Key {
        name: "segment",
        help: "Largest segment before compression; smaller ones let prune free space sooner",
        default: "1GiB",
        set: |config, text| assign(&mut config.segment, text),
        show: |config| config.segment.to_string(),
    },
    Key {
        name: "threads",
        help: "Threads that hash while the program waits, and that compress after; 0: one per core, at most 4",
        default: "0",
        set: |config, text| number(&mut config.threads, text, 0, 256),
        show: |config| config.threads.to_string(),
    },
    Key {
        name: "io",
        help: "How the directory is written and read: auto, direct (past the page cache), buffered",
        default: "auto",
        set: |config, text| {
            config.io = match text {
                "auto" => Io::Auto,
                "direct" => Io::Direct,
                "buffered" => Io::Buffered,
                _ => return Err(one_of(text, "auto, direct, buffered")),
            };
            Ok(())
        },
        show: |config| {
            match config.io {
                Io::Auto => "auto",
                Io::Direct => "direct",
                Io::Buffered => "buffered",
            }
            .into()
        },
    },
    Key {
        name: "io_threads",
        help: "Reads and writes in flight",
        default: "4",
        set: |config, text| number(&mut config.io_threads, text, 1, 64),
        show: |config| config.io_threads.to_string(),
    },
    Key {
        name: "keep",
        help: "Checkpoints kept; older ones are pruned after each commit; 0 keeps all",
        default: "8",
        set: |config, text| number(&mut config.keep, text, 0, u32::MAX),
        show: |config| config.keep.to_string(),
    },
    Key {
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
    },
    Key {
        name: "mtti",
        help: "Mean time between failures that is expected of the whole job; the interval auto starts from it",
        default: "24h",
        set: |config, text| {
            config.mtti = time(text)?;
            Ok(())
        },
        show: |config| config.mtti.to_string(),
    },
];

/// The setting of this name.
pub fn key(name: &str) -> Option<&'static Key> {
    KEYS.iter().find(|key| key.name == name)
}

impl Default for Config {
    fn default() -> Self {
        let mut config = Self {
            store: String::new(),
            job: String::new(),
            page: ByteSize(0),
            hash: HashKind::Xxh3,
            dedup: Dedup::Time,
            track: Track::Auto,
            codec: CodecSpec { kind: standfast_format::CodecKind::None, level: 0 },
            filter: FilterChoice::Auto,
            block: ByteSize(0),
            pool: ByteSize(0),
            segment: ByteSize(0),
            threads: 0,
            io: Io::Auto,
            io_threads: 1,
            keep: 0,
            interval: Interval::Off,
            mtti: TimeSpan(Duration::ZERO),
        };
        for key in KEYS {
            (key.set)(&mut config, key.default).expect("defaults are valid");
        }
        config
    }
}

impl Config {
    /// Sets one value from text, as the file, the environment and the API do.
    pub fn set(&mut self, name: &str, text: &str) -> Result<(), String> {
        let key = key(name).ok_or_else(|| unknown(name))?;
        (key.set)(self, text).map_err(|why| format!("{name}: {why}"))
    }

    /// Checks what several settings must fulfil together.
    pub fn check(&self) -> Result<(), String> {
        let (page, block) = (self.page.0, self.block.0);
        if block > BLOCK_BYTES_MAX as u64 || block == 0 || !block.is_multiple_of(page) {
            return Err(format!(
                "block: {} is not a multiple of page ({}) up to 16MiB",
                self.block, self.page
            ));
        }
        if self.pool.0 < 4 * block {
            let least = ByteSize(4 * block);
            return Err(format!("pool: {} is less than four blocks ({least})", self.pool));
        }
        let slots = self.segment.0 / page;
        if self.segment.0 < block || slots > u64::from(u32::MAX) {
            return Err(format!("segment: {} is less than a block or too large", self.segment));
        }
        Ok(())
    }

    /// Threads to hash and compress with.
    pub fn threads(&self) -> usize {
        match self.threads {
            0 => std::thread::available_parallelism().map_or(1, |cores| cores.get().min(4)),
            threads => threads,
        }
    }
}

pub(super) fn unknown(name: &str) -> String {
    let known: Vec<&str> = KEYS.iter().map(|key| key.name).collect();
    format!("there is no setting {name:?}; there are {}", known.join(", "))
}

fn one_of(text: &str, allowed: &str) -> String {
    format!("{text:?} is none of {allowed}")
}

fn assign<T: FromStr<Err: Display>>(place: &mut T, text: &str) -> Result<(), String> {
    *place = text.parse().map_err(|error: T::Err| error.to_string())?;
    Ok(())
}

fn time(text: &str) -> Result<TimeSpan, String> {
    let time: TimeSpan = text.parse()?;
    if time.0.is_zero() { Err(format!("{text:?} is no time above 0")) } else { Ok(time) }
}

fn number<T: FromStr + PartialOrd + Display>(
    place: &mut T,
    text: &str,
    least: T,
    most: T,
) -> Result<(), String> {
    let value: Option<T> = text.parse().ok();
    match value {
        Some(value) if value >= least && value <= most => {
            *place = value;
            Ok(())
        }
        _ => Err(format!("{text:?} is not a number from {least} to {most}")),
    }
}
