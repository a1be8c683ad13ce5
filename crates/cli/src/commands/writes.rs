//! `show --writes`: how a checkpoint's bytes went out, by the size of the writes.
//!
//! Data: the write profile in the manifest -> shares of count, bytes and time, of all ranks
//! together and of each.

use serde_json::json;
use standfast::{Manifest, human_bytes};
use standfast_format::{Tally, WRITE_BOUNDS, WriteCount, Writes};

use crate::failure::Result;
use crate::output::{Align, Column, FAINT, Output, TITLE};

/// Tells what the write path was handed and what it wrote.
pub(crate) fn show(manifest: &Manifest, output: &Output) -> Result<()> {
    if manifest.writes.is_empty() {
        return output.line("\nits writes were not counted: it was taken by an older version");
    }
    let (mut pieces, mut writes) = (Tally::default(), Tally::default());
    for rank in &manifest.writes {
        pieces.join(&rank.pieces);
        writes.join(&rank.writes);
        records(rank, output)?;
    }
    side("pieces handed to the write path", &pieces, output)?;
    side("writes to the medium", &writes, output)?;
    ranks(&manifest.writes, output)
}

fn records(rank: &Writes, output: &Output) -> Result<()> {
    for (side, tally) in [("pieces", &rank.pieces), ("writes", &rank.writes)] {
        for (class, count) in used(tally) {
            output.record(
                "writes",
                json!({
                    "rank": rank.rank, "side": side,
                    "from": from(class), "below": WRITE_BOUNDS.get(class),
                    "count": count.count, "bytes": count.bytes, "ns": count.ns,
                }),
            )?;
        }
    }
    Ok(())
}

/// Classes with anything in them.
fn used(tally: &Tally) -> Vec<(usize, WriteCount)> {
    tally.classes().into_iter().enumerate().filter(|(_, class)| class.count > 0).collect()
}

/// Least size of a class.
fn from(class: usize) -> u64 {
    if class == 0 { 0 } else { WRITE_BOUNDS[class - 1] }
}

fn side(title: &str, tally: &Tally, output: &Output) -> Result<()> {
    let total = tally.total();
    let mean = human_bytes(total.bytes / total.count.max(1));
    output.line(format_args!(
        "\n{}  {}",
        output.paint(TITLE, title),
        output.paint(
            FAINT,
            format_args!("{}, {}, {mean} on average", total.count, human_bytes(total.bytes))
        )
    ))?;
    let row = |(class, count): (usize, WriteCount)| {
        let size = match WRITE_BOUNDS.get(class) {
            Some(below) => format!("{} - {}", human_bytes(from(class)), human_bytes(*below)),
            None => format!("from {}", human_bytes(from(class))),
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
    let columns = [
        Column("SIZE", Align::Left),
        Column("COUNT", Align::Right),
        Column("OF ALL", Align::Right),
        Column("BYTES", Align::Right),
        Column("OF ALL", Align::Right),
        Column("TIME", Align::Right),
        Column("OF ALL", Align::Right),
    ];
    output.table(&columns, used(tally).into_iter().map(row).collect())
}

fn ranks(all: &[Writes], output: &Output) -> Result<()> {
    output.line(format_args!("\n{}", output.paint(TITLE, "by rank")))?;
    let row = |rank: &Writes| {
        let (pieces, writes) = (rank.pieces.total(), rank.writes.total());
        vec![
            rank.rank.to_string(),
            pieces.count.to_string(),
            human_bytes(pieces.bytes / pieces.count.max(1)),
            writes.count.to_string(),
            human_bytes(writes.bytes / writes.count.max(1)),
            human_bytes(writes.bytes),
            format!("{:.1} ms", writes.ns as f64 / 1e6),
        ]
    };
    let columns = [
        Column("RANK", Align::Right),
        Column("PIECES", Align::Right),
        Column("MEAN", Align::Right),
        Column("WRITES", Align::Right),
        Column("MEAN", Align::Right),
        Column("BYTES", Align::Right),
        Column("TIME", Align::Right),
    ];
    output.table(&columns, all.iter().map(row).collect())
}

fn share(part: u64, whole: u64) -> String {
    format!("{:.1} %", if whole == 0 { 0.0 } else { 100.0 * part as f64 / whole as f64 })
}
