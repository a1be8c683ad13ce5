//! `house`: how much there is to understand, counted in the sources themselves.
//!
//! What one page meets is a table of ARCHITECTURE.md: a file, a kind of thread and, where there is one, a
//! trait for each step. It is checked here: every file must be there, and declare the trait.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use anyhow::{Context, ensure};

/// The document that has the table, and how its head begins.
const DOCUMENT: &str = "docs/ARCHITECTURE.md";
const HEAD: &str = "| what happens to a page |";
/// More fields than a structure should have.
const FIELDS_MAX: usize = 12;
/// What is counted as one thing although it has many parts: bytes on disk and between processes, tables
/// of functions, reports, and the arguments of commands.
const LISTS: &[&str] = &["crates/format/", "crates/mpi/src/table.rs", "/status.rs", "/message.rs"];
const REPORTS: &[&str] = &["sf_checkpoint_info", "Plan", "Control"];

pub(super) fn table(root: &Path) -> anyhow::Result<String> {
    let path = PagePath::read(root)?;
    let sources = sources(root)?;
    let large = large_structs(&sources);
    let lines: usize = sources.iter().map(|(_, text)| text.lines().count()).sum();
    let large = match large.is_empty() {
        true => "none".to_owned(),
        false => large.join(", "),
    };
    let rows = [
        ("settings for users", "48", standfast::config::KEYS.len().to_string(), "18"),
        ("internal crates that the command names", "13", own_crates(root)?.to_string(), "5"),
        ("files that one page meets", "37", path.files.len().to_string(), "20"),
        ("crates that one page meets", "8", path.crates().to_string(), ""),
        ("kinds of threads that one page meets", "6", path.threads.len().to_string(), "4"),
        ("traits that one page meets", "6", path.traits.len().to_string(), ""),
        ("structures of more than 12 fields, besides formats and reports", "", large, "none"),
        ("lines of Rust without test files", "86,366", thousands(lines), "fewer than 75,000"),
    ];
    let mut table = "| | version 0.1 | now | aim |\n|---|---|---|---|\n".to_owned();
    for (what, then, now, aim) in rows {
        table += &format!("| {what} | {then} | {now} | {aim} |\n");
    }
    Ok(table)
}

/// What a page meets on the default path.
struct PagePath {
    files: BTreeSet<String>,
    threads: BTreeSet<String>,
    traits: BTreeSet<String>,
}

impl PagePath {
    fn read(root: &Path) -> anyhow::Result<Self> {
        let text = std::fs::read_to_string(root.join(DOCUMENT))?;
        let rows = text.lines().skip_while(|line| !line.starts_with(HEAD)).skip(2);
        let [mut files, mut threads, mut traits] = [(); 3].map(|()| BTreeSet::new());
        for row in rows.take_while(|line| line.starts_with('|')) {
            let cells: Vec<&str> = row.split('|').map(str::trim).collect();
            let [_, _, link, thread, of_trait, _] = cells[..] else {
                anyhow::bail!("a row of {DOCUMENT} has four cells: {row}");
            };
            let file = link.split("](../").nth(1).and_then(|rest| rest.strip_suffix(')'));
            let file = file.with_context(|| format!("a link to a file: {link}"))?;
            let source =
                std::fs::read_to_string(root.join(file)).with_context(|| file.to_owned())?;
            let name = of_trait.trim_matches('`');
            let declared = name.is_empty() || source.contains(&format!("trait {name}"));
            ensure!(declared, "{file} declares no trait {name}");
            files.insert(file.to_owned());
            threads.insert(thread.to_owned());
            traits.extend((!name.is_empty()).then(|| name.to_owned()));
        }
        ensure!(!files.is_empty(), "{DOCUMENT} says what one page meets");
        Ok(Self { files, threads, traits })
    }

    fn crates(&self) -> usize {
        let of = |file: &String| file.split('/').nth(1).unwrap_or_default().to_owned();
        self.files.iter().map(of).collect::<BTreeSet<_>>().len()
    }
}

/// Product sources, without test files.
fn sources(root: &Path) -> anyhow::Result<Vec<(String, String)>> {
    let mut left: Vec<PathBuf> = ["crates", "bindings"].map(|dir| root.join(dir)).into();
    let mut sources = Vec::new();
    while let Some(dir) = left.pop() {
        for entry in std::fs::read_dir(&dir)? {
            let path = entry?.path();
            let is = |name: &str| path.file_name().is_some_and(|own| own == name);
            if path.is_dir() && !is("tests") && !is("target") {
                left.push(path);
            } else if path.extension().is_some_and(|ending| ending == "rs") && !is("tests.rs") {
                let name = path.strip_prefix(root).unwrap_or(&path).display().to_string();
                sources.push((name, std::fs::read_to_string(&path)?));
            }
        }
    }
    Ok(sources)
}

/// Structures with too many fields, each with their number.
fn large_structs(sources: &[(String, String)]) -> Vec<String> {
    let mut large = Vec::new();
    for (file, text) in sources {
        if LISTS.iter().any(|list| file.contains(list)) {
            continue;
        }
        let mut lines = text.lines().map(str::trim_start);
        while let Some(line) = lines.next() {
            let Some(name) = struct_name(line).filter(|name| !REPORTS.contains(name)) else {
                continue;
            };
            let body = lines.by_ref().take_while(|line| !line.starts_with('}'));
            let fields = body.filter(|line| is_field(line)).count();
            if fields > FIELDS_MAX {
                large.push(format!("`{name}` ({fields})"));
            }
        }
    }
    large.sort();
    large
}

fn struct_name(line: &str) -> Option<&str> {
    let rest = line.split_once("struct ").filter(|(before, _)| {
        before.is_empty() || (before.starts_with("pub") && !before.contains("//"))
    })?;
    let name = rest.1.split(|c: char| !c.is_alphanumeric() && c != '_').next()?;
    line.ends_with('{').then_some(name)
}

/// Whether a line declares a field: a name, a colon, a type.
fn is_field(line: &str) -> bool {
    let line = match line.strip_prefix("pub") {
        Some(rest) => rest.split_once(' ').map_or(rest, |(_, field)| field),
        None => line,
    };
    let name = line.split(':').next().unwrap_or_default();
    let word = |c: char| c.is_alphanumeric() || c == '_' || c == '#';
    line.contains(": ") && !name.is_empty() && name.chars().all(word)
}

/// Crates of this house that the command names.
fn own_crates(root: &Path) -> anyhow::Result<usize> {
    let manifest = std::fs::read_to_string(root.join("crates/cli/Cargo.toml"))?;
    let own = manifest.lines().skip_while(|line| *line != "[dependencies]").skip(1);
    Ok(own.take_while(|line| !line.starts_with('[')).filter(|l| l.starts_with("standfast")).count())
}

fn thousands(number: usize) -> String {
    format!("{},{:03}", number / 1000, number % 1000)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn large_structures_are_found_and_lists_are_not() {
        let of = |fields: usize| {
            let fields: String = (0..fields).map(|at| format!("    pub f{at}: u8,\n")).collect();
            format!("/// A struct in {{ words.\npub struct Many {{\n{fields}}}\n")
        };
        let source = |file: &str, fields| vec![(file.to_owned(), of(fields))];
        assert_eq!(large_structs(&source("crates/a/src/b.rs", 13)), ["`Many` (13)"]);
        assert!(large_structs(&source("crates/a/src/b.rs", 12)).is_empty());
        assert!(large_structs(&source("crates/format/src/b.rs", 13)).is_empty());
    }
}
