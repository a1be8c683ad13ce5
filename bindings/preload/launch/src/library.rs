//! Where the preload library lies.

use std::path::PathBuf;

use crate::error::{Error, Result};

const NAME: &str = "libstandfast_preload.so";

/// Finds the library: the one given, or beside the running command, or in `lib` next to its `bin`.
pub fn find(given: Option<PathBuf>) -> Result<PathBuf> {
    let candidates = match given {
        Some(path) => vec![path],
        None => beside_the_command(),
    };
    let found = candidates.iter().find(|path| path.is_file());
    let found = found.and_then(|path| path.canonicalize().ok());
    found.ok_or_else(|| {
        let looked: Vec<String> =
            candidates.iter().map(|path| path.display().to_string()).collect();
        Error::NoLibrary(looked.join(", "))
    })
}

fn beside_the_command() -> Vec<PathBuf> {
    let Ok(command) = std::env::current_exe() else { return Vec::new() };
    let Some(dir) = command.parent() else { return Vec::new() };
    let mut candidates = vec![dir.join(NAME), dir.join("deps").join(NAME)];
    candidates.extend(dir.parent().map(|prefix| prefix.join("lib").join(NAME)));
    candidates
}
