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
mod tests {
    use super::*;

    #[test]
    fn a_pattern_is_every_directory_that_fits() {
        let dir = tempfile::tempdir().unwrap();
        for name in ["n1/sf", "n0/sf", "n0b/other", "m1/sf"] {
            std::fs::create_dir_all(dir.path().join(name)).unwrap();
        }
        std::fs::write(dir.path().join("n9"), "a file").unwrap();
        let root = dir.path().to_str().unwrap();
        let found = |pattern: &str| expand(&format!("{root}/{pattern}")).unwrap();
        assert_eq!(found("n{node}/sf"), [format!("{root}/n0/sf"), format!("{root}/n1/sf")]);
        assert_eq!(found("{node}").len(), 4);
        assert_eq!(found("plain"), [format!("{root}/plain")]);
        assert!(expand("/a/{node}/{node}").is_err() && expand("s3://b/{node}").is_err());
        assert!(expand("/nowhere/at/all/{node}").is_err());
    }
}
