//! `man`: the manual pages, from the same definitions as the help.
//!
//! clap_mangen gives name, synopsis and options; [`crate::manual`] gives the sections EXAMPLES,
//! NEXT, JSON LINES and EXIT STATUS.

use std::fmt::Display;
use std::path::Path;
use std::process::ExitCode;

use clap_mangen::Man;
use serde_json::json;

use crate::args::{self, ManArgs};
use crate::failure::{Failure, Result};
use crate::manual::{self, Page};
use crate::output::Output;

/// Prints `standfast(1)`, or writes all pages to a directory.
pub(crate) fn run(args: &ManArgs, output: &Output) -> Result<ExitCode> {
    match &args.dir {
        None => {
            let text = main_page();
            output.record("text", json!({ "name": "standfast.1", "text": text }))?;
            output.line(text.trim_end())?;
        }
        Some(dir) => write_all(dir, output)?,
    }
    Ok(ExitCode::SUCCESS)
}

fn write_all(dir: &Path, output: &Output) -> Result<()> {
    std::fs::create_dir_all(dir).map_err(|error| Failure::os("make", dir.display(), error))?;
    let commands = manual::PAGES
        .iter()
        .map(|page| (format!("standfast-{}.1", page.command), command_page(page)));
    for (file, text) in [("standfast.1".to_owned(), main_page())].into_iter().chain(commands) {
        let path = dir.join(file);
        std::fs::write(&path, text).map_err(|error| Failure::os("write", path.display(), error))?;
        output.record("file", json!({ "file": path.to_string_lossy() }))?;
        output.line(path.display())?;
    }
    Ok(())
}

fn main_page() -> String {
    let command = args::command();
    let mut page = head(command);
    section(&mut page, "EXIT STATUS", &manual::exit_code_table());
    page.push_str(".SH \"JSON LINES\"\n");
    page.push_str(&roff(
        "With --json every result is one line with a \"type\". The types of each command and \
         their fields:",
    ));
    for own in manual::PAGES.iter() {
        for (kind, fields) in &own.json {
            page.push_str(&format!(".TP\n{} {}\n{}", own.command, kind, roff(fields)));
        }
    }
    page.push_str(&format!(".TP\nany command\n{}", roff(manual::ERROR_LINE)));
    page
}

fn command_page(page: &Page) -> String {
    let mut root = args::command();
    root.build();
    let command = root.find_subcommand(page.command).expect("every page has a command").clone();
    let parts = parts(&command);
    let mut text = head(command.display_name(format!("standfast-{}", page.command)));
    text.push_str(&parts);
    section(&mut text, "EXAMPLES", &page.examples);
    text.push_str(&format!(".SH NEXT\n{}", roff(page.next)));
    section(&mut text, "JSON LINES", &page.json);
    text.push_str(".SH \"SEE ALSO\"\nstandfast(1) lists the exit codes.\n");
    text
}

/// Title, name, synopsis, description, options and subcommands.
fn head(command: clap::Command) -> String {
    // The sections below take the place of what follows the options in --help.
    let has_subcommands = command.has_subcommands();
    let man = Man::new(command.after_help("")).manual("Standfast");
    let mut page = Vec::new();
    let rendered = man
        .render_title(&mut page)
        .and_then(|()| man.render_name_section(&mut page))
        .and_then(|()| man.render_synopsis_section(&mut page))
        .and_then(|()| man.render_description_section(&mut page))
        .and_then(|()| man.render_options_section(&mut page))
        .and_then(|()| match has_subcommands {
            true => man.render_subcommands_section(&mut page),
            false => Ok(()),
        });
    rendered.expect("memory takes the page");
    String::from_utf8_lossy(&page).into_owned()
}

/// The options of a command's own subcommands.
fn parts(command: &clap::Command) -> String {
    let own = |part: &&clap::Command| part.get_name() != "help";
    let mut text = String::new();
    for part in command.get_subcommands().filter(own) {
        let mut page = Vec::new();
        Man::new(part.clone().after_help(""))
            .render_options_section(&mut page)
            .expect("memory takes the page");
        let title = format!(".SH \"OPTIONS OF {}\"", part.get_name().to_uppercase());
        text.push_str(&String::from_utf8_lossy(&page).replacen(".SH OPTIONS", &title, 1));
    }
    text
}

fn section<W: Display, T: Display>(page: &mut String, title: &str, entries: &[(W, T)]) {
    page.push_str(&format!(".SH \"{title}\"\n"));
    for (word, text) in entries {
        page.push_str(&format!(".TP\n{}{}", roff(&word.to_string()), roff(&text.to_string())));
    }
}

/// Text as roff shows it: backslashes doubled, no line that starts a command.
fn roff(text: &str) -> String {
    let text = text.replace('\\', "\\\\").replace('-', "\\-");
    let text: String = text
        .lines()
        .map(|line| match line.starts_with(['.', '\'']) {
            true => format!("\\&{line}\n"),
            false => format!("{line}\n"),
        })
        .collect();
    if text.is_empty() { "\n".into() } else { text }
}
