//! An HTML page with all tables and plots in it.
//!
//! Data: [`Reproduction`]s -> one self-contained page: inline SVG, no scripts, no links out.

use std::fmt::Write as _;

use super::canvas::escape;
use super::svg;
use crate::paper::Reproduction;
use crate::render::number;

const STYLE: &str = "body{font:16px/1.5 'DejaVu Sans',Verdana,sans-serif;max-width:60rem;margin:2rem auto;padding:0 1rem;color:#111}\
h2{margin-top:3rem;border-bottom:1px solid #ccc}table{border-collapse:collapse;margin:1rem 0}\
td,th{padding:.25rem .8rem;border-bottom:1px solid #ddd;text-align:right}td:first-child,th:first-child{text-align:left}\
.no{color:#D55E00;font-weight:bold}.yes{color:#00664B}svg{max-width:100%;height:auto}li{margin:.2rem 0}";

/// Bundles reproductions into one page.
pub fn report(title: &str, items: &[Reproduction]) -> String {
    let mut page = format!(
        "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\
         <meta name=\"viewport\" content=\"width=device-width\"><title>{0}</title>\
         <style>{STYLE}</style></head><body>\n<h1>{0}</h1>\n<ul>\n",
        escape(title)
    );
    for item in items {
        let _ = writeln!(
            page,
            "<li><a href=\"#{}\">{}</a>: {}</li>",
            item.name,
            escape(item.title),
            summary(item)
        );
    }
    page.push_str("</ul>\n");
    for item in items {
        section(&mut page, item);
    }
    page.push_str("</body></html>\n");
    page
}

/// How much of an item agrees, without what it does not have.
fn summary(item: &Reproduction) -> String {
    let holding = item.claims.iter().filter(|claim| claim.holds).count();
    let parts = [
        ("numbers agree", item.agreeing(), item.rows.len()),
        ("statements hold", holding, item.claims.len()),
    ];
    let told = parts.iter().filter(|(_, _, all)| *all > 0);
    let told: Vec<String> =
        told.map(|(what, good, all)| format!("{good} of {all} {what}")).collect();
    told.join(", ")
}

fn section(page: &mut String, item: &Reproduction) {
    let _ = writeln!(page, "<h2 id=\"{}\">{}</h2>", item.name, escape(item.title));
    for chart in &item.charts {
        page.push_str(&svg(chart));
    }
    if !item.rows.is_empty() {
        page.push_str("<table><tr><th></th><th>paper</th><th>ours</th><th>difference</th><th>unit</th><th></th></tr>\n");
        for row in &item.rows {
            let _ = writeln!(
                page,
                "<tr><td>{}</td><td>{}</td><td>{}</td><td>{:+.2}</td><td>{}</td>{}</tr>",
                escape(&row.label),
                number(row.paper),
                number(row.ours),
                row.difference(),
                escape(row.unit),
                mark(row.agrees())
            );
        }
        page.push_str("</table>\n");
    }
    for (heading, lines) in [("Statements", claims(item)), ("Assumptions", plain(item))] {
        if !lines.is_empty() {
            let _ = writeln!(page, "<h3>{heading}</h3><ul>{lines}</ul>");
        }
    }
}

fn mark(agrees: bool) -> &'static str {
    if agrees { "<td class=\"yes\">agrees</td>" } else { "<td class=\"no\">differs</td>" }
}

fn claims(item: &Reproduction) -> String {
    item.claims.iter().fold(String::new(), |mut text, claim| {
        let (class, word) = if claim.holds { ("yes", "holds") } else { ("no", "does not hold") };
        let _ = write!(
            text,
            "<li>{} <span class=\"{class}\">({word})</span></li>",
            escape(&claim.text)
        );
        text
    })
}

fn plain(item: &Reproduction) -> String {
    item.assumptions.iter().fold(String::new(), |mut text, line| {
        let _ = write!(text, "<li>{}</li>", escape(line));
        text
    })
}
