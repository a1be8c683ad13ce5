//! Where results come from: runs that say commit, machine, command and date.

use std::path::Path;
use std::process::Command;

use anyhow::{Context, ensure};
use lab_origin::Origin;
use serde::Deserialize;

/// A line of a result, by its type.
#[derive(Deserialize)]
#[serde(tag = "type", rename_all = "lowercase")]
enum Line {
    Origin(Origin),
    #[serde(other)]
    Other,
}

/// Every run of a result.
pub(super) fn all(results: &str) -> anyhow::Result<Vec<Origin>> {
    let mut origins = Vec::new();
    for line in results.lines() {
        if let Line::Origin(origin) = serde_json::from_str(line).context("a line of JSON")? {
            origins.push(origin);
        }
    }
    ensure!(!origins.is_empty(), "the result does not say where it comes from");
    Ok(origins)
}

/// What stands above a table: machine, code and day.
pub(super) fn caption(origins: &[Origin]) -> String {
    let mut commits: Vec<&str> = origins.iter().map(|origin| origin.commit.as_str()).collect();
    commits.dedup();
    let Origin { machine, command, date, .. } = &origins[0];
    let day = date.split('T').next().unwrap_or(date);
    let runs = match origins.len() {
        1 => "once".to_owned(),
        runs => format!("{runs} times"),
    };
    format!("{machine}; {day}; `{command}` {runs}, of {}.\n\n", commits.join(", "))
}

/// Results speak of this code: their commit is an ancestor of it, at most one release back.
pub(super) fn check(root: &Path, results: &str) -> anyhow::Result<()> {
    let git = |words: &[&str]| Command::new("git").arg("-C").arg(root).args(words).output();
    let shallow = git(&["rev-parse", "--is-shallow-repository"]).context("git")?;
    if String::from_utf8_lossy(&shallow.stdout).trim() != "false" {
        // An archive of the sources has no history to look at.
        return Ok(());
    }
    let changes = std::fs::read_to_string(root.join("CHANGELOG.md"))?;
    let releases: Vec<&str> = changes
        .lines()
        .filter_map(|line| line.strip_prefix("## "))
        .filter_map(|title| title.split(' ').next())
        .take(2)
        .collect();
    for Origin { commit, .. } in all(results)? {
        let ancestor = git(&["merge-base", "--is-ancestor", &commit, "HEAD"])?;
        ensure!(ancestor.status.success(), "{commit} is no ancestor of this code");
        let manifest = git(&["show", &format!("{commit}:Cargo.toml")])?;
        let manifest = String::from_utf8_lossy(&manifest.stdout).into_owned();
        let version = manifest.lines().find_map(|line| line.strip_prefix("version = "));
        let version = version.context("a version")?.trim_matches('"');
        ensure!(releases.contains(&version), "{commit} is {version}, more than a release back");
    }
    Ok(())
}
