//! What a restart from the stores at hand would do, told before it does it.
//!
//! Data: what the stores have of a checkpoint -> the plan that a restart would follow, by the same
//! function -> what is made again, where, from what; or what is missing and which nodes would help.

use standfast::ring::{self, GroupPlan, Place, Plan, Survey, Topology};
use standfast::{Manifest, Version};
use standfast_restart::Inventory;

use crate::error::Result;
use crate::place::OpenJob;

/// What can be done about a checkpoint.
pub enum Outlook {
    /// It has not reached the ring.
    Local {
        /// Ranks whose files are not there.
        missing: Vec<usize>,
    },
    /// It is on the ring.
    Ring {
        /// Nodes, groups and ranks.
        topology: Box<Topology>,
        /// What the stores have.
        survey: Survey,
        /// What a restart would make again.
        plan: Plan,
    },
}

/// A piece that a restart would make again.
#[derive(Debug)]
pub struct Made {
    /// In words: whose files, or which shard.
    pub what: String,
    /// On which rank.
    pub rank: Option<usize>,
    /// On which node.
    pub node: Option<String>,
    /// Its length.
    pub bytes: u64,
    /// From what, in words.
    pub from: Vec<String>,
}

impl Outlook {
    /// Looks at a checkpoint; `deep` reads what could be damaged.
    pub fn of(job: &OpenJob, manifest: &Manifest, deep: bool) -> Result<Self> {
        let Some(topology) = ring::read(&*job.store, manifest)? else {
            let missing = ring::missing_ranks(&*job.store, manifest)?;
            return Ok(Self::Local { missing });
        };
        let survey = ring::survey(&job.parts, manifest, &topology, deep)?;
        let plan = survey.plan(&topology);
        Ok(Self::Ring { topology: Box::new(topology), survey, plan })
    }

    /// Whether a restart from it works.
    pub fn is_restorable(&self) -> bool {
        match self {
            Self::Local { missing } => missing.is_empty(),
            Self::Ring { plan, .. } => plan.lost.is_empty(),
        }
    }

    /// How the restart will go, in a word.
    pub fn word(&self) -> &'static str {
        match self {
            _ if !self.is_restorable() => "impossible",
            Self::Ring { topology, plan, .. } if decodes(topology, plan) => "fast",
            _ => "local",
        }
    }
}

/// The newest checkpoint older than this one that can be restored, by names and lengths only: a
/// restart reads and knows better.
pub fn newest_older(
    job: &OpenJob,
    inventory: &Inventory,
    than: &Manifest,
) -> Result<Option<Version>> {
    let older = inventory.checkpoints.iter().skip_while(|other| other.version != than.version);
    for other in older.skip(1) {
        if Outlook::of(job, other, false)?.is_restorable() {
            return Ok(Some(other.version));
        }
    }
    Ok(None)
}

/// Whether bytes of a rank must be computed.
pub fn decodes(topology: &Topology, plan: &Plan) -> bool {
    let is_member = |group: &GroupPlan, place: &Place| {
        (place.piece.index as usize) < topology.members(group.group).len()
    };
    plan.groups.iter().any(|group| group.targets.iter().any(|place| is_member(group, place)))
}

/// What is made again of one group.
pub fn made(topology: &Topology, group: &GroupPlan) -> Vec<Made> {
    let members = topology.members(group.group);
    let longest = group.member_bytes.iter().copied().max().unwrap_or(0);
    let what = |place: &Place| match members.get(place.piece.index as usize) {
        Some(Some(rank)) => format!("files of rank {rank}"),
        Some(None) => "an empty place".into(),
        None => format!("shard {}", place.piece.index as usize - members.len()),
    };
    let sources = group.sources.iter().filter(|place| place.rank.is_some());
    let from: Vec<String> = sources.map(what).collect();
    let one = |target: &Place| Made {
        what: what(target),
        rank: target.rank,
        node: target.rank.map(|rank| topology.name_of(topology.node_of(rank))),
        bytes: group.member_bytes.get(target.piece.index as usize).copied().unwrap_or(longest),
        from: from.clone(),
    };
    group.targets.iter().map(one).collect()
}

/// Names of the nodes that are not there, and of those among them that would help.
pub fn away(topology: &Topology, survey: &Survey) -> (Vec<String>, Vec<String>) {
    let whole = survey.whole_ranks();
    let is_away = |node: &usize| topology.ranks_of(*node).iter().all(|rank| !whole.contains(rank));
    let away: Vec<usize> = (0..topology.nodes()).filter(is_away).collect();
    let repair = match topology.outlook(&away, &[]) {
        Ok(ring::Outlook::Slow { repair }) => repair,
        _ => Vec::new(),
    };
    let names = |nodes: &[usize]| nodes.iter().map(|node| topology.name_of(*node)).collect();
    (names(&away), names(&repair))
}
