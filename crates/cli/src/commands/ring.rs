//! `show --ring`: who protects whom, and what each loss of nodes would cost.

use serde_json::json;
use standfast::Manifest;
use standfast_admin::OpenJob;
use standfast_admin::human_bytes;
use standfast_admin::ring::RingView;

use crate::escape;
use crate::failure::Result;
use crate::output::{BAD, FAINT, GOOD, Output, TITLE, WARN};

/// Rows of a table before the rest is only counted; JSON has all of them.
const ROWS_MAX: usize = 64;

/// Shows the ring of a checkpoint.
pub(super) fn show(job: &OpenJob, manifest: &Manifest, output: &Output) -> Result<()> {
    let view = RingView::read(job, manifest)?;
    summary(&view, manifest, output)?;
    nodes(&view, output)?;
    groups(&view, output)?;
    losses(&view, output)
}

fn summary(view: &RingView, manifest: &Manifest, output: &Output) -> Result<()> {
    let topology = &view.topology;
    let shape = topology.shape();
    let (members, shards) = (view.member_bytes(), view.shard_bytes());
    let fields = json!({
        "version": manifest.version, "nodes": topology.nodes(), "ranks": topology.ranks(),
        "sectors": topology.sectors(), "groups": topology.ring().count(), "k": shape.k,
        "m": shape.m, "worst_case": topology.worst_case(), "survives": topology.promise(),
        "member_bytes": members, "shard_bytes": shards,
    });
    output.record("ring", fields)?;
    output.line(output.paint(TITLE, format_args!("ring of checkpoint {}", manifest.version)))?;
    output.line(format_args!(
        "  {} ranks on {} nodes, {} sectors of at least {} nodes, {} shards a group",
        topology.ranks(),
        topology.nodes(),
        topology.sectors(),
        shape.k,
        shape.m
    ))?;
    output.line(format_args!(
        "  {} protected by {} of shards",
        human_bytes(members),
        human_bytes(shards)
    ))?;
    output.line(format_args!("  survives {}", topology.promise()))
}

fn nodes(view: &RingView, output: &Output) -> Result<()> {
    let mut rows = Vec::new();
    for node in view.nodes() {
        output.record("node", &node)?;
        rows.push(vec![
            escape::name(&node.name),
            node.sector.to_string(),
            list(&node.ranks),
            human_bytes(node.member_bytes),
            format!("{}, {}", node.shards, human_bytes(node.shard_bytes)),
            match node.is_survived {
                true => format!("{} sent to make it again", human_bytes(node.sent_bytes)),
                false => "not survived".into(),
            },
        ]);
    }
    output.line(format_args!("\n{}", output.paint(TITLE, "nodes")))?;
    let columns = "NODE|>SECTOR|RANKS|>HOLDS|>KEEPS SHARDS|IF IT IS LOST";
    some_rows(columns, rows, output)
}

fn groups(view: &RingView, output: &Output) -> Result<()> {
    let mut rows = Vec::new();
    for one in view.groups() {
        let (group, next) = (one.group, one.next);
        output.record("group", &one)?;
        rows.push(vec![
            format!("{}.{}", group.sector, group.level),
            escape::name(&one.member_nodes.join(" ")),
            format!("-> {}.{}", next.sector, next.level),
            escape::name(&one.keeper_nodes.join(" ")),
            human_bytes(one.shard_bytes),
            if one.is_survived { "survived".into() } else { "not survived".into() },
        ]);
    }
    let order = "groups, in the order of the ring";
    let heading = output.heading(order, "shards of each lie on the nodes of the next");
    output.line(format_args!("\n{heading}"))?;
    let columns = ">GROUP|MEMBERS ON|NEXT|SHARDS ON|>SHARD|ITS WHOLE SECTOR LOST";
    some_rows(columns, rows, output)
}

/// How likely a loss of so many nodes is survived.
fn losses(view: &RingView, output: &Output) -> Result<()> {
    output.line(format_args!("\n{}", output.paint(TITLE, "nodes lost at once")))?;
    for (lost, chance) in view.losses() {
        let fields = json!({
            "nodes": lost, "survived": chance.survived, "sets": chance.sets,
            "exact": chance.exact,
        });
        output.record("loss", fields)?;
        let (style, text) = match chance.survived {
            share if share >= 1.0 => (GOOD, "always survived".to_owned()),
            share if share <= 0.0 => (BAD, "never survived".to_owned()),
            share => (WARN, format!("survived in {:.2} % of all cases", 100.0 * share)),
        };
        let how = if chance.exact { "all" } else { "drawn" };
        output.line(format_args!(
            "  {lost:>3}  {}  {}",
            output.paint(style, text),
            output.paint(FAINT, format_args!("{} sets, {how}", chance.sets))
        ))?;
    }
    Ok(())
}

fn some_rows(columns: &str, mut rows: Vec<Vec<String>>, output: &Output) -> Result<()> {
    let more = rows.len().saturating_sub(ROWS_MAX);
    rows.truncate(ROWS_MAX);
    output.table(columns, rows)?;
    if more > 0 {
        output.line(format_args!("  and {more} more (--json has all)"))?;
    }
    Ok(())
}

/// "0, 1, 2, 3" or "0-127".
pub(super) fn list(numbers: &[usize]) -> String {
    let is_run = numbers.windows(2).all(|pair| pair[1] == pair[0] + 1);
    match numbers {
        [first, .., last] if is_run && numbers.len() > 3 => format!("{first}-{last}"),
        _ => numbers.iter().map(usize::to_string).collect::<Vec<_>>().join(", "),
    }
}

#[cfg(test)]
mod tests;
