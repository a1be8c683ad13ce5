//! How pages are compressed, in the store and on the way to global storage.

use std::fmt;
use std::str::FromStr;

use standfast_reduce::{CodecChoice, CodecSpec};

/// What `fast` and `small` stand for, and what a drain uses with `auto` and `fast`: it has time.
const FAST: &str = "lz4";
const SMALL: &str = "zstd:9";
const DRAIN: &str = "zstd:1";

/// How pages are compressed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Codec(Word);

#[derive(Clone, Copy, Debug, PartialEq)]
enum Word {
    Auto,
    Fast,
    Small,
    Named(CodecSpec),
}

impl Codec {
    /// Per block, by what it is like and how fast the store is.
    pub fn auto() -> Self {
        Self(Word::Auto)
    }

    /// LZ4 in the store; what is drained is compressed with `zstd:1`.
    pub fn fast() -> Self {
        Self(Word::Fast)
    }

    /// `zstd:9` everywhere.
    pub fn small() -> Self {
        Self(Word::Small)
    }

    /// Nothing is compressed.
    pub fn none() -> Self {
        Self(Word::Named(CodecSpec::NONE))
    }

    pub(in crate::config) fn in_store(self) -> CodecChoice {
        match self.0 {
            Word::Auto => CodecChoice::Auto,
            Word::Fast => known(FAST),
            Word::Small => known(SMALL),
            Word::Named(spec) => spec.into(),
        }
    }

    pub(in crate::config) fn of_drain(self) -> CodecChoice {
        match self.0 {
            Word::Auto | Word::Fast => known(DRAIN),
            Word::Small | Word::Named(_) => self.in_store(),
        }
    }
}

fn known(name: &str) -> CodecChoice {
    name.parse().expect("a codec that exists")
}

impl FromStr for Codec {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "auto" => return Ok(Self::auto()),
            "fast" => return Ok(Self::fast()),
            "small" => return Ok(Self::small()),
            _ => {}
        }
        match text.parse() {
            Ok(CodecChoice::Fixed(spec)) => Ok(Self(Word::Named(spec))),
            Ok(CodecChoice::Auto) => Ok(Self::auto()),
            Err(error) => Err(format!("{error}; or fast, small")),
        }
    }
}

impl fmt::Display for Codec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Word::Auto => f.write_str("auto"),
            Word::Fast => f.write_str("fast"),
            Word::Small => f.write_str("small"),
            Word::Named(spec) => CodecChoice::from(spec).fmt(f),
        }
    }
}
