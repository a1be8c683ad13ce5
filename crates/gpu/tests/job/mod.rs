//! A whole job in one process: every rank encodes, nodes lose everything, all is recovered. What the
//! ranks then have is what they have when the CPU multiplies, or a device does.
//!
//! crates/gpu/tests/star.rs runs it on stand-ins, gpu-check on the device.

use std::collections::BTreeMap;

use standfast_comm::{Comm, collective};
use standfast_format::{AttemptId, JobId, Version};
use standfast_ring::topology::Piece;
use standfast_ring::{
    Arithmetic, Holding, Means, Memory, Options, Order, Outside, Recovery, Shape, Shard, Sink,
    Source, Stamp, Topology, encode_with, recover_with,
};
use standfast_stand_in::DevicePieces;
use standfast_testkit::{run_threads, vectors};

const STAMP: Stamp = Stamp { job: JobId([1; 16]), version: Version(1), attempt: AttemptId([2; 8]) };

/// Nodes with one rank each, in groups of `k` with `m` shards.
pub(crate) struct Job {
    topology: Topology,
    members: Vec<Vec<u8>>,
    block_bytes: u32,
}

/// Where a rank has its pieces.
pub(crate) trait Place: Source + Sink + Clone {
    fn put(&self, piece: Piece, bytes: &[u8]) -> Result<(), Outside>;
    fn get(&self, piece: Piece) -> Result<Option<Vec<u8>>, Outside>;
    fn remove(&self, piece: Piece);
    fn pieces(&self) -> Vec<Piece>;
    fn shard(&self, piece: Piece) -> standfast_ring::Result<Shard>;
}

/// The files of every rank, by piece.
pub(crate) type Files = Vec<BTreeMap<Piece, Vec<u8>>>;

impl Job {
    pub(crate) fn new(
        (nodes, k, m): (usize, usize, usize),
        block_bytes: u32,
        bytes_of: impl Fn(usize) -> usize,
    ) -> Result<Self, Outside> {
        let topology = Topology::of_nodes(nodes, Shape::new(k, m))?;
        let member = |rank| vectors::random(bytes_of(rank), rank as u64 + 1);
        Ok(Self { topology, members: (0..nodes).map(member).collect(), block_bytes })
    }

    /// Encodes; then the nodes `lost` lose all they have, and everything is made again. What every
    /// rank has after either.
    pub(crate) fn run<P: Place>(
        &self,
        lost: &[usize],
        means: impl Fn(usize) -> Result<(P, Box<dyn Arithmetic>), Outside> + Sync,
    ) -> Result<(Files, Files), Outside> {
        let ended = run_threads(self.members.len(), |comm| {
            let (place, mut arithmetic) = means(comm.rank())?;
            let own = self.encode(&comm, &place, &mut *arithmetic);
            let all_well = collective::all_min(&comm, u64::from(own.is_ok()))? == 1;
            own.and_then(|()| if all_well { Ok(()) } else { Err("another rank failed".into()) })?;
            let encoded = files(&place)?;
            if lost.contains(&comm.rank()) {
                place.pieces().into_iter().for_each(|piece| place.remove(piece));
            }
            self.recover(&comm, &place, &mut *arithmetic)?;
            Ok((encoded, files(&place)?))
        });
        Ok(ended.into_iter().collect::<Result<Vec<_>, Outside>>()?.into_iter().unzip())
    }

    fn encode<P: Place>(
        &self,
        comm: &dyn Comm,
        place: &P,
        arithmetic: &mut dyn Arithmetic,
    ) -> Result<(), Outside> {
        let member = &self.members[comm.rank()];
        place.put(self.member(comm.rank()), member)?;
        let options = Options { block_bytes: self.block_bytes, order: Order::Star };
        let (source, sink) = (&mut place.clone(), &mut place.clone());
        let (topology, bytes) = (&self.topology, member.len() as u64);
        let mut means = Means { source, sink, arithmetic };
        encode_with(comm, topology, STAMP, bytes, options, &mut means)?;
        Ok(())
    }

    fn recover<P: Place>(
        &self,
        comm: &dyn Comm,
        place: &P,
        arithmetic: &mut dyn Arithmetic,
    ) -> Result<(), Outside> {
        let mut holding = Holding::default();
        for piece in place.pieces() {
            match piece == self.member(comm.rank()) {
                true => {
                    let bytes = self.members[comm.rank()].len() as u64;
                    holding.members.push((comm.rank(), bytes));
                }
                false => holding.shards.push(place.shard(piece)?),
            }
        }
        let heirs: Vec<usize> = (0..comm.size()).collect();
        let (topology, block_bytes) = (&self.topology, self.block_bytes);
        let recovery = Recovery { topology, stamp: STAMP, heirs: &heirs, block_bytes };
        let (source, sink) = (&mut place.clone(), &mut place.clone());
        recover_with(comm, recovery, &holding, &mut Means { source, sink, arithmetic })?;
        Ok(())
    }

    fn member(&self, rank: usize) -> Piece {
        let (group, place) = self.topology.group_of(rank);
        Piece { group, index: place as u32 }
    }
}

/// What a rank has; an empty member is known by its length and has no file.
fn files(place: &impl Place) -> Result<BTreeMap<Piece, Vec<u8>>, Outside> {
    let mut files = BTreeMap::new();
    for piece in place.pieces() {
        files.extend(place.get(piece)?.filter(|file| !file.is_empty()).map(|file| (piece, file)));
    }
    Ok(files)
}

impl Place for Memory {
    fn put(&self, piece: Piece, bytes: &[u8]) -> Result<(), Outside> {
        self.put(piece, bytes.to_vec());
        Ok(())
    }

    fn get(&self, piece: Piece) -> Result<Option<Vec<u8>>, Outside> {
        Ok(self.get(piece))
    }

    fn remove(&self, piece: Piece) {
        self.remove(piece);
    }

    fn pieces(&self) -> Vec<Piece> {
        self.pieces()
    }

    fn shard(&self, piece: Piece) -> standfast_ring::Result<Shard> {
        self.shard(piece)
    }
}

impl Place for DevicePieces {
    fn put(&self, piece: Piece, bytes: &[u8]) -> Result<(), Outside> {
        Ok(self.put(piece, bytes)?)
    }

    fn get(&self, piece: Piece) -> Result<Option<Vec<u8>>, Outside> {
        self.get(piece)
    }

    fn remove(&self, piece: Piece) {
        self.remove(piece);
    }

    fn pieces(&self) -> Vec<Piece> {
        self.pieces()
    }

    fn shard(&self, piece: Piece) -> standfast_ring::Result<Shard> {
        self.shard(piece)
    }
}
