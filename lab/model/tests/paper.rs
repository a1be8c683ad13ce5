//! The command `paper`: golden output, JSON, files, and errors that name what is wrong.

use std::path::Path;
use std::process::{Command, Output};

use insta::assert_snapshot;
use serde_json::Value;

fn paper(dir: &Path, words: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_paper"));
    command.args(words).current_dir(dir).output().expect("the command can be started")
}

fn text(output: &Output) -> String {
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout.clone()).unwrap()
}

fn lines(output: &Output) -> Vec<Value> {
    text(output).lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn papers_print_what_they_always_printed() {
    let dir = tempfile::tempdir().unwrap();
    assert_snapshot!("paper_list", text(&paper(dir.path(), &["list"])));
    assert_snapshot!("paper", text(&paper(dir.path(), &["ndp-headline"])));
}

#[test]
fn papers_are_compared_drawn_and_reported() {
    let dir = tempfile::tempdir().unwrap();
    let items = lines(&paper(dir.path(), &["all", "--json", "--report", "report.html"]));
    assert_eq!(items.len(), lines(&paper(dir.path(), &["list", "--json"])).len());
    for row in items.iter().flat_map(|item| item["rows"].as_array().unwrap()) {
        let value = |name: &str| row[name].as_f64().unwrap();
        assert!((value("ours") - value("paper") - value("difference")).abs() < 1e-9, "{row}");
        assert_eq!(row["agrees"], true, "{row}");
    }
    let page = std::fs::read_to_string(dir.path().join("report.html")).unwrap();
    assert!(page.contains("<svg") && page.matches("<h2").count() == items.len());

    let draw = |name, file| text(&paper(dir.path(), &[name, "--plot", file]));
    draw("ndp-figure7", "seven.PNG");
    assert!(std::fs::read(dir.path().join("seven.PNG")).unwrap().starts_with(b"\x89PNG"));
    assert!(dir.path().join("seven-ndp-figure7-normalized.png").is_file());
    draw("all", "plot.svg");
    let drawn = std::fs::read_to_string(dir.path().join("plot-ndp-figure7.svg")).unwrap();
    assert!(drawn.starts_with("<svg"));
}

#[test]
fn unknown_papers_and_plots_that_cannot_be_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    for (args, code, word) in [
        (&["ndp-table9"] as &[&str], 1, "ndp-table3"),
        (&["ddc-table1", "--plot", "a.svg"], 1, "ddc-table1 has no plot"),
        (&["ndp-figure1", "--plot", "a.gif"], 1, "a.gif"),
        (&["ndp-figure1", "--plot", "no/where/a.svg"], 1, "no/where/a.svg"),
        (&["ndp-figure1", "--report", "no/where/a.html"], 1, "no/where/a.html"),
        (&[], 2, "NAME"),
    ] {
        let output = paper(dir.path(), args);
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(code), "{args:?}: {said}");
        assert!(said.contains(word), "{args:?}: {said}");
    }
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);
}
