//! What people and programs see: text or JSON lines on stdout, progress on a terminal's stderr.
//!
//! Everything is told twice, as text and as a record; only the one that was asked for is printed.

use std::fmt::Display;
use std::io::{self, IsTerminal, Write};
use std::path::Path;
use std::time::Duration;

use anstyle::{AnsiColor, Style};
use anyhow::{Context, Result, anyhow};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use serde_json::{Value, json};
use standfast_format::Digest;

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
    json: bool,
    colour: bool,
}

impl Output {
    /// Decides once, from the options and the terminal.
    pub(crate) fn new(json: bool) -> Self {
        let plain = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
        Self { json, colour: !plain && io::stdout().is_terminal() }
    }

    /// A line of text.
    pub(crate) fn line(&self, text: impl Display) -> Result<()> {
        if self.json {
            return Ok(());
        }
        Ok(writeln!(io::stdout(), "{text}")?)
    }

    /// A JSON line.
    pub(crate) fn record(&self, kind: &str, mut fields: Value) -> Result<()> {
        if !self.json {
            return Ok(());
        }
        fields["type"] = kind.into();
        Ok(writeln!(io::stdout(), "{fields}")?)
    }

    /// Text in a style, if there is colour.
    pub(crate) fn paint(&self, style: Style, text: impl Display) -> String {
        if self.colour { format!("{style}{text}{style:#}") } else { text.to_string() }
    }

    /// The title of a part.
    pub(crate) fn act(&self, number: u32, what: &str) -> Result<()> {
        let number = self.paint(TITLE, number);
        self.line(format_args!("\n{number}  {}", self.paint(TITLE, what)))
    }

    /// A bar over so many steps; hidden where it would disturb.
    pub(crate) fn steps(&self, total: u64, what: &str) -> ProgressBar {
        self.bar(total, what, "   {msg} {wide_bar:.cyan/blue} step {pos}/{len}")
    }

    /// A sign of life while something is waited for.
    pub(crate) fn wait(&self, what: &str) -> ProgressBar {
        let bar = self.bar(0, what, "   {spinner:.cyan} {msg}");
        if !bar.is_hidden() {
            bar.enable_steady_tick(Duration::from_millis(100));
        }
        bar
    }

    fn bar(&self, total: u64, what: &str, template: &str) -> ProgressBar {
        let target = match !self.json && io::stderr().is_terminal() {
            true => ProgressDrawTarget::stderr(),
            false => ProgressDrawTarget::hidden(),
        };
        let style = ProgressStyle::with_template(template).expect("the template is fixed text");
        let bar = ProgressBar::with_draw_target(Some(total), target)
            .with_style(style.progress_chars("━╸─"))
            .with_message(what.to_owned());
        bar.tick();
        bar
    }

    /// Compares the answer of a disturbed run with that of an undisturbed one, and tells.
    pub(crate) fn compare(&self, undisturbed: &Path, restarted: &Path) -> Result<bool> {
        let read = |path: &Path| {
            std::fs::read(path).with_context(|| format!("cannot read {}", path.display()))
        };
        let (a, b) = (read(undisturbed)?, read(restarted)?);
        let (digest_a, digest_b) = (Digest::of(&a).to_string(), Digest::of(&b).to_string());
        let identical = a == b && !a.is_empty();
        let fields = json!({
            "identical": identical, "bytes": b.len(), "digest": digest_b,
            "digest_undisturbed": digest_a,
        });
        self.record("compared", fields)?;
        self.line(format_args!("   undisturbed  blake3 {digest_a}"))?;
        self.line(format_args!("   restarted    blake3 {digest_b}"))?;
        let differ = a.iter().zip(&b).filter(|(a, b)| a != b).count() + a.len().abs_diff(b.len());
        match identical {
            true => {
                let good = self.paint(GOOD, "identical");
                self.line(format_args!("   {good}: all {} bytes are equal", b.len()))?;
            }
            false => {
                self.line(format_args!("   {}: {differ} bytes", self.paint(BAD, "DIFFERENT")))?
            }
        }
        Ok(identical)
    }
}

/// A failure of the operating system.
pub(crate) fn os(verb: &str, what: impl Display, error: io::Error) -> anyhow::Error {
    anyhow!("cannot {verb} {what}: {error}")
}
