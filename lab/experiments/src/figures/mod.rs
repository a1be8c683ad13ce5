//! `figures`: every table of figures in the docs, made from committed results.
//!
//! A table stands between two remarks, and the first says what it is made of:
//!
//! ```text
//! <!-- figures: bars benches/results/NAME.jsonl A; C cow -->
//! | what | measured | goal | ceiling | met |
//! <!-- end of figures -->
//! ```
//! `bars` takes the rows of a letter, or those whose names begin with the words behind it; `compare`
//! takes what `experiments compare --json` has printed; `house` counts in the sources. A document that has one such table has no
//! figures made by hand.

mod bars;
mod compare;
mod house;
mod origin;

use std::path::{Path, PathBuf};

use anyhow::{Context, bail, ensure};

/// Make the tables of figures in the docs from the committed results
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Only say which documents are not what the results give
    #[arg(long)]
    check: bool,
    /// Root of the repository
    #[arg(long, default_value = ".")]
    root: PathBuf,
}

const BEGIN: &str = "<!-- figures: ";
/// Figures of the sources themselves, which no run gives.
const HOUSE: &str = "house";
const END: &str = "<!-- end of figures -->";
/// Tables with this column hold figures, and are made by this command alone.
const COLUMN: &str = "measured";

pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    let mut stale = Vec::new();
    for path in documents(&args.root)? {
        let text = std::fs::read_to_string(&path)?;
        let name = path.strip_prefix(&args.root).unwrap_or(&path).display().to_string();
        let made = remake(&args.root, &text).with_context(|| name.clone())?;
        if args.check {
            sources(&args.root, &text).with_context(|| name.clone())?;
        }
        if made == text {
            continue;
        }
        stale.push(name);
        if !args.check {
            std::fs::write(&path, made)?;
        }
    }
    match (args.check, stale.is_empty()) {
        (true, false) => bail!("not what the results give (make figures): {}", stale.join(", ")),
        (false, false) => println!("made anew: {}", stale.join(", ")),
        (_, true) => println!("every figure is what the results give"),
    }
    Ok(())
}

fn documents(root: &Path) -> anyhow::Result<Vec<PathBuf>> {
    let mut documents = vec![root.join("README.md")];
    for dir in ["docs", "docs/lab"] {
        for entry in std::fs::read_dir(root.join(dir))? {
            let path = entry?.path();
            if path.extension().is_some_and(|ending| ending == "md") {
                documents.push(path);
            }
        }
    }
    documents.sort();
    Ok(documents)
}

/// The document with its tables made of what is committed.
fn remake(root: &Path, text: &str) -> anyhow::Result<String> {
    if !text.contains(BEGIN) {
        return Ok(text.to_owned());
    }
    let mut made = String::with_capacity(text.len());
    let mut lines = text.split_inclusive('\n').enumerate();
    while let Some((number, line)) = lines.next() {
        made.push_str(line);
        let Some(order) = line.trim_end().strip_prefix(BEGIN) else {
            ensure!(!is_figures(line), "line {}: figures that no result gives", number + 1);
            continue;
        };
        let order = order.strip_suffix("-->").context("the remark ends with -->")?.trim();
        made.push_str(&table(root, order).with_context(|| format!("line {}", number + 1))?);
        let end = lines.find(|(_, line)| line.trim_end() == END);
        made.push_str(end.with_context(|| format!("nothing ends the table {order}"))?.1);
    }
    Ok(made)
}

/// Whether the results that a document shows are those of this code.
fn sources(root: &Path, text: &str) -> anyhow::Result<()> {
    let orders = text.lines().filter_map(|line| line.strip_prefix(BEGIN));
    for order in orders.filter(|order| !order.starts_with(HOUSE)) {
        let file = order.split(' ').nth(1).context("which file?")?;
        let results = std::fs::read_to_string(root.join(file))?;
        origin::check(root, &results).context(file.to_owned())?;
    }
    Ok(())
}

/// Whether a line heads a table of figures.
fn is_figures(line: &str) -> bool {
    line.starts_with('|') && line.split('|').any(|cell| cell.trim() == COLUMN)
}

fn table(root: &Path, order: &str) -> anyhow::Result<String> {
    if order == HOUSE {
        return house::table(root);
    }
    let mut words = order.splitn(3, ' ');
    let (kind, file) = (words.next().unwrap_or(""), words.next().context("which file?")?);
    let text = std::fs::read_to_string(root.join(file)).context(file.to_owned())?;
    match kind {
        "bars" => bars::table(&text, words.next().unwrap_or("")),
        "compare" => compare::table(&text),
        other => bail!("no figures are called {other}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn root() -> PathBuf {
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
    }

    #[test]
    fn the_docs_show_what_the_results_give() {
        run(&Args { check: true, root: root() }).unwrap();
        let readme = std::fs::read_to_string(root().join("README.md")).unwrap();
        assert!(readme.contains(BEGIN), "README has a table of figures");
    }

    #[test]
    fn figures_by_hand_are_found() {
        let made = format!("{BEGIN}bars nowhere.jsonl A -->\n{END}\n");
        let by_hand = "| what | measured | goal |\n|---|---|---|\n| speed | 3 | 2 |\n";
        let error = remake(&root(), &format!("{by_hand}{made}")).unwrap_err();
        assert!(error.to_string().contains("no result"), "{error}");
        assert_eq!(remake(&root(), "| what | why |\n").unwrap(), "| what | why |\n");
        assert!(remake(&root(), &made).is_err());
    }
}
