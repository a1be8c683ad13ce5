//! Places of several nodes: `/local/{node}` is every directory there is.

use std::path::Path;

use crate::error::{Error, Result};

/// Stands for any name.
const NODE: &str = "{node}";

/// The places that a pattern stands for, sorted; itself where it has no `{node}`.
pub(crate) fn expand(pattern: &str) -> Result<Vec<String>> {
    let Some((before, after)) = pattern.split_once(NODE) else {
        return Ok(vec![pattern.to_owned()]);
    };
    let refuse = |why| Error::Pattern { pattern: pattern.to_owned(), why };
    if after.contains(NODE) {
        return Err(refuse("{node} may stand there once"));
    }
    if before.contains("://") {
        return Err(refuse("{node} stands for directories; give each URL by itself"));
    }
    let (dir, prefix) = before
        .rsplit_once('/')
        .map_or((".", before), |(dir, prefix)| (if dir.is_empty() { "/" } else { dir }, prefix));
    let (suffix, rest) = match after.split_once('/') {
        Some((suffix, rest)) => (suffix, format!("/{rest}")),
        None => (after, String::new()),
    };
    let unreadable = |source| Error::Unreadable { place: dir.to_owned(), source };
    let mut places = Vec::new();
    for entry in std::fs::read_dir(dir).map_err(unreadable)? {
        let Ok(name) = entry.map_err(unreadable)?.file_name().into_string() else { continue };
        let fits = name.len() >= prefix.len() + suffix.len()
            && name.starts_with(prefix)
            && name.ends_with(suffix);
        let place = format!("{}/{name}{rest}", dir.trim_end_matches('/'));
        if fits && Path::new(&place).is_dir() {
            places.push(place);
        }
    }
    places.sort();
    Ok(places)
}

#[cfg(test)]
mod tests;
