//! What people and programs see: results on stdout as text or as JSON lines, remarks on stderr.
//!
//! Data: commands give every result twice, as text ([`Output::line`], [`Output::table`]) and as a
//! record ([`Output::record`]); only the one that was asked for is printed.
//!
//! Invariants:
//! - Colour only on a terminal, and never with `NO_COLOR`.
//! - A reader that went away (`standfast ls | head -1`) ends the command, quietly.

use std::fmt::Display;
use std::io::{self, IsTerminal, Write};

use anstyle::{AnsiColor, Style};
use comfy_table::{Attribute, Cell, CellAlignment, ContentArrangement, Row, Table, presets};
use serde::Serialize;

use crate::failure::{Failure, Result};

/// Titles.
pub(crate) const TITLE: Style = Style::new().bold();
/// What matters less.
pub(crate) const FAINT: Style = Style::new().dimmed();
/// What is as it should be.
pub(crate) const GOOD: Style = AnsiColor::Green.on_default().bold();
/// What is not.
pub(crate) const BAD: Style = AnsiColor::Red.on_default().bold();
/// What deserves a second look.
pub(crate) const WARN: Style = AnsiColor::Yellow.on_default();

/// How results are printed.
pub(crate) struct Output {
    /// JSON lines instead of text.
    pub(crate) json: bool,
    /// No remarks and no progress.
    pub(crate) quiet: bool,
    colour: bool,
    colour_err: bool,
}

impl Output {
    /// Decides once, from the options and the terminal.
    pub(crate) fn new(json: bool, quiet: bool) -> Self {
        let plain = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty())
            || std::env::var_os("TERM").is_some_and(|term| term == "dumb");
        Self {
            json,
            quiet,
            colour: !plain && io::stdout().is_terminal(),
            colour_err: !plain && io::stderr().is_terminal(),
        }
    }

    /// Whether a bar may be drawn.
    pub(crate) fn shows_progress(&self) -> bool {
        !self.json && !self.quiet && io::stderr().is_terminal()
    }

    /// A line of text.
    pub(crate) fn line(&self, text: impl Display) -> Result<()> {
        if self.json {
            return Ok(());
        }
        self.raw(format_args!("{text}\n"))
    }

    /// A JSON line.
    pub(crate) fn record(&self, kind: &str, fields: impl Serialize) -> Result<()> {
        if !self.json {
            return Ok(());
        }
        let mut fields = serde_json::to_value(fields).expect("plain values can be written");
        let object = fields.as_object_mut().expect("records are objects");
        object.insert("type".into(), kind.into());
        self.raw(format_args!("{fields}\n"))
    }

    /// Text as it is, in both modes.
    pub(crate) fn raw(&self, text: impl Display) -> Result<()> {
        let mut stdout = io::stdout().lock();
        match write!(stdout, "{text}").and_then(|()| stdout.flush()) {
            Ok(()) => Ok(()),
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Err(Failure::ReaderGone),
            Err(error) => Err(Failure::os("write to", "the standard output", error)),
        }
    }

    /// A remark on stderr, faint.
    pub(crate) fn remark(&self, text: impl Display) {
        if !self.json && !self.quiet {
            // Nobody can be told that telling failed.
            let _ = writeln!(io::stderr(), "{}", self.paint_err(FAINT, text));
        }
    }

    /// Text in a style, if there is colour.
    pub(crate) fn paint(&self, style: Style, text: impl Display) -> String {
        if self.colour { format!("{style}{text}{style:#}") } else { text.to_string() }
    }

    /// As [`Output::paint`], for text that goes to stderr.
    pub(crate) fn paint_err(&self, style: Style, text: impl Display) -> String {
        if self.colour_err { format!("{style}{text}{style:#}") } else { text.to_string() }
    }

    /// A title and a faint remark behind it.
    pub(crate) fn heading(&self, title: impl Display, remark: impl Display) -> String {
        format!("{}  {}", self.paint(TITLE, title), self.paint(FAINT, remark))
    }

    /// A table, indented; nothing if it has no rows. The titles of its columns have `|` between them,
    /// and those of numbers begin with `>`: they stand on the right.
    pub(crate) fn table(&self, columns: &str, rows: Vec<Vec<String>>) -> Result<()> {
        if self.json || rows.is_empty() {
            return Ok(());
        }
        let mut table = Table::new();
        table.load_style(presets::NOTHING);
        table.set_content_arrangement(ContentArrangement::Disabled);
        let header = columns.split('|').map(|title| {
            let cell = Cell::new(title.trim_start_matches('>'));
            if self.colour { cell.add_attribute(Attribute::Dim) } else { cell }
        });
        table.set_header(Row::from(header));
        rows.into_iter().for_each(|row| {
            table.add_row(row);
        });
        for (column, title) in table.column_iter_mut().zip(columns.split('|')) {
            column.set_padding((0, 2));
            if title.starts_with('>') {
                column.set_cell_alignment(CellAlignment::Right);
            }
        }
        if self.colour {
            table.enforce_styling();
        } else {
            table.force_no_tty();
        }
        for line in table.lines() {
            self.line(format_args!("  {}", line.trim_end()))?;
        }
        Ok(())
    }
}
