//! Files of the ring: topologies and shards.

use standfast_format::{AttemptId, JobId, Version, name};
use standfast_ring::shard::Header;
use standfast_ring::topology::GroupId;
use standfast_ring::{Shape, Shard, Stamp, Topology};

use crate::envelope::{self, AS_IT_IS, BODY, Sort, body};

/// Jobs that are looked at in full.
const RANKS_MAX: usize = 64;
/// Bodies of shards that are made.
const BODY_BYTES_MAX: u64 = 1 << 16;

/// A record of the ring, and everything that can be asked of it.
pub fn topology(data: &[u8]) {
    let Some(bytes) = envelope::open(Sort::Topology, data) else { return };
    let Ok(topology) = Topology::decode(&bytes) else { return };
    let again = topology.encode();
    assert_eq!(Topology::decode(&again).expect("our own bytes").encode(), again);
    if topology.ranks() > RANKS_MAX {
        return;
    }
    assert!(!topology.promise().is_empty());
    for group in topology.ring() {
        for row in 0..topology.shape().m {
            let keeper = topology.keeper(group, row);
            let kept = topology.kept_by(keeper);
            let k = topology.members(group).len();
            assert!(kept.iter().any(|p| p.group == group && p.index as usize == k + row));
        }
    }
    for node in 0..topology.nodes() {
        assert!(!topology.name_of(node).is_empty());
        let _ = topology.survives(&[node]);
    }
}

/// A shard's file: bytes as they are, or a header and a table in sound frames with a body between.
pub fn shard(data: &[u8]) {
    let Some((how, rest)) = data.split_first() else { return };
    let file = match *how {
        AS_IT_IS => rest.to_vec(),
        _ => match made(rest) {
            Some(file) => file,
            None => return,
        },
    };
    let read = |at: u64, into: &mut [u8]| {
        let from = file.get(at as usize..).and_then(|rest| rest.get(..into.len()));
        into.copy_from_slice(from.ok_or("beyond the end")?);
        Ok(())
    };
    let Ok(shard) = Shard::open(file.len() as u64, read) else { return };
    assert_eq!(Header::decode(&shard.header.encode()).expect("our own bytes"), shard.header);
    for block in 0..shard.header.blocks() as usize {
        let _ = shard.table.shard(block);
        (0..shard.header.k()).for_each(|member| _ = shard.table.member(block, member));
    }
}

/// The first two bytes say how long the header is.
fn made(data: &[u8]) -> Option<Vec<u8>> {
    let (length, rest) = data.split_first_chunk::<2>()?;
    let (head, table) = rest.split_at_checked(usize::from(u16::from_le_bytes(*length)))?;
    let mut file = envelope::seal(Sort::ShardHeader, head);
    let header = Header::decode(&file).ok()?;
    if header.body_bytes() > BODY_BYTES_MAX {
        return None;
    }
    file.resize(file.len() + header.body_bytes() as usize, 7);
    file.extend_from_slice(&envelope::seal(Sort::ShardTable, table));
    Some(file)
}

pub(crate) fn topology_seeds() -> Vec<Vec<u8>> {
    let unequal = [0, 1, 0, 2, 1, 3, 2, 2, 3, 0, 4];
    let shapes = [Shape::full(2), Shape::new(4, 2)];
    let mut seeds = Vec::new();
    for shape in shapes {
        seeds.push(Topology::of_nodes(7, shape).expect("a sound job").encode());
        seeds.push(Topology::new(&unequal, shape).expect("a sound job").encode());
    }
    seeds
}

fn stamp() -> Stamp {
    Stamp { job: JobId([1; 16]), version: Version(3), attempt: AttemptId([2; 8]) }
}

pub(crate) fn shard_seeds() -> Vec<Vec<u8>> {
    let header = Header {
        stamp: stamp(),
        group: GroupId { sector: 1, level: 0 },
        row: 1,
        m: 2,
        family: Default::default(),
        block_bytes: 1024,
        member_bytes: vec![3000, 1500, 0],
    };
    let sums = 8 * (header.k() + 1) * header.blocks() as usize;
    let (head, table) = (header.encode(), envelope::seal(Sort::ShardTable, &vec![3; sums]));
    let file = [&[AS_IT_IS], &head[..], &vec![7; 3000], &table].concat();
    let length = (body(&head).len() as u16).to_le_bytes();
    vec![file, [&[BODY], &length[..], body(&head), body(&table)].concat()]
}

/// Names of the ring's objects.
pub(crate) fn names() -> impl Iterator<Item = String> {
    let Stamp { version, attempt, .. } = stamp();
    [name::ring(version, attempt), name::shard(version, attempt, (1, 0, 3)), name::IDENTITY.into()]
        .into_iter()
}
