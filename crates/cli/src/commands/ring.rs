//! `show --ring`: who protects whom, and what each loss of nodes would cost.
//!
//! Data: the record of level ring, which every node has, and the manifest's lengths -> nodes,
//! groups in the order of the ring, losses. No other store is needed.

use std::collections::BTreeMap;

use serde_json::json;
use standfast::ring::{GroupId, Topology, members_bytes};
use standfast::{Kind, Manifest, human_bytes, ring};

use crate::escape;
use crate::failure::{Failure, Result};
use crate::output::{Align, BAD, Column, FAINT, GOOD, Output, TITLE, WARN};
use crate::place::OpenJob;

/// Sets of lost nodes that are drawn where there are too many for all.
const SAMPLES: u64 = 20_000;
/// Rows of a table before the rest is only counted; JSON has all of them.
const ROWS_MAX: usize = 64;

/// Shows the ring of a checkpoint.
pub(super) fn show(job: &OpenJob, manifest: &Manifest, output: &Output) -> Result<()> {
    let topology = ring::read(&*job.store, manifest)?.ok_or_else(|| no_ring(manifest))?;
    let drawn = Drawn::new(manifest, topology)?;
    drawn.summary(manifest, output)?;
    drawn.nodes(output)?;
    drawn.groups(output)?;
    drawn.losses(output)
}

fn no_ring(manifest: &Manifest) -> Failure {
    let what = format!(
        "checkpoint {} has not reached level ring: no other node holds any of it",
        manifest.version
    );
    Failure::new(Kind::Missing, what)
        .advise("a job with a store for each node and ring = \"auto\" brings its checkpoints there")
}

/// A topology and the lengths of what it protects.
struct Drawn {
    topology: Topology,
    /// Of every rank's member.
    bytes: Vec<u64>,
    /// Of every group's shards.
    shard_bytes: BTreeMap<GroupId, u64>,
}

/// What a lost node costs.
struct Cost {
    /// Bytes of its ranks' files and of the shards it keeps.
    members: u64,
    shards: u64,
    /// Bytes that others read and send to make them again.
    sent: u64,
}

impl Drawn {
    fn new(manifest: &Manifest, topology: Topology) -> Result<Self> {
        if topology.ranks() != manifest.ranks as usize {
            let (of, ranks) = (topology.ranks(), manifest.ranks);
            let what =
                format!("the record of the ring is of {of} ranks, the checkpoint of {ranks}");
            return Err(Failure::new(Kind::Corrupt, what));
        }
        let bytes = members_bytes(manifest);
        let longest = |group| {
            let members = topology.members(group).into_iter().flatten();
            (group, members.map(|rank| bytes[rank]).max().unwrap_or(0))
        };
        let shard_bytes = topology.ring().map(longest).collect();
        Ok(Self { topology, bytes, shard_bytes })
    }

    fn cost(&self, node: usize) -> Cost {
        let mut cost = Cost { members: 0, shards: 0, sent: 0 };
        for &rank in self.topology.ranks_of(node) {
            let k = self.topology.members(self.topology.group_of(rank).0).len() as u64;
            cost.members += self.bytes[rank];
            cost.sent += k * self.bytes[rank];
            for piece in self.topology.kept_by(rank) {
                let k = self.topology.members(piece.group).len() as u64;
                let bytes = self.shard_bytes[&piece.group];
                cost.shards += bytes;
                cost.sent += k * bytes;
            }
        }
        cost
    }

    fn summary(&self, manifest: &Manifest, output: &Output) -> Result<()> {
        let topology = &self.topology;
        let shape = topology.shape();
        let shards: u64 = self.shard_bytes.values().map(|bytes| bytes * shape.m as u64).sum();
        let members: u64 = self.bytes.iter().sum();
        output.record(
            "ring",
            json!({
                "version": manifest.version, "nodes": topology.nodes(), "ranks": topology.ranks(),
                "sectors": topology.sectors(), "groups": topology.ring().count(), "k": shape.k,
                "m": shape.m, "worst_case": topology.worst_case(), "survives": topology.promise(),
                "member_bytes": members, "shard_bytes": shards,
            }),
        )?;
        output
            .line(output.paint(TITLE, format_args!("ring of checkpoint {}", manifest.version)))?;
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

    fn nodes(&self, output: &Output) -> Result<()> {
        let mut rows = Vec::new();
        for node in 0..self.topology.nodes() {
            let cost = self.cost(node);
            let (sector, _) = self.topology.place_of(node);
            let ranks = self.topology.ranks_of(node);
            let keeps: usize = ranks.iter().map(|rank| self.topology.kept_by(*rank).len()).sum();
            let survived = self.topology.survives(&[node]).is_ok_and(|survives| survives);
            output.record(
                "node",
                json!({
                    "node": node, "name": self.topology.name_of(node), "sector": sector,
                    "ranks": ranks, "member_bytes": cost.members, "shards": keeps,
                    "shard_bytes": cost.shards, "survived": survived, "sent_bytes": cost.sent,
                }),
            )?;
            rows.push(vec![
                escape::name(&self.topology.name_of(node)),
                sector.to_string(),
                list(ranks),
                human_bytes(cost.members),
                format!("{keeps}, {}", human_bytes(cost.shards)),
                match survived {
                    true => format!("{} sent to make it again", human_bytes(cost.sent)),
                    false => "not survived".into(),
                },
            ]);
        }
        output.line(format_args!("\n{}", output.paint(TITLE, "nodes")))?;
        let columns = [
            Column("NODE", Align::Left),
            Column("SECTOR", Align::Right),
            Column("RANKS", Align::Left),
            Column("HOLDS", Align::Right),
            Column("KEEPS SHARDS", Align::Right),
            Column("IF IT IS LOST", Align::Left),
        ];
        some_rows(&columns, rows, output)
    }

    fn groups(&self, output: &Output) -> Result<()> {
        let mut rows = Vec::new();
        for group in self.topology.ring() {
            let members: Vec<usize> = self.topology.members(group).into_iter().flatten().collect();
            let keepers: Vec<usize> =
                (0..self.topology.shape().m).map(|row| self.topology.keeper(group, row)).collect();
            let names = |ranks: &[usize]| -> Vec<String> {
                let name = |rank: &usize| self.topology.name_of(self.topology.node_of(*rank));
                ranks.iter().map(name).collect()
            };
            let whole = self.topology.sector_nodes(group.sector as usize).collect::<Vec<_>>();
            let survived = self.topology.survives(&whole).is_ok_and(|survives| survives);
            output.record(
                "group",
                json!({
                    "sector": group.sector, "level": group.level, "members": members,
                    "member_nodes": names(&members), "keepers": keepers,
                    "keeper_nodes": names(&keepers), "shard_bytes": self.shard_bytes[&group],
                    "whole_survived": survived,
                }),
            )?;
            let next = self.topology.next(group);
            rows.push(vec![
                format!("{}.{}", group.sector, group.level),
                escape::name(&names(&members).join(" ")),
                format!("-> {}.{}", next.sector, next.level),
                escape::name(&names(&keepers).join(" ")),
                human_bytes(self.shard_bytes[&group]),
                if survived { "survived".into() } else { "not survived".into() },
            ]);
        }
        output.line(format_args!(
            "\n{}  {}",
            output.paint(TITLE, "groups, in the order of the ring"),
            output.paint(FAINT, "shards of each lie on the nodes of the next")
        ))?;
        let columns = [
            Column("GROUP", Align::Right),
            Column("MEMBERS ON", Align::Left),
            Column("NEXT", Align::Left),
            Column("SHARDS ON", Align::Left),
            Column("SHARD", Align::Right),
            Column("ITS WHOLE SECTOR LOST", Align::Left),
        ];
        some_rows(&columns, rows, output)
    }

    /// How likely a loss of so many nodes is survived.
    fn losses(&self, output: &Output) -> Result<()> {
        let nodes = self.topology.nodes();
        let most = (nodes / 2).max(1).min(self.topology.worst_case() + 4).min(nodes);
        output.line(format_args!("\n{}", output.paint(TITLE, "nodes lost at once")))?;
        for lost in 1..=most {
            let chance = self.topology.chance(lost, SAMPLES, 1);
            output.record(
                "loss",
                json!({
                    "nodes": lost, "survived": chance.survived, "sets": chance.sets,
                    "exact": chance.exact,
                }),
            )?;
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
}

fn some_rows(columns: &[Column], mut rows: Vec<Vec<String>>, output: &Output) -> Result<()> {
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
mod tests {
    use super::list;

    #[test]
    fn long_runs_are_written_short() {
        assert_eq!(list(&[3]), "3");
        assert_eq!(list(&[0, 1, 2]), "0, 1, 2");
        assert_eq!(list(&[4, 5, 6, 7]), "4-7");
        assert_eq!(list(&[4, 5, 6, 8]), "4, 5, 6, 8");
    }
}
