//! Filters: the bytes of numbers sorted into planes, so that codecs see the quiet ones.
//!
//! Data: a block in, the same bytes in another order out: all first bytes of the elements, then
//! all second bytes, and so on; a tail shorter than an element follows as it is. The filters
//! `delta4` and `delta8` sort the differences of neighbouring elements ([`delta`]) instead.
//!
//! Why: signs, exponents and high mantissa bytes of neighbouring floats resemble each other, but
//! low mantissa bytes between them hide it from a byte-wise codec. Where neighbours are close to
//! each other, fewer bytes of their difference are noisy than of themselves.
//!
//! Invariant: `undo` undoes `apply` for every length, on every processor alike.

#[cfg(target_arch = "x86_64")]
mod avx2;
mod delta;

use std::fmt;
use std::ops::Range;
use std::str::FromStr;

use standfast_format::FilterKind;

use crate::error::{Error, Result};

/// Words of all choices.
pub const FILTERS_ALLOWED: &str = "auto, none, shuffle4, shuffle8, delta4, delta8";

/// Which filter the encoder uses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum FilterChoice {
    /// Per block, what a sample of it says.
    #[default]
    Auto,
    /// Always this one.
    Fixed(FilterKind),
}

impl FromStr for FilterChoice {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        if text == "auto" {
            return Ok(FilterChoice::Auto);
        }
        FilterKind::from_name(text).map(FilterChoice::Fixed).ok_or_else(|| Error::Setting {
            what: "filter",
            text: text.to_owned(),
            allowed: FILTERS_ALLOWED,
        })
    }
}

impl fmt::Display for FilterChoice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            FilterChoice::Auto => f.write_str("auto"),
            FilterChoice::Fixed(kind) => kind.fmt(f),
        }
    }
}

/// Sorts the bytes of `src`, elements of `elem` (4 or 8) bytes, into planes. `dst` has the
/// length of `src`.
pub fn shuffle(elem: usize, src: &[u8], dst: &mut [u8]) {
    let count = check(elem, src, dst);
    #[cfg(target_arch = "x86_64")]
    let done = if std::arch::is_x86_feature_detected!("avx2") {
        // SAFETY: the processor has AVX2; both slices hold `count` elements and are distinct.
        unsafe { avx2::shuffle(elem, src.as_ptr(), dst.as_mut_ptr(), count) }
    } else {
        0
    };
    #[cfg(not(target_arch = "x86_64"))]
    let done = 0;
    shuffle_portable(elem, src, dst, done..count);
}

/// Undoes [`shuffle`] with the same `elem`.
pub fn unshuffle(elem: usize, src: &[u8], dst: &mut [u8]) {
    let count = check(elem, src, dst);
    #[cfg(target_arch = "x86_64")]
    let done = if std::arch::is_x86_feature_detected!("avx2") {
        // SAFETY: the processor has AVX2; both slices hold `count` elements and are distinct.
        unsafe { avx2::unshuffle(elem, src.as_ptr(), dst.as_mut_ptr(), count) }
    } else {
        0
    };
    #[cfg(not(target_arch = "x86_64"))]
    let done = 0;
    unshuffle_portable(elem, src, dst, done..count);
}

/// What the codec is to see: `raw` itself, or its planes written to the head of `planes`.
/// `scratch` is overwritten; like `planes` it is not shorter than `raw`.
pub(crate) fn apply<'a>(
    filter: FilterKind,
    raw: &'a [u8],
    planes: &'a mut [u8],
    scratch: &mut [u8],
) -> &'a [u8] {
    let Some((elem, differs)) = meaning(filter) else { return raw };
    let planes = &mut planes[..raw.len()];
    if differs {
        let scratch = &mut scratch[..raw.len()];
        delta::take(elem, raw, scratch);
        shuffle(elem, scratch, planes);
    } else {
        shuffle(elem, raw, planes);
    }
    planes
}

/// Undoes [`apply`].
pub(crate) fn undo<'a>(filter: FilterKind, planes: &'a [u8], raw: &'a mut [u8]) -> &'a [u8] {
    let Some((elem, differs)) = meaning(filter) else { return planes };
    let raw = &mut raw[..planes.len()];
    unshuffle(elem, planes, raw);
    if differs {
        delta::undo(elem, raw);
    }
    raw
}

/// Element size of a filter, and whether it takes differences.
fn meaning(filter: FilterKind) -> Option<(usize, bool)> {
    match filter {
        FilterKind::None => None,
        FilterKind::Shuffle4 => Some((4, false)),
        FilterKind::Shuffle8 => Some((8, false)),
        FilterKind::Delta4 => Some((4, true)),
        FilterKind::Delta8 => Some((8, true)),
    }
}

/// Number of whole elements.
fn check(elem: usize, src: &[u8], dst: &[u8]) -> usize {
    assert!(elem == 4 || elem == 8, "elements of 4 or 8 bytes, not {elem}");
    assert_eq!(src.len(), dst.len(), "a filter keeps the length");
    src.len() / elem
}

/// These elements, which are the last ones, and the tail.
fn shuffle_portable(elem: usize, src: &[u8], dst: &mut [u8], elements: Range<usize>) {
    let count = elements.end;
    for (index, element) in src.chunks_exact(elem).enumerate().skip(elements.start) {
        for (plane, byte) in element.iter().enumerate() {
            dst[plane * count + index] = *byte;
        }
    }
    dst[count * elem..].copy_from_slice(&src[count * elem..]);
}

/// These elements, which are the last ones, and the tail.
fn unshuffle_portable(elem: usize, src: &[u8], dst: &mut [u8], elements: Range<usize>) {
    let count = elements.end;
    for (index, element) in dst.chunks_exact_mut(elem).enumerate().skip(elements.start) {
        for (plane, byte) in element.iter_mut().enumerate() {
            *byte = src[plane * count + index];
        }
    }
    dst[count * elem..].copy_from_slice(&src[count * elem..]);
}

#[cfg(test)]
mod tests;
