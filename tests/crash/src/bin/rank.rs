//! A rank, or the agent, of the tests that kill them.
//!
//! ```text
//! crash-rank rank DIR SEED NODES CAPTURE MEETING RANK    MEETING: where ranks find each other
//! crash-rank agent start|run ...            the agent, as ranks start it
//! ```

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use standfast_crash_tests::agents::STOP_AT;
use standfast_crash_tests::die::stop_at;
use standfast_crash_tests::node::{Jobs, RANKS};
use standfast_testkit::Processes;

fn main() -> anyhow::Result<ExitCode> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    match words.as_slice() {
        [verb, rest @ ..] if verb == "agent" => {
            if let Ok(point) = std::env::var(STOP_AT) {
                stop_at(point)?;
            }
            Ok(standfast_agent::command(rest))
        }
        [verb, dir, seed, nodes, capture, meeting, rank] if verb == "rank" => {
            let jobs = Jobs {
                dir: PathBuf::from(dir),
                command: std::env::current_exe()?,
                seed: seed.parse()?,
                nodes: nodes.parse()?,
                capture: capture.clone(),
                drains: Path::new(dir).join("global").is_dir(),
            };
            let comm = Processes::meet(Path::new(meeting), rank.parse()?, RANKS)?;
            jobs.live(&comm)?;
            Ok(ExitCode::SUCCESS)
        }
        _ => anyhow::bail!("crash-rank: {words:?} is no command"),
    }
}
