//! How a checkpoint's bytes went out, by the size of the writes.
//!
//! Data: the write profile in the manifest -> classes of sizes, of all ranks together, of each node
//! and of each rank.
//!
//! What the node's agent has written counts for the rank that a shared segment is named after; only
//! the sums of a node tell how its ranks' pieces were aggregated.

use standfast::{Manifest, Rank};
use standfast_format::{Node, WRITE_BOUNDS, WriteCount};
pub use standfast_format::{Tally, Writes};

/// What the write path was handed and what it wrote.
#[derive(Debug)]
pub struct Profile {
    /// Of all ranks together.
    pub all: Writes,
    /// Of each node, by name.
    pub nodes: Vec<(String, Writes)>,
    /// Of each rank.
    pub ranks: Vec<Writes>,
}

/// Writes of one class of sizes.
#[derive(Clone, Copy, Debug)]
pub struct Class {
    /// Least size.
    pub from: u64,
    /// First size that is too large; `None` for the last class.
    pub below: Option<u64>,
    /// How many, how much, how long.
    pub count: WriteCount,
}

/// The profile of a checkpoint; `None` if its writes were not counted.
pub fn profile(manifest: &Manifest) -> Option<Profile> {
    if manifest.writes.is_empty() {
        return None;
    }
    let all = sum(Rank(0), manifest.writes.iter());
    let of_node = |node: &Node| {
        let first = node.ranks.first().copied().unwrap_or(Rank(0));
        let own = manifest.writes.iter().filter(|one| node.ranks.contains(&one.rank));
        (node.name.clone(), sum(first, own))
    };
    let nodes = manifest.nodes.iter().map(of_node).collect();
    Some(Profile { all, nodes, ranks: manifest.writes.clone() })
}

fn sum<'a>(rank: Rank, all: impl Iterator<Item = &'a Writes>) -> Writes {
    all.fold(Writes::of(rank), |mut sum, one| {
        sum.pieces.join(&one.pieces);
        sum.writes.join(&one.writes);
        sum
    })
}

/// Classes with anything in them.
pub fn classes(tally: &Tally) -> Vec<Class> {
    let class = |(class, count): (usize, WriteCount)| Class {
        from: if class == 0 { 0 } else { WRITE_BOUNDS[class - 1] },
        below: WRITE_BOUNDS.get(class).copied(),
        count,
    };
    tally.classes().into_iter().enumerate().map(class).filter(|one| one.count.count > 0).collect()
}
