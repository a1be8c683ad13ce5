//! The manual: examples, what to do next, JSON lines and exit codes, each written once.
//!
//! Data: `manual.txt` -> [`PAGES`]; these and the table of kinds -> the end of every `--help`, and the sections
//! EXAMPLES, NEXT, JSON LINES and EXIT STATUS of the man pages.

use std::fmt::Write as _;
use std::sync::LazyLock;

use standfast::Kind;

/// What a command's help says beyond its options.
pub(crate) struct Page {
    /// The command's name.
    pub(crate) command: &'static str,
    /// A command line and what it does.
    pub(crate) examples: Vec<(&'static str, &'static str)>,
    /// What people usually do after it.
    pub(crate) next: &'static str,
    /// Types of its JSON lines, with their fields.
    pub(crate) json: Vec<(&'static str, &'static str)>,
}

/// A page per command, from the text beside this file.
pub(crate) static PAGES: LazyLock<Vec<Page>> =
    LazyLock::new(|| include_str!("manual.txt").split("== ").skip(1).map(Page::read).collect());

impl Page {
    /// A page of the text: the command's name, then a line each. `$` is an example, an indented line
    /// what it does, `next:` what follows, and `json:` a type of JSON lines.
    fn read(text: &'static str) -> Self {
        let (command, lines) = text.split_once('\n').expect("a name has a line of its own");
        let mut page = Self { command, examples: Vec::new(), next: "", json: Vec::new() };
        for line in lines.lines().filter(|line| !line.is_empty()) {
            if let Some(example) = line.strip_prefix("$ ") {
                page.examples.push((example, ""));
            } else if let (Some(what), Some(last)) =
                (line.strip_prefix("  "), page.examples.last_mut())
            {
                last.1 = what;
            } else if let Some(next) = line.strip_prefix("next: ") {
                page.next = next;
            } else {
                let json = line.strip_prefix("json: ").and_then(|json| json.split_once(':'));
                let (kind, fields) = json.expect("a line of the manual says what it is");
                page.json.push((kind, fields.trim_start()));
            }
        }
        page
    }

    /// The end of the command's help.
    pub(crate) fn help(&self) -> String {
        let mut text = String::from("Examples:\n");
        for (line, what) in &self.examples {
            let _ = writeln!(text, "  {line}");
            if !what.is_empty() {
                let _ = writeln!(text, "      {what}");
            }
        }
        let _ =
            write!(text, "\nNext: {}\n\nJSON lines (--json):\n{}", self.next, self.json_lines());
        text.trim_end().to_owned()
    }

    /// The JSON lines, one per line.
    pub(crate) fn json_lines(&self) -> String {
        self.json.iter().map(|(kind, fields)| format!("  {kind}: {fields}\n")).collect()
    }
}

/// The JSON line of an error, which every command may print.
pub(crate) const ERROR_LINE: &str = "error (on stderr): kind, message, advice";

/// The end of `standfast --help`.
pub(crate) fn exit_codes() -> String {
    let mut text = String::from("Start with: standfast demo\n\nExit codes:\n");
    for (code, meaning) in exit_code_table() {
        let _ = writeln!(text, "  {code:>3}  {meaning}");
    }
    text.trim_end().to_owned()
}

/// Every exit code and what it means.
pub(crate) fn exit_code_table() -> Vec<(i32, String)> {
    let kinds = Kind::all().map(|kind| (kind.exit_code(), format!("{kind}: {}", meaning(kind))));
    [(0, "success".to_owned()), (2, "usage: the command line is wrong".to_owned())]
        .into_iter()
        .chain(kinds)
        .chain([(130, "interrupted".to_owned())])
        .collect()
}

fn meaning(kind: Kind) -> &'static str {
    match kind {
        Kind::Corrupt => "stored bytes are damaged, or the demo's answers differ",
        Kind::Missing => "no such store, job, checkpoint or region",
        Kind::Busy => "another process holds the store",
        Kind::Transient => "a failure that may pass; try again",
        Kind::Full => "no space is left",
        Kind::Denied => "access is refused",
        Kind::Io => "the device or the network failed",
        Kind::Unsupported => "this build or machine cannot do it; a newer format",
        Kind::Invalid => "an argument or a setting is wrong",
        Kind::Exhausted => "out of memory, threads or file descriptors",
        _ => "a fault of Standfast itself; please report it",
    }
}
