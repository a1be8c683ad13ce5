//! Which pages are stored, and how equal ones are found.

use standfast_format::{HashKind, PAGE_BYTES_MAX, PAGE_BYTES_MIN};

use super::LabKey;
use crate::config::size::ByteSize;
use crate::config::text::{Words, number, one_of, word, word_of};

/// Which pages are stored: what a page is compared with before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// Compared with nothing: every page, every time.
    Full,
    /// With the same page of the last checkpoint: what was written since.
    Incremental,
    /// With zero and with the other pages of the same rank and checkpoint.
    Local,
    /// Also with the pages of all other ranks in this checkpoint.
    Collective,
    /// Also with the pages of earlier checkpoints, of any rank.
    All,
}

impl Mode {
    /// Whether earlier checkpoints are referred to.
    pub fn looks_back(self) -> bool {
        matches!(self, Mode::Incremental | Mode::All)
    }

    /// Whether other ranks' pages are referred to.
    pub fn looks_around(self) -> bool {
        matches!(self, Mode::Collective | Mode::All)
    }

    /// Whether equal pages are looked for at all.
    pub fn finds_equal(self) -> bool {
        !matches!(self, Mode::Full | Mode::Incremental)
    }
}

/// How ranks find the pages that several of them hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Strategy {
    /// All of them: every hash has a rank that keeps account of it.
    Exact,
    /// The most frequent ones: bounded tables are merged pair by pair.
    TopK,
}

/// How many pages the strategy `topk` follows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Threshold {
    /// As many as pay, by what following them costs.
    Auto,
    /// So many.
    Pages(u32),
}

const MODES: Words<Mode> = &[
    ("full", Mode::Full),
    ("incremental", Mode::Incremental),
    ("local", Mode::Local),
    ("collective", Mode::Collective),
    ("all", Mode::All),
];
const STRATEGIES: Words<Strategy> = &[("exact", Strategy::Exact), ("topk", Strategy::TopK)];

pub(super) const PAGE: LabKey = LabKey {
    name: "page",
    values: "SIZE",
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
};

pub(super) const HASH: LabKey = LabKey {
    name: "hash",
    values: "xxh3, blake3, sha1",
    help: "How pages are recognised: xxh3 (fast), blake3 (cryptographic) or sha1",
    default: "xxh3",
    set: |config, text| {
        config.hash =
            HashKind::from_name(text).ok_or_else(|| one_of(text, "xxh3, blake3, sha1"))?;
        Ok(())
    },
    show: |config| config.hash.to_string(),
};

pub(super) const MODE: LabKey = LabKey {
    name: "mode",
    values: "full, incremental, local, collective, all",
    help: "Which pages are stored: full (all), incremental (written since the last), local (not twice in a rank), collective (not twice in a checkpoint), all (not twice in the job)",
    default: "all",
    set: |config, text| word(&mut config.mode, MODES, text),
    show: |config| word_of(config.mode, MODES).into(),
};

pub(super) const STRATEGY: LabKey = LabKey {
    name: "strategy",
    values: "exact, topk",
    help: "How ranks find pages that several hold: exact (all of them) or topk (the most frequent)",
    default: "exact",
    set: |config, text| word(&mut config.strategy, STRATEGIES, text),
    show: |config| word_of(config.strategy, STRATEGIES).into(),
};

pub(super) const THRESHOLD: LabKey = LabKey {
    name: "threshold",
    values: "auto, N",
    help: "Pages that the strategy topk follows: a number, or auto (as many as pay)",
    default: "auto",
    set: |config, text| {
        config.threshold = match text {
            "auto" => Threshold::Auto,
            _ => {
                let pages = number(text, 1, 1 << 24).map_err(|why| format!("{why}, or auto"))?;
                Threshold::Pages(pages)
            }
        };
        Ok(())
    },
    show: |config| match config.threshold {
        Threshold::Auto => "auto".into(),
        Threshold::Pages(pages) => pages.to_string(),
    },
};
