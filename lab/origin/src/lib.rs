//! Where results come from, for whoever reads them later: the first line of every result.

use std::process::Command;
use std::time::SystemTime;

use serde::{Deserialize, Serialize};

/// Commit, machine, command and date of a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Origin {
    /// Of the code, with `-dirty` where it was changed.
    pub commit: String,
    /// What it ran on.
    pub machine: String,
    /// How it was started, without directories: they differ from machine to machine.
    pub command: String,
    /// When, in UTC.
    pub date: String,
}

impl Origin {
    /// Of this run; `device` names what the machine has beside its cores. `STANDFAST_COMMIT` names the
    /// commit where the sources came without their history.
    pub fn look(device: Option<&str>) -> Self {
        let unknown = || "unknown".to_owned();
        let cores = std::thread::available_parallelism().map_or(0, |cores| cores.get());
        let device = device.map_or(String::new(), |device| format!(", {device}"));
        let commit = std::env::var("STANDFAST_COMMIT").ok().or_else(|| {
            said("git", &["describe", "--always", "--dirty", "--abbrev=12", "--exclude=*"])
        });
        let seconds = SystemTime::UNIX_EPOCH.elapsed().map_or(0, |since| since.as_secs());
        let date = said("date", &["-u", "+%Y-%m-%dT%H:%M:%SZ"]);
        Self {
            commit: commit.unwrap_or_else(unknown),
            machine: format!("{}, {cores} cores{device}", cpu().unwrap_or_else(unknown)),
            command: command(std::env::args()),
            date: date.unwrap_or_else(|| seconds.to_string()),
        }
    }
}

fn said(program: &str, words: &[&str]) -> Option<String> {
    let output = Command::new(program).args(words).output().ok()?;
    let text = String::from_utf8_lossy(&output.stdout).trim().to_owned();
    (output.status.success() && !text.is_empty()).then_some(text)
}

fn cpu() -> Option<String> {
    let info = std::fs::read_to_string("/proc/cpuinfo").ok()?;
    let model = info.lines().find_map(|line| line.strip_prefix("model name"))?;
    Some(model.trim_start_matches([' ', '\t', ':']).to_owned())
}

fn command(mut words: impl Iterator<Item = String>) -> String {
    let program = words.next().unwrap_or_default();
    let name = program.rsplit('/').next().unwrap_or_default().to_owned();
    let bare = |word: String| match word.starts_with('/') {
        true => "DIR".to_owned(),
        false => word,
    };
    std::iter::once(name).chain(words.map(bare)).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_is_told_without_directories() {
        let words = ["/usr/bin/experiments", "bars", "--dir", "/scratch/me", "--quick"];
        let told = command(words.map(str::to_owned).into_iter());
        assert_eq!(told, "experiments bars --dir DIR --quick");
    }

    #[test]
    fn a_run_says_where_it_comes_from() {
        let origin = Origin::look(Some("a device"));
        assert!(origin.machine.ends_with("cores, a device"), "{origin:?}");
        assert!(origin.date.starts_with("20"), "{origin:?}");
    }
}
