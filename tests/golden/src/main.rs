//! Writes the family of golden stores with the code as it is.

use std::path::Path;

use golden_stores::{archive, write};

const USAGE: &str = "golden-stores write DIR [ARCHIVE]: one store per case below DIR, which must not \
                     exist; with ARCHIVE also packed into this file (.tar.zst)";

fn main() -> anyhow::Result<()> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let (dir, file) = match words.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["write", dir] => (Path::new(dir), None),
        ["write", dir, file] => (Path::new(dir), Some(Path::new(file))),
        _ => anyhow::bail!("{USAGE}"),
    };
    write::family(dir)?;
    if let Some(file) = file {
        std::fs::write(file, archive::pack(dir)?)?;
    }
    Ok(())
}
