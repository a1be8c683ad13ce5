//! Between the text of a setting and its value.

use std::fmt::Display;
use std::str::FromStr;

use super::time::TimeSpan;

/// The words of a setting that is one of a few.
pub(super) type Words<T> = &'static [(&'static str, T)];

/// The value of one of a few words.
pub(super) fn find<T: Copy>(words: Words<T>, text: &str) -> Result<T, String> {
    let known: Vec<&str> = words.iter().map(|(word, _)| *word).collect();
    let found = words.iter().find(|(word, _)| *word == text);
    found.map(|(_, value)| *value).ok_or_else(|| one_of(text, &known.join(", ")))
}

/// The word for a value.
pub(super) fn word_of<T: PartialEq>(value: T, words: Words<T>) -> &'static str {
    let found = words.iter().find(|(_, meaning)| *meaning == value);
    found.expect("every value has a word").0
}

/// Why a text is refused that is none of a few.
pub(super) fn one_of(text: &str, allowed: &str) -> String {
    format!("{text:?} is none of {allowed}")
}

/// Reads what its type reads.
pub(super) fn parse<T: FromStr<Err: Display>>(text: &str) -> Result<T, String> {
    text.parse().map_err(|error: T::Err| error.to_string())
}

/// Reads a value, or `off`.
pub(super) fn optional<T: FromStr<Err: Display>>(text: &str) -> Result<Option<T>, String> {
    match text {
        "off" => Ok(None),
        _ => text.parse().map(Some).map_err(|error| format!("{error}, or off")),
    }
}

/// The text that [`optional`] reads.
pub(super) fn shown<T: Display>(value: &Option<T>) -> String {
    value.as_ref().map_or_else(|| "off".into(), ToString::to_string)
}

/// Reads a text that is not empty.
pub(super) fn non_empty(text: &str) -> Result<String, String> {
    if text.is_empty() { Err("it is empty".into()) } else { Ok(text.into()) }
}

/// Reads the name of a job or node.
pub(super) fn name(text: &str) -> Result<String, String> {
    standfast_format::name::check_job(text).map_err(|error| error.to_string())?;
    Ok(text.into())
}

/// Parses a duration greater than zero.
pub(super) fn time(text: &str) -> Result<TimeSpan, String> {
    let time: TimeSpan = text.parse()?;
    if time.0.is_zero() { Err(format!("{text:?} is no time above 0")) } else { Ok(time) }
}

/// Reads a number within bounds.
pub(super) fn number<T: FromStr + PartialOrd + Display>(
    text: &str,
    least: T,
    most: T,
) -> Result<T, String> {
    let value: Option<T> = text.parse().ok();
    let fits = |value: &T| *value >= least && *value <= most;
    value.filter(fits).ok_or_else(|| format!("{text:?} is not a number from {least} to {most}"))
}
