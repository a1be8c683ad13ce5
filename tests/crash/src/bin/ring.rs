//! A rank of the tests that lose nodes.
//!
//! ```text
//! crash-ring DIR MEETING RANK STEPS [POINT NTH]
//! ```

use std::path::{Path, PathBuf};

use standfast_crash_tests::die::die_at;
use standfast_crash_tests::ring::{Nodes, RANKS};
use standfast_testkit::Processes;

fn main() -> anyhow::Result<()> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let [dir, meeting, rank, steps, point @ ..] = words.as_slice() else {
        anyhow::bail!("crash-ring DIR MEETING RANK STEPS [POINT NTH]");
    };
    if let [name, nth] = point {
        die_at(name.clone(), nth.parse()?)?;
    }
    let comm = Processes::meet(Path::new(meeting), rank.parse()?, RANKS)?;
    Ok(Nodes { dir: PathBuf::from(dir) }.live(&comm, steps.parse()?)?)
}
