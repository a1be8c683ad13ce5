//! `show --writes`: how a checkpoint's bytes went out, by the size of the writes.

use serde_json::{Value, json};
use standfast::Manifest;
use standfast_admin::human_bytes;
use standfast_admin::writes::{self, Class, Tally, Writes};

use crate::escape;
use crate::failure::Result;
use crate::output::{Output, TITLE};

/// Tells what the write path was handed and what it wrote.
pub(crate) fn show(manifest: &Manifest, output: &Output) -> Result<()> {
    let Some(profile) = writes::profile(manifest) else {
        return output.line("\nits writes were not counted: it was taken by an older version");
    };
    for rank in &profile.ranks {
        records(json!({ "rank": rank.rank }), rank, output)?;
    }
    side("pieces handed to the write path", &profile.all.pieces, output)?;
    side("writes to the medium", &profile.all.writes, output)?;
    for (name, node) in &profile.nodes {
        records(json!({ "node": name }), node, output)?;
    }
    let of_node = |(name, node): (String, Writes)| (escape::name(&name), node);
    by("NODE", profile.nodes.into_iter().map(of_node), output)?;
    let of_rank = |rank: Writes| (rank.rank.to_string(), rank);
    by("RANK", profile.ranks.into_iter().map(of_rank), output)
}

/// `whose`: a rank or a node.
fn records(whose: Value, profile: &Writes, output: &Output) -> Result<()> {
    for (side, tally) in [("pieces", &profile.pieces), ("writes", &profile.writes)] {
        for Class { from, below, count } in writes::classes(tally) {
            let mut fields = whose.clone();
            fields["side"] = json!(side);
            fields["from"] = json!(from);
            fields["below"] = json!(below);
            fields["count"] = json!(count.count);
            fields["bytes"] = json!(count.bytes);
            fields["ns"] = json!(count.ns);
            output.record("writes", fields)?;
        }
    }
    Ok(())
}

fn side(title: &str, tally: &Tally, output: &Output) -> Result<()> {
    let total = tally.total();
    let mean = human_bytes(total.bytes / total.count.max(1));
    let facts = format!("{}, {}, {mean} on average", total.count, human_bytes(total.bytes));
    output.line(format_args!("\n{}", output.heading(title, facts)))?;
    let row = |Class { from, below, count }: Class| {
        let size = match below {
            Some(below) => format!("{} - {}", human_bytes(from), human_bytes(below)),
            None => format!("from {}", human_bytes(from)),
        };
        vec![
            size,
            count.count.to_string(),
            share(count.count, total.count),
            human_bytes(count.bytes),
            share(count.bytes, total.bytes),
            format!("{:.1} ms", count.ns as f64 / 1e6),
            share(count.ns, total.ns),
        ]
    };
    let columns = "SIZE|>COUNT|>OF ALL|>BYTES|>OF ALL|>TIME|>OF ALL";
    output.table(columns, writes::classes(tally).into_iter().map(row).collect())
}

/// A table with a line for each rank or node.
fn by(
    what: &'static str,
    all: impl Iterator<Item = (String, Writes)>,
    output: &Output,
) -> Result<()> {
    let rows: Vec<(String, Writes)> = all.collect();
    if rows.is_empty() {
        return Ok(());
    }
    let title = format!("by {}", what.to_lowercase());
    output.line(format_args!("\n{}", output.paint(TITLE, title)))?;
    let row = |(name, profile): (String, Writes)| {
        let (pieces, writes) = (profile.pieces.total(), profile.writes.total());
        vec![
            name,
            pieces.count.to_string(),
            human_bytes(pieces.bytes / pieces.count.max(1)),
            writes.count.to_string(),
            human_bytes(writes.bytes / writes.count.max(1)),
            human_bytes(writes.bytes),
            format!("{:.1} ms", writes.ns as f64 / 1e6),
        ]
    };
    let columns = format!(">{what}|>PIECES|>MEAN|>WRITES|>MEAN|>BYTES|>TIME");
    output.table(&columns, rows.into_iter().map(row).collect())
}

fn share(part: u64, whole: u64) -> String {
    format!("{:.1} %", if whole == 0 { 0.0 } else { 100.0 * part as f64 / whole as f64 })
}
