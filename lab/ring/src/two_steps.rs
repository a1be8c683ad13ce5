//! The paper's form: a group makes its shards on its own ranks, which then send them to their keepers.
//!
//! ```text
//! members -> star within the group -> shards at members -> a message for each block -> keepers
//! ```
//! The star is the product's own, on a ring of one group, which keeps its shards itself. Every shard
//! travels once more than in the folded form, and is written and read once more.

use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};
use standfast_comm::{Comm, Tag};
use standfast_ring::shard::Stamp;
use standfast_ring::topology::{Piece, Shape, Topology};
use standfast_ring::{Memory, Options, Outside, Result, Sink, Source, encode};

const HAND_OVER: Tag = Tag(2);

/// A rank's member, whatever piece it is asked for as.
struct Member(Memory, Piece);

impl Source for Member {
    fn read(&mut self, _: Piece, at: u64, into: &mut [u8]) -> std::result::Result<(), Outside> {
        self.0.read(self.1, at, into)
    }
}

/// Encodes one checkpoint of nodes with a rank each, in whole groups with as many shards as members:
/// the processor time of this rank.
pub(crate) fn encode_in_two_steps(
    comm: &dyn Comm,
    topology: &Topology,
    stamp: Stamp,
    bytes: u64,
    options: Options,
    store: &Memory,
) -> Result<Duration> {
    let started = thread_time();
    let k = topology.shape().k;
    let (group, place) = topology.group_of(comm.rank());
    let within = comm.split(Some(group.sector), place as u32)?.expect("every rank has a group");
    let alone = Topology::of_nodes(k, Shape::full(k))?;
    let mut member = Member(store.clone(), Piece { group, index: place as u32 });
    let mut made = Memory::default();
    encode(&*within, &alone, stamp, bytes, options, &mut member, &mut made.clone())?;

    // Every rank has made one shard, and keeps another.
    let (own, kept) = (alone.kept_by(place)[0], topology.kept_by(comm.rank())[0]);
    let to = topology.keeper(group, own.index as usize - k);
    let maker = alone.keeper(own.group, kept.index as usize - k);
    let from = topology.members(kept.group)[maker].expect("a rank on every node");
    let shard = made.get(own).expect("it was made");
    let (mut file, mut message, mut told) = (Vec::new(), Vec::new(), Vec::new());
    for block in shard.chunks(options.block_bytes as usize) {
        message.clear();
        message.extend_from_slice(block);
        comm.exchange_into(to, &mut message, from, HAND_OVER, &mut told)?;
        file.extend_from_slice(&told);
    }
    store.put(kept, file);
    made.forget(own);
    Ok(thread_time() - started)
}

/// Processor time of the calling thread.
fn thread_time() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

#[cfg(test)]
mod tests;
