//! The audit: every dependency against the project's policy, without the network.
//!
//! Data: `cargo metadata --locked --offline` and `Cargo.lock` -> [`tree::Tree`] -> the rules of
//! [`rules`] with the lists of [`policy`] -> a table and, if a rule is broken, the reasons.
//!
//! What it does not do: it knows no advisories, for those need the network. `deny.toml` holds the
//! same policy for people who have cargo-deny, which does.

mod licence;
mod policy;
mod rules;
mod tree;

use std::process::{Command, ExitCode};

use anyhow::{Context, ensure};
use comfy_table::{Table, presets};
use tree::Tree;

fn main() -> anyhow::Result<ExitCode> {
    let tree = tree()?;
    println!("{}", table(&tree));
    let findings = rules::check(&tree);
    for finding in &findings {
        eprintln!("audit: {finding}");
    }
    if !findings.is_empty() {
        return Ok(ExitCode::FAILURE);
    }
    println!("audit: {} packages, all within the policy", tree.packages.len());
    Ok(ExitCode::SUCCESS)
}

/// This project's dependencies.
fn tree() -> anyhow::Result<Tree> {
    let root = concat!(env!("CARGO_MANIFEST_DIR"), "/..");
    let lock = std::fs::read_to_string(format!("{root}/Cargo.lock")).context("Cargo.lock")?;
    Tree::parse(&metadata(root)?, &lock)
}

/// Asks cargo, for this platform only: others' packages need not be here.
fn metadata(root: &str) -> anyhow::Result<String> {
    let cargo = std::env::var("CARGO").unwrap_or_else(|_| "cargo".into());
    let output = Command::new(&cargo)
        .args(["metadata", "--locked", "--offline", "--format-version", "1"])
        .args(["--filter-platform", &host()?])
        .current_dir(root)
        .output()
        .with_context(|| cargo.clone())?;
    let words = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "cargo metadata failed: {}", words.trim());
    Ok(String::from_utf8(output.stdout)?)
}

fn host() -> anyhow::Result<String> {
    let rustc = std::env::var("RUSTC").unwrap_or_else(|_| "rustc".into());
    let output = Command::new(&rustc).arg("-vV").output().with_context(|| rustc.clone())?;
    let text = String::from_utf8(output.stdout)?;
    let host = text.lines().find_map(|line| line.strip_prefix("host: "));
    host.map(str::to_owned).context("rustc -vV names no host")
}

/// How many packages come under which licence, and which packages exist twice.
fn table(tree: &Tree) -> Table {
    let mut table = Table::new();
    table.load_style(presets::NOTHING);
    table.set_header(["LICENCE", "PACKAGES", "FOR EXAMPLE"]);
    let mut rows: Vec<(&str, Vec<&str>)> = Vec::new();
    for package in tree.packages.iter().filter(|package| !package.is_ours()) {
        match rows.iter_mut().find(|(licence, _)| *licence == package.licence) {
            Some((_, names)) => names.push(&package.name),
            None => rows.push((&package.licence, vec![&package.name])),
        }
    }
    rows.sort_by_key(|(_, names)| std::cmp::Reverse(names.len()));
    for (licence, names) in rows {
        table.add_row([licence, &names.len().to_string(), names[0]]);
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What `make audit` shows in full, as a part of all tests.
    #[test]
    fn the_project_is_within_its_policy() {
        let findings = rules::check(&tree().unwrap());
        assert!(findings.is_empty(), "{}", findings.join("\n"));
    }
}
