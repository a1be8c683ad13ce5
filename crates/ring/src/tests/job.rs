//! A whole job in one process, for tests: encode, lose, damage, recover, compare.

use standfast_comm::Comm;
use standfast_format::{AttemptId, JobId, Version};
use standfast_testkit::{Threads, run_threads};

use crate::encode::{Options, Order, encode};
use crate::error::Result;
use crate::field::multiply;
use crate::memory::Memory;
use crate::recover::{Holding, Recovered, Recovery, recover};
use crate::shard::{Header, Stamp, checksum};
use crate::star::Report;
use crate::topology::{Piece, Topology};

pub(crate) const BLOCK_BYTES: u32 = 1024;

pub(crate) fn stamp(version: u64) -> Stamp {
    Stamp { job: JobId([1; 16]), version: Version(version), attempt: AttemptId([2; 8]) }
}

pub(crate) fn options(order: Order) -> Options {
    Options { block_bytes: BLOCK_BYTES, order }
}

pub(crate) struct Lab {
    pub(crate) topology: Topology,
    /// What each rank can read.
    pub(crate) stores: Vec<Memory>,
    members: Vec<Vec<u8>>,
}

impl Lab {
    /// Every rank with bytes of its own, none of them encoded yet.
    pub(crate) fn new(topology: Topology, bytes_of: impl Fn(usize) -> usize) -> Self {
        let member = |rank: usize| {
            let mut state = rank as u64 * 977 + 13;
            let next = || {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695);
                (state >> 56) as u8
            };
            std::iter::repeat_with(next).take(bytes_of(rank)).collect::<Vec<u8>>()
        };
        let members: Vec<Vec<u8>> = (0..topology.ranks()).map(member).collect();
        let stores: Vec<Memory> = members.iter().map(|_| Memory::default()).collect();
        let lab = Self { topology, stores, members };
        for (rank, bytes) in lab.members.iter().enumerate() {
            lab.stores[rank].put(lab.member(rank), bytes.clone());
        }
        lab
    }

    /// Encoded, on all ranks.
    pub(crate) fn encoded(topology: Topology, bytes_of: impl Fn(usize) -> usize) -> Self {
        let lab = Self::new(topology, bytes_of);
        lab.encode(Order::Star).into_iter().for_each(|report| _ = report.unwrap());
        lab
    }

    pub(crate) fn encode(&self, order: Order) -> Vec<Result<Report>> {
        run_threads(self.topology.ranks(), |comm| {
            let store = &self.stores[comm.rank()];
            let bytes = self.members[comm.rank()].len() as u64;
            let (mut source, mut sink) = (store.clone(), store.clone());
            let (stamp, options) = (stamp(1), options(order));
            encode(&comm, &self.topology, stamp, bytes, options, &mut source, &mut sink)
                .map(|encoded| encoded.report)
        })
    }

    pub(crate) fn member(&self, rank: usize) -> Piece {
        let (group, place) = self.topology.group_of(rank);
        Piece { group, index: place as u32 }
    }

    pub(crate) fn bytes_of(&self, rank: usize) -> &[u8] {
        &self.members[rank]
    }

    /// A node loses everything.
    pub(crate) fn wipe(&self, node: usize) {
        for &rank in self.topology.ranks_of(node) {
            let store = &self.stores[rank];
            store.pieces().into_iter().for_each(|piece| _ = store.remove(piece));
        }
    }

    /// Changes a byte of a file, counted from its end.
    pub(crate) fn damage(&self, rank: usize, piece: Piece, from_end: usize) {
        let mut bytes = self.stores[rank].get(piece).expect("the rank holds the piece");
        let at = bytes.len() - 1 - from_end;
        bytes[at] ^= 0x10;
        self.stores[rank].put(piece, bytes);
    }

    /// What a rank finds in its store; what cannot be opened is as good as lost.
    pub(crate) fn holding(&self, rank: usize) -> Holding {
        let store = &self.stores[rank];
        let mut holding = Holding::default();
        for piece in store.pieces() {
            let members = self.topology.members(piece.group);
            match members.get(piece.index as usize) {
                Some(member) => {
                    let bytes = store.get(piece).unwrap().len() as u64;
                    holding.members.push((member.unwrap(), bytes));
                }
                None => holding.shards.extend(store.shard(piece)),
            }
        }
        holding
    }

    /// Recovers on as many ranks as there were.
    pub(crate) fn recover(&self) -> Vec<Result<Recovered>> {
        let heirs: Vec<usize> = (0..self.topology.ranks()).collect();
        run_threads(self.topology.ranks(), |comm| self.recover_on(&comm, &heirs))
    }

    pub(crate) fn recover_on(&self, comm: &Threads, heirs: &[usize]) -> Result<Recovered> {
        let rank = comm.rank();
        let (mut source, mut sink) = (self.stores[rank].clone(), self.stores[rank].clone());
        let holding = self.holding(rank);
        let (topology, stamp, block_bytes) = (&self.topology, stamp(1), BLOCK_BYTES);
        let recovery = Recovery { topology, stamp, heirs, block_bytes };
        recover(comm, recovery, &holding, &mut source, &mut sink)
    }

    /// Every member and every shard is where it belongs and is what it must be.
    pub(crate) fn check(&self) {
        for (rank, bytes) in self.members.iter().enumerate() {
            let found = self.stores[rank].get(self.member(rank)).unwrap_or_default();
            assert_eq!(&found, bytes, "member of rank {rank}");
        }
        for group in self.topology.ring() {
            let members = self.topology.members(group);
            for row in 0..self.topology.shape().m {
                let piece = Piece { group, index: (members.len() + row) as u32 };
                let keeper = self.topology.keeper(group, row);
                let file = self.stores[keeper].get(piece).expect("the keeper has the shard");
                assert_eq!(file, self.expected_shard(piece), "{piece} on rank {keeper}");
            }
        }
    }

    /// The file of a shard, straight from its definition.
    fn expected_shard(&self, piece: Piece) -> Vec<u8> {
        let ranks = self.topology.members(piece.group);
        let members: Vec<&[u8]> =
            ranks.iter().map(|rank| rank.map_or(&[][..], |rank| &self.members[rank])).collect();
        let code = self.topology.code(piece.group).unwrap();
        let row = piece.index as usize - members.len();
        let longest = members.iter().map(|member| member.len()).max().unwrap_or(0);
        let mut body = vec![0; longest];
        for (column, member) in members.iter().enumerate() {
            let factor = code.parity().cell(row, column);
            body.iter_mut().zip(*member).for_each(|(sum, &byte)| *sum ^= multiply(factor, byte));
        }
        let header = Header {
            stamp: stamp(1),
            group: piece.group,
            row: row as u32,
            m: code.m() as u32,
            family: self.topology.shape().family,
            block_bytes: BLOCK_BYTES,
            member_bytes: members.iter().map(|member| member.len() as u64).collect(),
        };
        let mut table = crate::shard::Table::new(members.len());
        for (block, bytes) in body.chunks(BLOCK_BYTES as usize).enumerate() {
            let sum = |bytes: &[u8]| checksum(block as u64, bytes);
            let of = |member: &&[u8]| member.chunks(BLOCK_BYTES as usize).nth(block).map_or(0, sum);
            table.push(sum(bytes), &members.iter().map(of).collect::<Vec<_>>());
        }
        [header.encode(), body, table.encode()].concat()
    }
}
