//! `config`: every setting, from the one table that also reads them.

use std::process::ExitCode;

use serde_json::json;
use standfast::config::{FILE, KEYS, Key, LAB_KEYS, Loaded, Origin, PREFIX, SettingKey};

use crate::args::{ConfigArgs, Global};
use crate::escape;
use crate::failure::Result;
use crate::output::{FAINT, Output};

/// Prints the effective settings, the reference or a file to start from.
pub(crate) fn run(global: &Global, args: &ConfigArgs, output: &Output) -> Result<ExitCode> {
    if args.reference {
        reference(output)?;
    } else if args.toml {
        template(output)?;
    } else {
        let loaded = standfast_admin::load(&global.place())?;
        if args.lab { lab(&loaded, output)? } else { effective(&loaded, output)? }
    }
    Ok(ExitCode::SUCCESS)
}

fn effective(loaded: &Loaded, output: &Output) -> Result<()> {
    table(KEYS, &loaded.settings, |name| origin(loaded, name), output)?;
    let memory =
        format!("\n  memory for a single rank of this node: {}", loaded.config.memory.rank);
    output.line(memory)?;
    let where_from = format!(
        "\n  sources, later ones win: default, {FILE} (or the file that {PREFIX}CONFIG names), \
         {PREFIX}NAME, the call"
    );
    output.line(output.paint(FAINT, where_from))
}

fn lab(loaded: &Loaded, output: &Output) -> Result<()> {
    let origin = |name: &str| loaded.origin(&format!("lab.{name}")).to_string();
    table(LAB_KEYS, &loaded.config, origin, output)?;
    let where_from = format!("\n  for experiments: lab.NAME in the call, or {PREFIX}LAB_NAME");
    output.line(output.paint(FAINT, where_from))
}

fn table<T: Default>(
    keys: &[Key<T>],
    of: &T,
    origin: impl Fn(&str) -> String,
    output: &Output,
) -> Result<()> {
    let mut rows = Vec::new();
    for key in keys {
        let (value, origin) = ((key.show)(of), origin(key.name));
        record(key, Some((&value, &origin)), output)?;
        rows.push(vec![key.name.to_owned(), escape::name(&value), escape::name(&origin)]);
    }
    let columns = "SETTING|VALUE|FROM";
    output.table(columns, rows)
}

fn origin(loaded: &Loaded, name: &str) -> String {
    match loaded.origin(name) {
        Origin::Call => format!("option --{name}"),
        origin => origin.to_string(),
    }
}

fn record<T: Default>(
    key: &Key<T>,
    effective: Option<(&str, &str)>,
    output: &Output,
) -> Result<()> {
    let (value, origin) = effective.unzip();
    let fields = json!({
        "name": key.name, "value": value, "origin": origin, "default": key.default(),
        "values": key.values, "help": key.help,
    });
    output.record("setting", fields)
}

/// All settings as a Markdown table.
fn reference(output: &Output) -> Result<()> {
    output.line("| setting | values | default | variable | meaning |\n|---|---|---|---|---|")?;
    for key in KEYS {
        record(key, None, output)?;
        output.line(format_args!(
            "| `{}` | {} | `{}` | `{}` | {} |",
            key.name,
            key.values,
            key.default(),
            variable(key),
            key.help.replace('|', "\\|")
        ))?;
    }
    Ok(())
}

fn template(output: &Output) -> Result<()> {
    output.line(format_args!(
        "# {FILE}: settings of Standfast. Every line shows a default; uncomment to change it.\n\
         # {PREFIX}NAME variables and the program's own call win over this file.\n\
         # 'standfast config' prints what is in effect."
    ))?;
    for key in KEYS {
        record(key, None, output)?;
        let default = key.default();
        let digits = default.bytes().all(|byte| byte.is_ascii_digit());
        let is_number = digits && !default.is_empty();
        let quote = if is_number { "" } else { "\"" };
        output.line(format_args!(
            "\n# {} ({})\n#{} = {quote}{default}{quote}",
            key.help, key.values, key.name
        ))?;
    }
    Ok(())
}

fn variable(key: &SettingKey) -> String {
    format!("{PREFIX}{}", key.name.to_ascii_uppercase())
}
