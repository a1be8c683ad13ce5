//! What other schemes survive, to compare with: each by its own rule on the same nodes.

use standfast_ring::{Shape, Topology};

/// A way to keep checkpoints beside their nodes.
pub(super) enum Scheme {
    /// Shards on the next group of the ring; `m` of them for every group of `k`.
    Ring(Box<Topology>),
    /// One parity for every group (SCR).
    Xor { k: usize },
    /// A copy on the next node (SCR, FTI).
    Partner,
    /// Weighted checksums within the group (LWC): the root of `k`.
    Localized { k: usize },
}

impl Scheme {
    pub(super) fn ring(nodes: usize, k: usize, m: usize) -> anyhow::Result<Self> {
        Ok(Self::Ring(Box::new(Topology::of_nodes(nodes, Shape::new(k, m))?)))
    }

    pub(super) fn name(&self) -> String {
        match self {
            Self::Ring(topology) => {
                format!("ring k={} m={}", topology.shape().k, topology.shape().m)
            }
            Self::Xor { k } => format!("xor k={k}"),
            Self::Partner => "partner".into(),
            Self::Localized { k } => format!("lwc k={k}"),
        }
    }

    /// The name with what it stores.
    pub(super) fn label(&self) -> String {
        format!("{}, {:.2} x", self.name(), self.storage())
    }

    /// Bytes stored for every byte of checkpoint, itself included.
    pub(super) fn storage(&self) -> f64 {
        match self {
            Self::Ring(topology) => 1.0 + topology.shape().m as f64 / topology.shape().k as f64,
            Self::Xor { k } => 1.0 + 1.0 / (*k as f64 - 1.0),
            Self::Partner | Self::Localized { .. } => 2.0,
        }
    }

    /// Whether the loss of these nodes, given in order, is survived.
    pub(super) fn survives(&self, nodes: usize, lost: &[usize]) -> anyhow::Result<bool> {
        Ok(match self {
            Self::Ring(topology) => topology.survives(lost)?,
            Self::Xor { k } => worst_group(nodes, *k, lost) <= 1,
            Self::Localized { k } => worst_group(nodes, *k, lost) <= k.isqrt(),
            Self::Partner => {
                lost.iter().all(|node| lost.binary_search(&((node + 1) % nodes)).is_err())
            }
        })
    }
}

/// Most lost nodes in one group; groups are neighbours, the last one may be larger.
fn worst_group(nodes: usize, k: usize, lost: &[usize]) -> usize {
    let groups = (nodes / k).max(1);
    let mut counts = vec![0; groups];
    for node in lost {
        counts[(node / k).min(groups - 1)] += 1;
    }
    counts.into_iter().max().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_scheme_keeps_to_its_rule() {
        let survives = |scheme: &Scheme, lost: &[usize]| scheme.survives(16, lost).unwrap();
        let ring = Scheme::ring(16, 4, 4).unwrap();
        assert!(survives(&ring, &[0, 1, 2, 3]), "a whole group");
        assert!(
            survives(&Scheme::Xor { k: 4 }, &[0, 4, 8])
                && !survives(&Scheme::Xor { k: 4 }, &[0, 1])
        );
        assert!(survives(&Scheme::Partner, &[0, 2, 4]) && !survives(&Scheme::Partner, &[0, 15]));
        let lwc = Scheme::Localized { k: 4 };
        assert!(survives(&lwc, &[0, 1, 4, 5]) && !survives(&lwc, &[0, 1, 2]));
    }
}
