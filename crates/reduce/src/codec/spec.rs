//! A codec as a user writes it: `auto`, `none`, `lz4`, `zstd`, `zstd:3`, `deflate:6`.

use std::fmt;
use std::ops::RangeInclusive;
use std::str::FromStr;

use standfast_format::CodecKind;

use crate::error::{Error, Result};

const ALLOWED: &str =
    "none, lz4, zstd, zstd:LEVEL (-7 to 22, not 0), deflate, deflate:LEVEL (1 to 12)";

const AUTO: &str = "auto";
const CHOICES_ALLOWED: &str =
    "auto, none, lz4, zstd, zstd:LEVEL (-7 to 22, not 0), deflate, deflate:LEVEL (1 to 12)";

/// A codec and how hard it tries.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct CodecSpec {
    /// The algorithm.
    pub kind: CodecKind,
    /// Its level; 0 for codecs without levels.
    pub level: i32,
}

impl CodecSpec {
    /// No compression.
    pub const NONE: CodecSpec = CodecSpec { kind: CodecKind::None, level: 0 };

    /// The codec at its usual level: blocks are compressed while a program waits for memory, so
    /// the fastest level of each.
    pub fn usual(kind: CodecKind) -> Self {
        let level = match kind {
            CodecKind::None | CodecKind::Lz4 | CodecKind::Float => 0,
            CodecKind::Zstd | CodecKind::Deflate => 1,
        };
        CodecSpec { kind, level }
    }

    /// Levels that may be written; none for codecs without levels.
    fn levels(kind: CodecKind) -> Option<RangeInclusive<i32>> {
        match kind {
            CodecKind::None | CodecKind::Lz4 | CodecKind::Float => None,
            CodecKind::Zstd => Some(-7..=22),
            CodecKind::Deflate => Some(1..=12),
        }
    }

    /// The level, moved into the codec's range.
    pub(super) fn level_clamped(self) -> i32 {
        match Self::levels(self.kind) {
            Some(levels) => self.level.clamp(*levels.start(), *levels.end()),
            None => 0,
        }
    }
}

impl FromStr for CodecSpec {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        parse(text).ok_or_else(|| Error::Setting {
            what: "codec",
            text: text.to_owned(),
            allowed: ALLOWED,
        })
    }
}

fn parse(text: &str) -> Option<CodecSpec> {
    let Some((name, level)) = text.split_once(':') else {
        let kind = CodecKind::from_name(text)?;
        // Devices write it; processors only read it fast enough.
        return (kind != CodecKind::Float).then(|| CodecSpec::usual(kind));
    };
    let kind = CodecKind::from_name(name)?;
    let level = level.parse().ok()?;
    // Zstandard takes 0 as "its default", which is none of the levels that it seems to lie between.
    let known = level != 0 && CodecSpec::levels(kind)?.contains(&level);
    known.then_some(CodecSpec { kind, level })
}

impl fmt::Display for CodecSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match Self::levels(self.kind) {
            Some(_) => write!(f, "{}:{}", self.kind, self.level),
            None => self.kind.fmt(f),
        }
    }
}

/// Which codec the encoders use.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum CodecChoice {
    /// Per block, by what it is like and how fast the store is.
    Auto,
    /// Always this one.
    Fixed(CodecSpec),
}

impl From<CodecSpec> for CodecChoice {
    fn from(spec: CodecSpec) -> Self {
        CodecChoice::Fixed(spec)
    }
}

impl FromStr for CodecChoice {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        if text == AUTO {
            return Ok(CodecChoice::Auto);
        }
        parse(text).map(CodecChoice::Fixed).ok_or_else(|| Error::Setting {
            what: "codec",
            text: text.to_owned(),
            allowed: CHOICES_ALLOWED,
        })
    }
}

impl fmt::Display for CodecChoice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            CodecChoice::Auto => f.write_str(AUTO),
            CodecChoice::Fixed(spec) => spec.fmt(f),
        }
    }
}

#[cfg(test)]
mod tests;
